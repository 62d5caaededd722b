"""Errors as problem+json (RFC 9457), each with a stable `code`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.exceptions import HTTPException

from service.errors import Code, SemcacheError
from service.json_text import dump

MEDIA_TYPE = "application/problem+json"
UNREADABLE = (
    "the body could not be read: it must be JSON in UTF-8, nested no deeper than SEMCACHE_MAX_JSON_DEPTH, "
    "with numbers of at most 4300 digits"
)

WORDS = "; ".join(f"{code.value.status} {code.slug}" for code in Code)


class Problem(BaseModel):
    """A failure (RFC 9457). Some have further members, as `errors` with each field and its rule."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="a reference that names the kind of failure", examples=["/errors/cache/not-found"])
    title: str = Field(examples=["There is no such cache"])
    status: int = Field(examples=[404])
    detail: str = Field(
        description="what failed, the rule, and the mend", examples=["there is no cache of this name; …"]
    )
    instance: str | None = Field(None, description="the path of the request", examples=["/v1/caches/faq"])
    code: str = Field(description=f"stable; with its status one of: {WORDS}", examples=["cache_not_found"])


_ANY_PROBLEM = {
    "description": "A problem with a stable `code`",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
RESPONSES: dict[int | str, dict[str, Any]] = {"4XX": _ANY_PROBLEM, "5XX": _ANY_PROBLEM}

logger = logging.getLogger("semcache.api")


def problem(error: SemcacheError, request: Request, headers: Mapping[str, str] | None = None) -> Response:
    """The response for a failure."""
    status = error.code.value.status
    always = {401: {"www-authenticate": "Bearer"}, 503: {"retry-after": "1"}}.get(status, {})
    body = as_problem(error) | {"instance": request.url.path}
    return Response(dump(body), status, {**always, **(headers or {})}, MEDIA_TYPE)


def as_problem(error: SemcacheError) -> dict[str, Any]:
    """RFC 9457's members, `code`, and what is extra."""
    kind = error.code.value
    return {
        "type": kind.type,
        "title": kind.title,
        "status": kind.status,
        "detail": error.detail,
        "code": error.code.slug,
        **error.extra,
    }


def read_validation(errors: list[Any]) -> SemcacheError:
    """Pydantic's errors as one failure: each field with its rule, never its value."""
    if any(error["type"] == "json_invalid" for error in errors):
        return SemcacheError(Code.MALFORMED_BODY, UNREADABLE)
    fields = [{"field": _path(error["loc"]), "rule": _rule(error)} for error in errors]
    detail = "; ".join(f"{item['field']}: {item['rule']}" for item in fields)
    return SemcacheError(Code.INVALID_DATA, detail, {"errors": fields})


def read_body_validation(error: ValidationError) -> SemcacheError:
    """As `read_validation`, for a body that was validated by itself."""
    return read_validation([found | {"loc": ("body", *found["loc"])} for found in error.errors()])


def install(app: FastAPI) -> None:
    """Make every failure of the app a problem."""

    @app.exception_handler(SemcacheError)
    async def _ours(request: Request, error: SemcacheError) -> Response:
        return problem(error, request)

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> Response:
        return problem(read_validation(list(error.errors())), request)

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        known = {
            400: (Code.MALFORMED_BODY, UNREADABLE),
            404: (Code.ROUTE_NOT_FOUND, "no route has this path; /openapi.json lists all"),
            413: (Code.BODY_TOO_LARGE, error.detail),
            405: (Code.METHOD_NOT_ALLOWED, "the path has other methods; /openapi.json lists all"),
        }
        code, detail = known.get(error.status_code, (Code.INTERNAL, "the request could not be handled"))
        return problem(SemcacheError(code, detail), request, error.headers)

    @app.exception_handler(Exception)
    async def _unexpected(request: Request, error: Exception) -> Response:
        logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return problem(SemcacheError(Code.INTERNAL, "the service failed; its log names the request id"), request)


def _path(location: tuple[Any, ...]) -> str:
    """The field's name; a field of the body stands without `body` before it."""
    place, *names = location
    return ".".join(str(name) for name in names) or str(place)


def _rule(error: dict[str, Any]) -> str:
    if error["type"] == "extra_forbidden":
        return "there is no such field"
    if len(error["loc"]) == 1:
        return "must be a JSON object, sent with content-type: application/json"
    if error["type"] == "value_error":
        return str(error["msg"]).removeprefix("Value error, ")
    return str(error["msg"])


__all__ = [
    "MEDIA_TYPE",
    "RESPONSES",
    "UNREADABLE",
    "Problem",
    "as_problem",
    "install",
    "problem",
    "read_body_validation",
    "read_validation",
]
