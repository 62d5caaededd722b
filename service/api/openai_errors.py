"""Failures as OpenAI's clients read them: `{"error": {"message", "type", "param", "code"}}`."""

from __future__ import annotations

from typing import Any

from service.errors import Code, SemcacheError

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def openai_error(error: SemcacheError) -> tuple[int, dict[str, Any]]:
    """Status and body for a failure on the proxy.

    What breaks a rule is 400 there: OpenAI's API has no 422, and its clients name the 400 a bad request.
    """
    status = 400 if error.code is Code.INVALID_DATA else error.code.value.status
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    body = {"message": error.detail, "type": kind, "param": error.extra.get("param"), "code": error.code.slug}
    return status, {"error": body}


__all__ = ["openai_error"]
