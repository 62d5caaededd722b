"""One byte string for each JSON value, whatever its spelling."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from service.errors import Code, SemcacheError

CANONICAL_VERSION = 1

_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, sort_keys=True, separators=(",", ":")
).encode


def canonical_json(value: Any) -> bytes:
    """The canonical form of a JSON value as `json.loads` gives it: sorted keys, no white space, UTF-8.

    Equal numbers agree (1, 1.0 and 1e0; -0.0 and 0); different values never do. A lone surrogate is written
    as its JSON escape, so the result is always valid UTF-8 and always valid JSON.

    Raises SemcacheError (`invalid_data`) for NaN, infinities, nesting too deep, and what is no JSON.
    """
    try:
        text = _encode(value)
        # Only a float of whole value has another spelling; its repr holds one of these.
        if ".0" in text or "e+" in text:
            text = _encode(_whole_floats_as_integers(value))
    except (ValueError, TypeError, RecursionError) as error:
        raise SemcacheError(
            Code.INVALID_DATA,
            f"The value has no canonical form ({type(error).__name__}). It must be JSON with finite numbers"
            " and moderate nesting.",
        ) from None
    return text.encode("utf-8", "backslashreplace")


def digest(value: Any) -> bytes:
    """SHA-256 of the canonical form, 32 bytes."""
    return hashlib.sha256(canonical_json(value)).digest()


def hexdigest(value: Any) -> str:
    """SHA-256 of the canonical form, 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def _whole_floats_as_integers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole_floats_as_integers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole_floats_as_integers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


__all__ = ["CANONICAL_VERSION", "canonical_json", "digest", "hexdigest"]
