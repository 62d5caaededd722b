"""Limits on input that the settings hold: checked before work is done, and named in the error."""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import Code, SemcacheError
from service.settings import Settings

PAGE = 100


class BodyLimit:
    """ASGI middleware: whoever reads a body over the limit gets HTTPException 413 before it is read to its end."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app, self._max = app, max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = next((v for k, v in scope.get("headers", ()) if k == b"content-length"), b"")
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            if declared.isdigit() and int(declared) > self._max:
                raise self._too_large()
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._max:
                raise self._too_large()
            return message

        await self._app(scope, counted, send)

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"the body has more than {self._max} bytes, the limit SEMCACHE_MAX_BODY_BYTES")


def check_text(value: str, limit: int, field: str, setting: str) -> None:
    """Raises: SemcacheError(INVALID_DATA)."""
    if len(value) > limit:
        raise SemcacheError(Code.INVALID_DATA, f"{field}: has {len(value)} characters, {setting} allows {limit}")


def check_prompt(settings: Settings, prompt: str) -> None:
    check_text(prompt, settings.max_prompt_chars, "prompt", "SEMCACHE_MAX_PROMPT_CHARS")


def check_response(settings: Settings, response: str) -> None:
    check_text(response, settings.max_response_chars, "response", "SEMCACHE_MAX_RESPONSE_CHARS")


def check_count(count: int, limit: int, field: str, setting: str) -> None:
    """Raises: SemcacheError(INVALID_DATA)."""
    if count > limit:
        raise SemcacheError(Code.INVALID_DATA, f"{field}: has {count} items, {setting} allows {limit}")


def page_size(settings: Settings, asked: int | None) -> int:
    """How many rows a page gets. Raises: SemcacheError(INVALID_DATA)."""
    if asked is None:
        return min(PAGE, settings.max_page)
    check_count(asked, settings.max_page, "limit", "SEMCACHE_MAX_PAGE")
    return asked


def check_depth(value: Any, limit: int, field: str) -> None:
    """Raises: SemcacheError(INVALID_DATA) where JSON is nested deeper than the limit. Not recursive itself."""
    layer, depth = [value], 0
    while layer:
        depth += 1
        if depth > limit + 1:
            raise SemcacheError(
                Code.INVALID_DATA, f"{field}: is nested deeper than {limit} levels, the limit SEMCACHE_MAX_JSON_DEPTH"
            )
        inner: list[Any] = []
        for item in layer:
            inner += item.values() if isinstance(item, dict) else item if isinstance(item, list) else []
        layer = inner


def check_prompted(settings: Settings, prompt: str, attributes: dict[str, str], scope: dict[str, Any]) -> None:
    """A prompt with what narrows it. Raises: SemcacheError(INVALID_DATA)."""
    check_prompt(settings, prompt)
    check_count(len(attributes), settings.max_attributes, "attributes", "SEMCACHE_MAX_ATTRIBUTES")
    if scope:
        check_depth(scope, settings.max_json_depth, "scope")


__all__ = [
    "BodyLimit",
    "check_count",
    "check_depth",
    "check_prompt",
    "check_prompted",
    "check_response",
    "check_text",
    "page_size",
]
