"""Server-Sent Events as the HTML standard defines them (section 9.2): bytes in, events out, and back."""

from __future__ import annotations

import re
from dataclasses import dataclass

DONE = b"data: [DONE]\n\n"

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its data lines joined by line feeds, and the name of its `event:` line."""

    data: str
    name: str | None = None

    @property
    def done(self) -> bool:
        """Whether this is the `[DONE]` that ends a stream of the OpenAI API."""
        return self.data.strip() == "[DONE]"


class Parser:
    """An incremental parser; chunks may end anywhere, also inside a line end or a character.

    An event without its closing blank line is never given out: a broken-off stream ends with whole events.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._after_return = False
        self._first = True
        self._data: list[str] = []
        self._name: str | None = None

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that `chunk` completes."""
        if self._after_return and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_return = False
        if b"\n" not in chunk and b"\r" not in chunk:
            self._pieces.append(chunk)
            return []
        self._after_return = chunk.endswith(b"\r")
        *lines, rest = _LINE_END.split(b"".join((*self._pieces, chunk)))
        self._pieces = [rest]
        return [event for line in lines if (event := self._line(line))]

    def _line(self, line: bytes) -> Event | None:
        if self._first:
            self._first, line = False, line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        if field == b"data":
            self._data.append(text)
        elif field == b"event":
            self._name = text
        return None

    def _dispatch(self) -> Event | None:
        data, name = self._data, self._name
        self._data, self._name = [], None
        return Event("\n".join(data), name or None) if data else None


def encode(data: bytes, name: str | None = None) -> bytes:
    """The bytes of one event; line ends inside `data` become further data lines."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + b"\ndata: ".join(_LINE_END.split(data)) + b"\n\n"


__all__ = ["DONE", "Event", "Parser", "encode"]
