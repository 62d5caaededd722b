"""What answers of the proxy say of the cache, beside what the model server said."""

from __future__ import annotations

from service.cache.call import Told

Headers = list[tuple[bytes, bytes]]

_OURS = {b"x-request-id"}  # the middleware gives every answer one


def answer_headers(given: Headers, told: Told) -> Headers:
    """The model server's headers, or those of a stored answer, with x-cache and the rest."""
    return [pair for pair in given if pair[0] not in _OURS] + cache_headers(told)


def cache_headers(told: Told) -> Headers:
    """x-cache and what belongs to it; Age and x-cache-ttl in whole seconds (RFC 9111, section 5.1). A similarity has
    all its digits, so that a threshold of it is met."""
    shown = {
        "x-cache": told.status,
        "x-cache-reason": told.reason,
        "x-cache-entry-id": told.entry_id.hex if told.entry_id else None,
        "x-cache-similarity": None if told.similarity is None else str(told.similarity),
        "x-cache-threshold": None if told.threshold is None else str(told.threshold),
        "x-cache-ttl": None if told.ttl is None else str(max(0, int(told.ttl))),
        "age": None if told.age is None else str(int(told.age)),
    }
    return [(name.encode(), value.encode("ascii")) for name, value in shown.items() if value is not None]


__all__ = ["answer_headers", "cache_headers"]
