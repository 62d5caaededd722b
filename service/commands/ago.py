"""How far back, as a flag says it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from service.errors import Code, SemcacheError

_SINCE = re.compile(r"(\d{1,4})([dhm])")
_UNITS = {"d": "days", "h": "hours", "m": "minutes"}


def ago(text: str) -> datetime:
    """The moment of --since. Raises: SemcacheError(INVALID_DATA)."""
    found = _SINCE.fullmatch(text)
    if found is None:
        raise SemcacheError(Code.INVALID_DATA, "--since: must be a number with d, h or m: 7d, 12h, 30m")
    return datetime.now(UTC) - timedelta(**{_UNITS[found[2]]: int(found[1])})


__all__ = ["ago"]
