"""Errors as problem+json (RFC 9457), each with a stable `code`."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from service.errors import Code, SemcacheError
from service.json_text import dumps

MEDIA_TYPE = "application/problem+json"

logger = logging.getLogger("semcache.api")


def problem(code: Code, detail: str, request: Request, **extra: Any) -> Response:
    """The response for a code: RFC 9457's members, `code`, and what is extra."""
    kind = code.value
    body = {
        "type": kind.type,
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "instance": request.url.path,
        "code": code.slug,
        **extra,
    }
    headers = {"www-authenticate": "Bearer"} if kind.status == 401 else {}
    if kind.status == 503:
        headers["retry-after"] = "1"
    return Response(dumps(body), kind.status, headers, MEDIA_TYPE)


def as_problem(error: SemcacheError) -> dict[str, Any]:
    """A failure as one item of a batch shows it."""
    kind = error.code.value
    return {
        "type": kind.type,
        "title": kind.title,
        "status": kind.status,
        "detail": error.detail,
        "code": error.code.slug,
    }


def read_validation(errors: list[Any]) -> SemcacheError:
    """Pydantic's errors as one failure: each field with its rule, never its value."""
    if any(error["type"] == "json_invalid" for error in errors):
        return SemcacheError(Code.MALFORMED_BODY, "the body is not JSON (RFC 8259)")
    fields = [{"field": _path(error["loc"]), "rule": _rule(error)} for error in errors]
    detail = "; ".join(f"{item['field']}: {item['rule']}" for item in fields)
    return SemcacheError(Code.INVALID_DATA, detail, {"errors": fields})


def install(app: FastAPI) -> None:
    """Make every failure of the app a problem."""

    @app.exception_handler(SemcacheError)
    async def _ours(request: Request, error: SemcacheError) -> Response:
        return problem(error.code, error.detail, request, **error.extra)

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> Response:
        failure = read_validation(list(error.errors()))
        return problem(failure.code, failure.detail, request, **failure.extra)

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        known = {
            400: (Code.MALFORMED_BODY, "the body could not be read as JSON in UTF-8"),
            404: (Code.ROUTE_NOT_FOUND, "no route has this path; /openapi.json lists all"),
            413: (Code.BODY_TOO_LARGE, error.detail),
            405: (Code.METHOD_NOT_ALLOWED, "the path has other methods; /openapi.json lists all"),
        }
        code, detail = known.get(error.status_code, (Code.INTERNAL, "the request could not be handled"))
        return problem(code, detail, request)

    @app.exception_handler(Exception)
    async def _unexpected(request: Request, error: Exception) -> Response:
        logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return problem(Code.INTERNAL, "the service failed; its log names the request id", request)


def _path(location: tuple[Any, ...]) -> str:
    names = [str(part) for part in location if part != "body"]
    return ".".join(names) or "body"


def _rule(error: dict[str, Any]) -> str:
    if error["type"] == "extra_forbidden":
        return "there is no such field"
    if error["type"] == "value_error":
        return str(error["msg"]).removeprefix("Value error, ")
    return str(error["msg"])


__all__ = ["MEDIA_TYPE", "as_problem", "install", "problem", "read_validation"]
