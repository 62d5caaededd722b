"""Texts as Postgres can hold them: its type text takes neither U+0000 nor halves of surrogate pairs."""

from __future__ import annotations

import json
import re

_UNHELD = re.compile("[\x00\ud800-\udfff]")


def to_columns(text: str) -> tuple[str, str | None]:
    """The text for people, and the same as a JSON string where the first lost something."""
    readable = _UNHELD.sub("\ufffd", text)
    return readable, None if readable == text else json.dumps(text)


def from_columns(readable: str, verbatim: str | None) -> str:
    """The text as it was; `verbatim` as the driver reads the column, a str."""
    return readable if verbatim is None else verbatim


__all__ = ["from_columns", "to_columns"]
