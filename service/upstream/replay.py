"""A stored answer given again: as a body, or as the stream that the model server would have sent.

Streams follow vLLM: one role chunk, deltas, a terminal chunk with finish_reason for each choice, then usage
where it was asked for, then `[DONE]`. The Responses API has typed events and no `[DONE]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

from service.json_text import dump
from service.upstream import sse
from service.upstream.answer import ECHOED, REASONING, Answer, Endpoint, vector
from service.upstream.replay_responses import response_events

# Long enough to be cheap, short enough for clients that bound the length of a line.
PIECE = 256

_PREFIX: dict[Endpoint, str] = {
    "chat": "chatcmpl-",
    "completions": "cmpl-",
    "responses": "resp_",
    "embeddings": "embd-",
}
_PLACED = {"id", "object", "created", "model", "choices", "usage", "metrics", "system_fingerprint", "service_tier"}


def replay_body(
    answer: Answer, *, created: int, request: Mapping[str, Any] | None = None, identifier: str | None = None
) -> bytes:
    """The body of a hit. `created` is now in Unix seconds; `request` the body that is answered.

    Members and their order are the stored body's; id and time are new, and members that repeat the request
    repeat this one. `identifier` replaces the random id.
    """
    return dump(_fresh(answer, created, request or {}, identifier))


def replay_stream(
    answer: Answer,
    *,
    created: int,
    request: Mapping[str, Any] | None = None,
    identifier: str | None = None,
) -> Iterator[bytes]:
    """The server-sent events of a hit, usage included where `request` says `stream_options.include_usage`."""
    body = _fresh(answer, created, request or {}, identifier)
    if answer.endpoint == "responses":
        for data in response_events(body, PIECE):
            yield sse.encode(dump(data), data["type"])
        return
    options = (request or {}).get("stream_options") or {}
    for chunk in _chunks(body, chat=answer.endpoint == "chat", with_usage=bool(options.get("include_usage"))):
        yield sse.encode(dump(chunk))
    yield sse.DONE


def _fresh(answer: Answer, created: int, request: Mapping[str, Any], identifier: str | None) -> dict[str, Any]:
    body = dict(answer.body)
    time = {name: created for name in ("created", "created_at", "completed_at") if body.get(name) is not None}
    echo = {name: request[name] for name in ECHOED if name in body and request.get(name) is not None}
    body |= time | echo
    if "id" in body:
        body["id"] = identifier or _PREFIX[answer.endpoint] + uuid4().hex
    if answer.endpoint == "embeddings" and request.get("encoding_format") != "base64":
        body["data"] = [item | {"embedding": vector(item)} for item in body["data"]]
    return body


def _chunks(body: dict[str, Any], *, chat: bool, with_usage: bool) -> Iterator[dict[str, Any]]:
    kind = "chat.completion.chunk" if chat else "text_completion"
    head = {"id": body.get("id"), "object": kind, "created": body.get("created"), "model": body.get("model")}
    extra = {name: value for name, value in body.items() if name not in _PLACED and value is not None}
    said = ("system_fingerprint", "service_tier")
    tail = {name: body[name] for name in said if body.get(name) is not None}
    for choice in body["choices"]:
        for piece in _chat_choice(choice) if chat else _text_choice(choice):
            last = tail if piece["finish_reason"] else {}
            yield head | extra | {"choices": [{"index": choice.get("index", 0)} | piece]} | last
            extra = {}
    if with_usage and body.get("usage"):
        # Clients take the fingerprint from the last chunk, whichever that is; vLLM's metrics come with usage only.
        measured = {"metrics": body["metrics"]} if body.get("metrics") is not None else {}
        yield head | {"choices": [], "usage": body["usage"]} | tail | measured


def _chat_choice(choice: dict[str, Any]) -> Iterator[dict[str, Any]]:
    nothing = {"logprobs": None} if "logprobs" in choice else {}
    logprobs = choice.get("logprobs")
    said = nothing | {"logprobs": logprobs} if logprobs else nothing
    message = choice["message"]
    carried = "refusal" if message.get("refusal") and not message.get("content") else "content"
    for name, delta in _deltas(message, whole=bool(logprobs)):
        used = said if name == carried else nothing
        yield {"delta": delta} | used | {"finish_reason": None}
    yield {"delta": {}} | nothing | _ending(choice, {"index", "message", "logprobs"})


def _text_choice(choice: dict[str, Any]) -> Iterator[dict[str, Any]]:
    nothing = {"logprobs": None} if "logprobs" in choice else {}
    logprobs = choice.get("logprobs")
    for piece in [choice["text"]] if logprobs else pieces(choice["text"]):
        yield ({"text": piece} | nothing | ({"logprobs": logprobs} if logprobs else {}) | {"finish_reason": None})
    yield {"text": ""} | nothing | _ending(choice, {"index", "text", "logprobs"})


def _ending(choice: dict[str, Any], placed: set[str]) -> dict[str, Any]:
    return {name: value for name, value in choice.items() if name not in placed}


def _deltas(message: dict[str, Any], *, whole: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "role", {"role": message.get("role") or "assistant", "content": ""}
    placed = {"role", "content", "refusal", "tool_calls", "function_call", *REASONING}
    for name, value in message.items():
        if name not in placed and value is not None:
            yield name, {name: value}
    for name in (*REASONING, "content", "refusal"):
        value = message.get(name)
        if isinstance(value, str):
            for piece in [value] if whole and value else pieces(value):
                yield name, {name: piece}
        elif value is not None:
            yield name, {name: value}
    for index, call in enumerate(message.get("tool_calls") or ()):
        for delta in _tool_deltas(call):
            yield "tool_calls", {"tool_calls": [{"index": index} | delta]}
    if call := message.get("function_call"):
        yield "function_call", {"function_call": call}


def _tool_deltas(call: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind = call.get("type") or "function"
    growing = "arguments" if kind == "function" else "input"
    inner = call.get(kind) or {}
    yield call | {"type": kind, kind: inner | {growing: ""}}
    for piece in pieces(inner.get(growing) or ""):
        yield {kind: {growing: piece}}


def pieces(text: str, size: int = PIECE) -> Iterator[str]:
    """`text` in parts of at most `size` characters; none for the empty text."""
    return (text[at : at + size] for at in range(0, len(text), size))


__all__ = ["PIECE", "pieces", "replay_body", "replay_stream"]
