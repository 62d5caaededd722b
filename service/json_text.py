"""JSON in and out, for any text that JSON allows: U+0000 and halves of surrogate pairs included."""

from __future__ import annotations

import json
from typing import Any


def dumps(value: Any) -> str:
    """Compact JSON that can be encoded as UTF-8. Raises ValueError for NaN and infinities (RFC 8259 has none)."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair: only an escape can carry it
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text


__all__ = ["dumps"]
