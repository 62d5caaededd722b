"""A list of messages as the last user turn and everything around it."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unicodedata import combining

from service.identity.canonical import CANONICAL_VERSION, digest, hexdigest
from service.identity.messages import TEXT_PARTS, MessageReader, malformed
from service.identity.scope import Namespace
from service.identity.tier import Reason

_SYSTEM_ROLES = ("system", "developer")
_TALKERS = ("user", "assistant")
# A fence, or an indented line after what opens a block, or that is an item of a list.
_BLOCK = re.compile(r"```|[:{\[(][ \t\r]*\n[ \t]+\S|\n[ \t]+(?:[-*+\u2022]|\d+[.)])[ \t]+\S")
_VERBATIM = re.compile(r"`[^`\n]+`|\"[^\"\n]+\"|(?<!\w)'[^'\n]+'(?!\w)")
_MOST_MARKS = 30
_SIGNS = re.compile(rf"[^\w\s\x00-\u02ff]{{{_MOST_MARKS + 1},}}")
_TOOL_RESULTS = ("tool", "function", "function_call_output", "custom_tool_call_output")


@dataclass(frozen=True, slots=True)
class Turn:
    """One user message and where it stands: the digests of the message and of the messages before it."""

    system: str | None
    before: str | None
    said: str

    def key(self, namespace: Namespace) -> bytes:
        place = [namespace.tenant, namespace.cache, self.system, self.before, self.said]
        return digest([CANONICAL_VERSION, "turn", *place])


@dataclass(frozen=True, slots=True)
class Context:
    """How much of the talk before the last user message must be the same.

    `turns` is how many of the last user messages count, with what follows each; None for all. Where `rewritten`, a talk
    that is text alone counts as its `question`: the last user message in a form that can be understood alone.
    """

    turns: int | None = None
    rewritten: bool = False
    question: str | None = None


Dialogue = tuple[tuple[str, str], ...]
WHOLE = Context()


@dataclass(frozen=True, slots=True)
class Spoken:
    """What the messages or the prompt of a request give to its identity.

    `said` is the digest of the last user message as sent, with the talk before it where the scope has not all of that;
    `parts` those of the parts of the scope around it. `last` is the last user turn, `earlier` the one before it.
    `dialogue` are roles and texts of a talk whose last question is to be rewritten.
    """

    said: str
    text: str | None
    exact: Reason | None = None
    bypass: Reason | None = None
    parts: Mapping[str, str] = field(default_factory=dict)
    last: Turn | None = None
    earlier: Turn | None = None
    dialogue: Dialogue = ()


def read_messages(raw: Any, *, trust_urls: bool, instructions: Sequence[Any] = (), context: Context = WHOLE) -> Spoken:
    """Splits messages at the last user message. `instructions` stand before them, in the system part.

    Raises SemcacheError where they have not the form of the API.
    """
    if not isinstance(raw, list) or not raw:
        raise malformed("The messages", "must be a list that is not empty")
    reader = MessageReader(trust_urls=trust_urls)
    messages = [reader.read(message) for message in raw]
    first = next((i for i, m in enumerate(messages) if m.get("role") not in _SYSTEM_ROLES), len(messages))
    users = [i for i, m in enumerate(messages) if m.get("role") == "user"]
    at = users[-1] if users else len(messages)

    head = [*instructions, *messages[:first]]
    system = hexdigest(head) if head else None
    history = messages[first:at]
    before = _digest_of(history)
    dialogue = _dialogue(history, messages[at:]) if context.rewritten else ()
    kept = [] if dialogue else _last_turns(history, context.turns)
    parts = _parts(context, system, _digest_of(kept))
    if not users:
        parts["last_turn"] = hexdigest(None)
        return Spoken(hexdigest(None), None, _reason_after(messages), reader.bypass, parts)

    message, after = messages[at], messages[at + 1 :]
    if after or len(message) != 2 or not isinstance(message.get("content"), str):
        parts["last_turn"] = hexdigest([_shape(message), after])
    plain = _text(message.get("content"))
    said, text = hexdigest(message), semantic_text(plain)
    parts |= layout(plain)
    exact = _reason_after(after) or _reason_in(message.get("content"), text)
    if dialogue and exact is None:
        text = semantic_text(context.question or "")
        exact = None if text else Reason.NOT_REWRITTEN
    earlier = None
    if len(users) > 1:
        then = users[-2]
        earlier = Turn(system, _digest_of(messages[first:then]), hexdigest(messages[then]))
    whole = said if len(kept) == len(history) else hexdigest([before, said])
    return Spoken(whole, text, exact, reader.bypass, parts, Turn(system, before, said), earlier, dialogue)


def semantic_text(text: str) -> str | None:
    """NFC, each run of white space one space, none at the ends; case as it is. None if nothing is left, or if a letter
    has more marks than any text's (UAX #15, section 13): to order them takes the square of their number."""
    if not text.isascii() and any(sum(map(bool, map(combining, run))) > _MOST_MARKS for run in _SIGNS.findall(text)):
        return None
    return " ".join(unicodedata.normalize("NFC", text).split()) or None


