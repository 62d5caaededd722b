"""Token counts of streams: asked for on every miss, since they are what a later hit is worth, shown only if
asked.

Relayed bytes stay as they were but for the usage chunk of a client that did not ask for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from service.json_text import edit_object, parse
from service.upstream.sse import Event, Parser

_FRAME_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LONGEST_END = 4


def wants_usage(body: Mapping[str, Any]) -> bool:
    """Whether a streaming request asks for the usage chunk."""
    options = body.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


def ask_usage(raw: bytes, body: Mapping[str, Any]) -> bytes:
    """The streaming chat or completions request `raw`, whose parsed form is `body`, asking for usage."""
    if wants_usage(body):
        return raw
    options = body.get("stream_options")
    asked = (options if isinstance(options, dict) else {}) | {"include_usage": True}
    return edit_object(raw, add={"stream_options": asked})


class UsageFilter:
    """Takes the usage chunk out of a relayed stream. Give `flush()` after the last byte."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> bytes:
        """The bytes to relay now: whole events and comments; a part of one is held back until it is whole."""
        data, looked_at = self._rest, len(self._rest) - _LONGEST_END + 1
        data += chunk
        kept, at = [], 0
        for end in [found.end() for found in _FRAME_END.finditer(data, max(0, looked_at))]:
            frame = bytes(data[at:end])
            at = end
            if b'"usage"' not in frame or not any(map(_is_usage, Parser().feed(frame))):
                kept.append(frame)
        del data[:at]
        return b"".join(kept)

    def flush(self) -> bytes:
        """What is held back."""
        rest, self._rest = self._rest, bytearray()
        return bytes(rest)


def _is_usage(event: Event) -> bool:
    try:
        data = parse(event.data)
    except ValueError:
        return False
    return isinstance(data, dict) and data.get("choices") == [] and bool(data.get("usage"))


__all__ = ["UsageFilter", "ask_usage", "wants_usage"]
