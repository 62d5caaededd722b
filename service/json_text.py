"""JSON in, out and edited, where any JSON text must survive: U+0000, lone surrogates, integers of any size."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from json.decoder import scanstring  # type: ignore[attr-defined] # absent from typeshed
from math import isfinite
from typing import Any

import orjson

_WHITE = " \t\n\r"


def dump(value: Any) -> bytes:
    """Compact JSON in UTF-8, of a value whose numbers are finite.

    Lone surrogates stand as escapes, so the bytes are always valid.
    """
    try:
        return orjson.dumps(value)
    except TypeError:  # what orjson does not know
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def dumps(value: Any) -> str:
    """As `dump`, but text."""
    return dump(value).decode()


def parse(raw: bytes | str) -> Any:
    """The value of a JSON text. Raises ValueError where it is none, as NaN, or cannot be held: 1e999, deep nesting."""
    try:
        return _DECODER.decode(raw if isinstance(raw, str) else raw.decode("utf-8", "surrogatepass"))
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is no number that can be held")
    return number


# Not orjson's: it knows no lone surrogates and makes floats of integers beyond 64 bits.
_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def edit_object(raw: bytes, *, drop: Collection[str] = (), add: Mapping[str, Any] | None = None) -> bytes:
    """The JSON object `raw` without the members `drop` and with those of `add`; the rest keeps its bytes.

    Numbers stay as they were spelt and escapes as they were escaped, which parsing and dumping would not do.
    """
    added = add or {}
    text = raw.decode("utf-8", "surrogatepass")
    kept = [member for name, member in _members(text) if name not in drop and name not in added]
    new = [f"{dump(name).decode()}:{dump(value).decode()}" for name, value in added.items()]
    return ("{" + ",".join(kept + new) + "}").encode("utf-8", "surrogatepass")


def _members(text: str) -> Iterator[tuple[str, str]]:
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "}":
        start = at
        name, at = scanstring(text, at + 1)
        _, at = _DECODER.raw_decode(text, _skip(text, _skip(text, at) + 1))
        yield name, text[start:at]
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    while text[at] in _WHITE:
        at += 1
    return at


__all__ = ["dump", "dumps", "edit_object", "parse"]
