import pytest

from service.api.openai_errors import openai_error
from service.errors import Code, SemcacheError


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        (Code.INVALID_DATA, 400, "invalid_request_error"),
        (Code.MALFORMED_BODY, 400, "invalid_request_error"),
        (Code.UNAUTHENTICATED, 401, "authentication_error"),
        (Code.CACHE_NOT_FOUND, 404, "not_found_error"),
        (Code.UPSTREAM_UNREACHABLE, 502, "server_error"),
        (Code.UPSTREAM_TIMEOUT, 504, "server_error"),
    ],
)
def test_a_failure_has_the_shape_of_openais_errors(code: Code, status: int, kind: str) -> None:
    error = SemcacheError(code, "What failed.", {"param": "x-cache-ttl"})
    body = {"message": "What failed.", "type": kind, "param": "x-cache-ttl", "code": code.slug}
    assert openai_error(error) == (status, {"error": body})
    assert openai_error(SemcacheError(code, "x"))[1]["error"]["param"] is None
