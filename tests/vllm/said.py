"""What a client of the OpenAI SDK sees of an answer, whichever way it came."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from openai import AsyncOpenAI

from tests.vllm.server import MODEL

TRIES = 300


@dataclass
class Seen:
    """One answer, equal to another that a client cannot tell apart. `headers` and `id` do not count."""

    headers: Any = field(compare=False)
    id: str = field(compare=False)
    model: str
    usage: dict[str, Any] | None

    @property
    def cache(self) -> str | None:
        found: str | None = self.headers.get("x-cache")
        return found


@dataclass
class Choice:
    content: str = ""
    reasoning: str = ""
    calls: dict[int, list[str]] = field(default_factory=dict)
    logprobs: list[Any] = field(default_factory=list)
    finish: str | None = None


@dataclass
class Said(Seen):
    """An answer to a chat."""

    choices: dict[int, Choice]

    @property
    def text(self) -> str:
        return self.choices[0].content


SeenT = TypeVar("SeenT", bound=Seen)


async def kept(ask: Callable[[], Awaitable[SeenT]]) -> SeenT:
    """The stored answer: it may be stored just after it was given, and is shared until then."""
    for _ in range(TRIES):
        seen = await ask()
        if seen.cache == "HIT":
            return seen
        assert seen.cache == "COALESCED"
    raise AssertionError("the answer was not stored")


async def ask_chat(client: AsyncOpenAI, messages: Any, *, stream: bool = False, **fields: Any) -> Said:
    """One chat request; any field of vLLM's may be given, and `extra_headers`."""
    headers = fields.pop("extra_headers", None)
    given: dict[str, Any] = {"model": MODEL, "messages": messages, "extra_body": fields, "extra_headers": headers}
    if not stream:
        raw = await client.chat.completions.with_raw_response.create(**given)
        body = raw.parse()
        choices = {choice.index: _whole(choice) for choice in body.choices}
        return Said(raw.headers, body.id, body.model, shown_usage(body.usage), choices)
    events = await client.chat.completions.create(**given, stream=True, stream_options={"include_usage": True})
    chunks = [chunk async for chunk in events]
    choices = {}
    for chunk in chunks:
        for piece in chunk.choices:
            _grow(choices.setdefault(piece.index, Choice()), piece)
    ((identifier, model),) = {(chunk.id, chunk.model) for chunk in chunks}
    return Said(events.response.headers, identifier, model, shown_usage(chunks[-1].usage), choices)


def _whole(choice: Any) -> Choice:
    message = choice.message
    calls = {n: [call.function.name, call.function.arguments] for n, call in enumerate(message.tool_calls or ())}
    logprobs = _logprobs(choice)
    return Choice(message.content or "", _reasoning(message), calls, logprobs, choice.finish_reason)


def _grow(choice: Choice, piece: Any) -> None:
    delta = piece.delta
    choice.content += delta.content or ""
    choice.reasoning += _reasoning(delta)
    choice.logprobs += _logprobs(piece)
    choice.finish = piece.finish_reason or choice.finish
    for call in delta.tool_calls or ():
        name, arguments = choice.calls.setdefault(call.index, ["", ""])
        choice.calls[call.index] = [call.function.name or name, arguments + (call.function.arguments or "")]


def _reasoning(message: Any) -> str:
    return (message.model_extra or {}).get("reasoning") or ""


def _logprobs(choice: Any) -> list[Any]:
    return [token.model_dump() for token in choice.logprobs.content or ()] if choice.logprobs else []


def shown_usage(usage: Any) -> dict[str, Any] | None:
    shown: dict[str, Any] | None = usage.model_dump(exclude_none=True) if usage else None
    return shown


__all__ = ["Choice", "Said", "Seen", "ask_chat", "kept", "shown_usage"]
