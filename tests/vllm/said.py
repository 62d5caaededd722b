"""What a client of the OpenAI SDK sees of an answer, whichever way it came."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from openai import AsyncOpenAI

from tests.vllm.server import MODEL


@dataclass
class Choice:
    content: str = ""
    reasoning: str = ""
    calls: dict[int, list[str]] = field(default_factory=dict)
    logprobs: list[Any] = field(default_factory=list)
    finish: str | None = None


@dataclass
class Said:
    """One answer, equal to another that a client cannot tell apart. `headers` and `id` do not count."""

    choices: dict[int, Choice]
    usage: dict[str, Any] | None
    model: str
    headers: Any = field(compare=False)
    id: str = field(compare=False)

    @property
    def cache(self) -> str | None:
        found: str | None = self.headers.get("x-cache")
        return found

    @property
    def text(self) -> str:
        return self.choices[0].content


async def ask_chat(client: AsyncOpenAI, messages: Any, *, stream: bool = False, **fields: Any) -> Said:
    """One chat request; any field of vLLM's may be given, and `extra_headers`."""
    headers = fields.pop("extra_headers", None)
    given: dict[str, Any] = {"model": MODEL, "messages": messages, "extra_body": fields, "extra_headers": headers}
    if not stream:
        raw = await client.chat.completions.with_raw_response.create(**given)
        body = raw.parse()
        return Said({c.index: _whole(c) for c in body.choices}, _shown(body.usage), body.model, raw.headers, body.id)
    events = await client.chat.completions.create(**given, stream=True, stream_options={"include_usage": True})
    chunks = [chunk async for chunk in events]
    choices: dict[int, Choice] = {}
    for chunk in chunks:
        for piece in chunk.choices:
            _grow(choices.setdefault(piece.index, Choice()), piece)
    assert {(chunk.id, chunk.model) for chunk in chunks} == {(chunks[0].id, chunks[0].model)}
    return Said(choices, _shown(chunks[-1].usage), chunks[0].model, events.response.headers, chunks[0].id)


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


def _shown(usage: Any) -> dict[str, Any] | None:
    shown: dict[str, Any] | None = usage.model_dump(exclude_none=True) if usage else None
    return shown


__all__ = ["Choice", "Said", "ask_chat"]
