"""Entries as lines of JSON: what an export writes and an import reads.

A line is a body of `POST entries` (prompt, response, attributes, tags, ttlMillis, scope), or what an export wrote:
beside these it has a `stored` object with the whole answer and with what makes the entry's identity, so that all is as
it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from service.cache.data import Prompt, store
from service.cache.directory import OpenCache
from service.cache.runtime import Runtime
from service.cache.store import New, store_answer
from service.errors import Code, SemcacheError
from service.identity.canonical import hexdigest
from service.identity.conversation import semantic_text
from service.identity.model import MODEL_FIELDS, ModelIdentity
from service.identity.request import Identity
from service.identity.scope import Namespace, build_scope
from service.identity.tier import Reason, Tier
from service.json_text import dumps
from service.store.text import from_columns
from service.upstream.answer import Answer

MISSING = "The line's stored object lacks what an export writes. Import it without `stored`, as prompt and response."


def to_line(row: Mapping[str, Any]) -> str:
    """The line of an entry that is a row of `entries_to_export`."""
    answer = Answer.from_payload(json.loads(row["payload"]))
    return dumps(
        {
            "prompt": from_columns(row["prompt"], row["prompt_verbatim"]),
            "response": answer.text if answer else "",
            "attributes": row["attributes"],
            "tags": row["tags"],
            "stored": {
                "answer": json.loads(row["payload"]),
                "costMs": row["cost_ms"],
                "createdAt": row["created_at"].isoformat(),
                "expiresAt": row["expires_at"].isoformat() if row["expires_at"] else None,
                "exactKey": row["exact_key"].hex(),
                "scopeKey": row["scope_key"].hex(),
                "model": {name: row[name] for name in MODEL_FIELDS},
                "sampling": json.loads(row["sampling"]),
                "parts": row["parts"],
                "semantic": row["semantic"],
                "variants": row["variants"],
            },
        }
    )


async def take_line(runtime: Runtime, cache: OpenCache, line: Mapping[str, Any]) -> None:
    """Store the entry of a line that was found right before, with provenance `import`.

    Raises: SemcacheError, with INVALID_DATA where the line itself cannot be stored in this cache.
    """
    stored = line.get("stored")
    if stored is None:
        prompt = Prompt(line["prompt"], line.get("scope") or {}, line.get("attributes") or {})
        await store(
            runtime,
            cache,
            prompt,
            line["response"],
            tags=line.get("tags") or [],
            ttl_ms=line.get("ttlMillis"),
            provenance="import",
        )
        return
    try:
        new = _stored(cache, line, stored)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise SemcacheError(Code.INVALID_DATA, MISSING) from None
    if await store_answer(runtime, cache, new) is None:
        raise SemcacheError(Code.DATABASE_UNAVAILABLE, "the cache was changed meanwhile; the batch is tried again")


def _stored(cache: OpenCache, line: Mapping[str, Any], stored: Mapping[str, Any]) -> New:
    answer = Answer.from_payload(stored["answer"])
    if answer is None:
        raise SemcacheError(Code.INVALID_DATA, "The answer has a form that this release does not know.")
    return New(
        identity=_identity(cache, line["prompt"], stored),
        prompt=line["prompt"],
        answer=answer,
        provenance="import",
        attributes=line.get("attributes") or {},
        tags=line.get("tags") or [],
        ttl_ms=_lifetime(stored["expiresAt"]),
        cost_ms=stored["costMs"],
        variants=stored.get("variants", 1),
    )


def _identity(cache: OpenCache, prompt: str, stored: Mapping[str, Any]) -> Identity:
    """The identity that the entry had. In a cache of another name only its prompt can be found, as a neighbour's is."""
    namespace = Namespace(cache.tenant.name, cache.row.name)
    scope = build_scope(namespace, _model(stored["model"]), stored["sampling"], stored["parts"])
    text = semantic_text(prompt) if stored["semantic"] else None
    if text is None and scope.key.hex() != stored["scopeKey"]:
        rule = "The entry can only be found exactly, and so in the cache and tenant of the names that it had."
        raise SemcacheError(Code.INVALID_DATA, rule)
    return Identity(
        scope=scope,
        text=text,
        exact_key=bytes.fromhex(stored["exactKey"]),
        tier=Tier.SEMANTIC if text else Tier.EXACT,
        reason=None if text else Reason.NO_TEXT,
        sampled=False,
        namespace=namespace,
        said=hexdigest(prompt),
    )


def _model(declared: Mapping[str, Any]) -> ModelIdentity:
    if not all(isinstance(value, str | None) for value in declared.values()):
        raise TypeError
    return ModelIdentity(**declared)


def _lifetime(expires_at: str | None) -> int | None:
    """Milliseconds from now. Raises: SemcacheError(INVALID_DATA) for an entry that has expired."""
    if expires_at is None:
        return None
    left = (datetime.fromisoformat(expires_at) - datetime.now(UTC)).total_seconds()
    if left <= 0:
        raise SemcacheError(Code.INVALID_DATA, "The entry has expired.")
    return max(1, int(left * 1000))


__all__ = ["take_line", "to_line"]
