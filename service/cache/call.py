"""A request of the OpenAI API, and what comes back for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from service.errors import SemcacheError
from service.identity.canonical import hexdigest
from service.json_text import edit_object, parse
from service.policy.controls import Controls
from service.upstream.answer import ECHOED, Endpoint
from service.upstream.headers import Headers
from service.upstream.usage import wants_usage

Status = Literal["HIT", "SEMANTIC-HIT", "MISS", "BYPASS", "REFRESH", "COALESCED", "STALE", "ERROR"]


@dataclass(frozen=True, slots=True)
class Call:
    """A request without its controls, as the model server is to get it.

    path: percent-encoded, begins with /v1. body: the parsed form of `raw`; None where that is not a JSON object.
    """

    endpoint: Endpoint
    path: str
    query: str
    headers: Headers
    raw: bytes
    body: dict[str, Any] | None
    controls: Controls
    key: str | None

    @property
    def fields(self) -> dict[str, Any]:
        return self.body or {}

    @property
    def model(self) -> str:
        name = self.fields.get("model")
        return name if isinstance(name, str) else ""

    @property
    def stream(self) -> bool:
        return bool(self.fields.get("stream"))

    @property
    def salt(self) -> tuple[tuple[str, str], ...]:
        """What keeps it apart beside its body; the model server gets the query, and may obey it."""
        return (*self.controls.salt, ("query", self.query)) if self.query else self.controls.salt

    @property
    def sane(self) -> bool:
        """Whether the fields that the cache itself obeys have their types; else the model server is to judge."""
        stream, model = self.fields.get("stream"), self.fields.get("model")
        typed = isinstance(model, str | None) and isinstance(self.fields.get("stream_options"), dict | None)
        return self.body is not None and stream in (None, True, False) and typed

    @property
    def counts(self) -> bool:
        """Whether its stream would end with token counts if it asked for them, which it does not."""
        return self.stream and self.endpoint in ("chat", "completions") and not wants_usage(self.fields)

    @property
    def form(self) -> str:
        """What tells apart requests of one identity whose streams have other bytes."""
        kind = "stream" if self.stream else "body"
        if self.endpoint != "responses":
            return kind
        return f"{kind}:{hexdigest({name: self.fields.get(name) for name in ECHOED})}"


def parse_body(raw: bytes) -> dict[str, Any] | None:
    """The JSON object in a body; None where it is none, which the model server is to judge."""
    try:
        body = parse(raw)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def without(raw: bytes, members: frozenset[str]) -> bytes:
    """The JSON object `raw` without these members; its other bytes as they were."""
    return edit_object(raw, drop=members) if members else raw


@dataclass(frozen=True, slots=True)
class Told:
    """What an answer says of the cache. similarity and threshold: 0 to 1; ttl and age: seconds."""

    status: Status
    reason: str
    entry_id: UUID | None = None
    similarity: float | None = None
    threshold: float | None = None
    ttl: float | None = None
    age: float | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes back: a body, or one that still comes. Errors of a coming body are SemcacheError."""

    status: int
    headers: Headers
    body: bytes | AsyncGenerator[bytes, None]
    told: Told


@dataclass(eq=False)
class UnansweredError(Exception):
    """There is no answer, for this reason; and what the cache had to say."""

    error: SemcacheError
    told: Told = field(default_factory=lambda: Told("ERROR", "internal"))


__all__ = ["Call", "Reply", "Status", "Told", "UnansweredError", "parse_body", "without"]
