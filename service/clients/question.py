"""What a conversation asks, in the words of the data API: a prompt, and the scope that it is asked in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    prompt: str
    scope: Mapping[str, Any]


def ask(messages: Sequence[Message], *, scope: Mapping[str, Any], salt: Any) -> Question:
    """The question of these chat messages, which is the text of the last one within all that came before it.

    Where the last one is not a user's, or is more than text (a tool's result, an image), all of them are in the scope,
    so that only the same conversation is the same question. scope: further fields of the data API's scope. salt: JSON
    of whatever else must agree; only its SHA-256 is sent.
    """
    *history, last = messages
    text = _text(last.get("content")) if last.get("role") == "user" else None
    if text is not None and text.strip():
        salted = [salt, "last", _shape(last)]
        return Question(text, {**scope, "history": history, "salt": digest(salted)})
    spoken = (_text(m.get("content")) for m in reversed(messages) if m.get("role") == "user")
    label = next(filter(None, spoken), "(no text)")
    return Question(label, {**scope, "history": [*messages], "salt": digest([salt, "whole"])})


def digest(value: Any) -> str:
    """SHA-256 of the value's JSON, hexadecimal. Raises TypeError for what is not JSON: its name may not be its own."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("ascii")).hexdigest()


def _text(content: Any) -> str | None:
    """None where there is anything but text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not all(_is_text(part) for part in content):
        return None
    return "\n".join(part if isinstance(part, str) else part["text"] for part in content)


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or (part.get("type") == "text" and isinstance(part.get("text"), str))


def _shape(message: Message) -> dict[str, Any]:
    """The message without its texts."""
    content = message["content"]
    blank = "" if isinstance(content, str) else ["" if isinstance(p, str) else {**p, "text": ""} for p in content]
    return {**message, "content": blank}


__all__ = ["Message", "Question", "ask", "digest"]