def layout(text: str) -> dict[str, str]:
    """The part of the scope that says how the lines of code and outlines are indented, and what white space code and
    quotations in a line hold, of which the semantic text has nothing left; none where there is no such thing."""
    kept = [*_indents(text), *(span for span in _VERBATIM.findall(text) if " ".join(span.split()) != span)]
    return {"layout": hexdigest(kept)} if any(kept) else {}


def _indents(text: str) -> list[str]:
    if "\n" not in text or not _BLOCK.search(text):
        return []
    lines = [line for line in textwrap.dedent(text).splitlines() if line]
    return [line[: len(line) - len(line.lstrip())] for line in lines]


def _parts(context: Context, system: str | None, history: str | None) -> dict[str, str]:
    """Entries of one context are no neighbours of another's, which may promise more."""
    other = None if context == WHOLE else hexdigest("rewritten" if context.rewritten else context.turns)
    parts = {"context": other, "system": system, "history": history}
    return {name: part for name, part in parts.items() if part}


def _last_turns(history: list[Any], turns: int | None) -> list[Any]:
    """The end of the talk from the user message on that begins its last `turns` - 1 turns."""
    if turns is None:
        return history
    users = [i for i, m in enumerate(history) if m.get("role") == "user"]
    if turns - 1 > len(users):
        return history
    return history[users[len(users) - turns + 1] :] if turns > 1 else []


def _dialogue(history: list[Any], last: list[Any]) -> Dialogue:
    """Roles and texts of a talk; nothing where there is none, or where a message of it is more than text."""
    lines = [_line(message) for message in (*history, *last)]
    whole = tuple(line for line in lines if line)
    return whole if history and len(last) == 1 and len(whole) == len(lines) else ()


def _line(message: dict[str, Any]) -> tuple[str, str] | None:
    content = message.get("content")
    parts = [content] if isinstance(content, str) else content or ()
    texts = [part if isinstance(part, str) else part.get("text") for part in parts if _is_text(part) or _is_said(part)]
    if message.get("role") not in _TALKERS or message.get("tool_calls") or len(texts) < max(len(parts), 1):
        return None
    return message["role"], "\n".join(texts)


def _is_said(part: Any) -> bool:
    return part.get("type") == "output_text" and isinstance(part.get("text"), str)


def _digest_of(messages: list[Any]) -> str | None:
    return hexdigest(messages) if messages else None


def _text(content: Any) -> str:
    if not isinstance(content, list):
        return content or ""
    return "\n".join(part if isinstance(part, str) else part["text"] for part in content if _is_text(part))


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or part.get("type") in TEXT_PARTS


def _shape(message: dict[str, Any]) -> dict[str, Any]:
    """The message without its texts, which similarity compares."""
    content = message.get("content")
    if isinstance(content, str):
        return message | {"content": ""}
    if isinstance(content, list):
        return message | {"content": [_part_shape(part) for part in content]}
    return message


def _part_shape(part: Any) -> Any:
    if isinstance(part, str):
        return ""
    return part | {"text": ""} if _is_text(part) else part


def _reason_after(messages: list[dict[str, Any]]) -> Reason | None:
    """Why what follows the last user message, or stands without one, allows exact hits only."""
    if not messages:
        return None
    last = messages[-1]
    if last.get("role", last.get("type")) in _TOOL_RESULTS:
        return Reason.TOOL_RESULT_LAST
    return Reason.LAST_TURN_NOT_USER


def _reason_in(content: Any, text: str | None) -> Reason | None:
    if isinstance(content, list) and not all(_is_text(part) for part in content):
        return Reason.NON_TEXT_LAST_TURN
    return Reason.NO_TEXT if text is None else None


__all__ = ["Context", "Dialogue", "Spoken", "Turn", "layout", "read_messages", "semantic_text"]
