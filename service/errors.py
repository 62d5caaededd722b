"""Every failure the service can answer with: one table from stable code to HTTP status, title and URI.

A detail says what failed, the rule, and the mend. It never holds a secret or a prompt's text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


@dataclass(frozen=True, slots=True)
class Kind:
    """What a code means on the wire: problem+json members of RFC 9457, and the SQLSTATE that carries it."""

    status: int
    type: str
    title: str
    sqlstate: str | None = None


class Code(Enum):
    """Stable codes. The names are the `code` member of a problem; a released name never changes."""

    INVALID_DATA = Kind(422, "/errors/invalid-data", "The request does not follow the contract")
    EMPTY_FILTER = Kind(400, "/errors/empty-filter", "A delete needs a filter", "SC001")
    MALFORMED_BODY = Kind(400, "/errors/malformed-body", "The body is not the JSON it should be")
    UNAUTHENTICATED = Kind(401, "/errors/unauthenticated", "The API key is missing, unknown or revoked")
    FORBIDDEN_ORIGIN = Kind(403, "/errors/forbidden-origin", "Without API keys only this machine may ask")
    NO_UPSTREAM = Kind(404, "/errors/upstream/none", "No model server is set up for this request")
    CACHE_NOT_FOUND = Kind(404, "/errors/cache/not-found", "There is no such cache", "SC404")
    ENTRY_NOT_FOUND = Kind(404, "/errors/cache/entry/not-found", "There is no such entry", "SC405")
    JOB_NOT_FOUND = Kind(404, "/errors/cache/job/not-found", "There is no such job", "SC406")
    ROUTE_NOT_FOUND = Kind(404, "/errors/not-found", "There is no such resource")
    METHOD_NOT_ALLOWED = Kind(405, "/errors/method-not-allowed", "The resource has no such method")
    CACHE_EXISTS = Kind(409, "/errors/cache/exists", "A cache of this name exists", "SC409")
    KEY_EXISTS = Kind(409, "/errors/key/exists", "This API key was made before", "SC410")
    BODY_TOO_LARGE = Kind(413, "/errors/body-too-large", "The body is larger than the service reads")
    EMBEDDER_UNAVAILABLE = Kind(424, "/errors/embeddings/unavailable", "The embedder gave no vector")
    TEXT_TOO_LONG = Kind(422, "/errors/embeddings/text-too-long", "The text is longer than the embedder reads")
    FOREIGN_SCRIPT = Kind(422, "/errors/embeddings/foreign-script", "The embedder was not made for the text's script")
    TEXT_UNREADABLE = Kind(422, "/errors/embeddings/text-unreadable", "The embedder cannot read all of the text")
    DIMENSION_MISMATCH = Kind(422, "/errors/embeddings/dimensions", "The vector's length does not fit")
    INTERNAL = Kind(500, "/errors/internal", "The service failed")
    UPSTREAM_UNREACHABLE = Kind(502, "/errors/upstream/unreachable", "The model server could not be reached")
    UPSTREAM_BROKEN = Kind(502, "/errors/upstream/broken", "The model server broke off its answer")
    DATABASE_UNAVAILABLE = Kind(503, "/errors/database/unavailable", "The database does not answer")
    SCHEMA_BEHIND = Kind(503, "/errors/database/schema-behind", "The database's schema is behind this release")
    NOT_CACHED = Kind(504, "/errors/cache/not-cached", "Nothing is stored that may be served")
    UPSTREAM_TIMEOUT = Kind(504, "/errors/upstream/timeout", "The model server did not answer in time")

    @property
    def slug(self) -> str:
        """The code as it stands on the wire, e.g. `cache_not_found`."""
        return self.name.lower()


@dataclass(eq=False)
class SemcacheError(Exception):
    """A failure with a stable code. `extra` becomes further members of the problem."""

    code: Code
    detail: str
    extra: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.code.slug}: {self.detail}"


BY_SQLSTATE = {code.value.sqlstate: code for code in Code if code.value.sqlstate}
