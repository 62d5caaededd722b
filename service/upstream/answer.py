"""The stored answer: the body that the model server gives to a request that does not stream.

One stored answer serves streams and bodies, whichever it came from. A hit replaces id and time only.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np
import orjson

from service.json_text import dumps, parse
from service.policy.comparison import Said

Endpoint = Literal["chat", "completions", "responses", "embeddings"]
PATHS: dict[Endpoint, str] = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "responses": "/v1/responses",
    "embeddings": "/v1/embeddings",
}

VERSION = 1
MOST_TOKENS = 10**9  # of a prompt or an answer: both together fit an integer of Postgres

LISTS: dict[Endpoint, str] = {
    "chat": "choices",
    "completions": "choices",
    "responses": "output",
    "embeddings": "data",
}
REASONING = ("reasoning", "reasoning_content")
# Members of a body that repeat the request but are no part of its key: the next caller must not see the
# first's.
ECHOED = ("metadata", "user", "safety_identifier", "prompt_cache_key")

_ENDED = {"stop", "tool_calls", "function_call"}
_UNFINISHED = {"length", "content_filter", "error", "abort", "repetition"}
_CALL_ITEMS = {"function_call", "custom_tool_call"}
_OWN_ITEMS = {"message", "reasoning", *_CALL_ITEMS}


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer of one endpoint. `body` is JSON; embeddings are base64 of little-endian float32."""

    endpoint: Endpoint
    body: dict[str, Any]

    @property
    def items(self) -> list[dict[str, Any]]:
        """Its choices, output items or vectors."""
        return cast("list[dict[str, Any]]", self.body[LISTS[self.endpoint]])

    @property
    def model(self) -> str | None:
        """The model's name as the server spelt it."""
        return self.body.get("model")

    @property
    def usage(self) -> dict[str, Any] | None:
        """Token counts as the server gave them; None where it gave none."""
        usage = self.body.get("usage")
        return usage if isinstance(usage, dict) else None

    @property
    def tokens(self) -> tuple[int, int]:
        """Prompt and completion tokens, 0 where unknown, in either API's names."""
        usage = self.usage or {}
        return _count(usage, "prompt_tokens", "input_tokens"), _count(usage, "completion_tokens", "output_tokens")

    @property
    def text(self) -> str:
        """What the model said in words, for people and for comparing answers; "" for pure tool calls."""
        return "".join(_texts(self))

    @property
    def said(self) -> Said:
        """What comparing it with another answer looks at."""
        return Said(self.text, tuple(_calls(self)))

    def to_payload(self) -> dict[str, Any]:
        """The form that is stored, as JSON-able value."""
        return {"version": VERSION, "endpoint": self.endpoint, "body": self.body}

    @staticmethod
    def from_payload(payload: Any) -> Answer | None:
        """The answer of a stored payload; None, so a miss, for a version or form that is not known."""
        if not isinstance(payload, dict) or payload.get("version") != VERSION:
            return None
        endpoint = payload.get("endpoint")
        if endpoint not in get_args(Endpoint) or not _has_form(endpoint, payload.get("body")):
            return None
        return Answer(cast("Endpoint", endpoint), payload["body"])


def from_body(endpoint: Endpoint, body: Any) -> Answer | None:
    """The answer in a model server's JSON body; None where the body is not of the endpoint's form."""
    if not _has_form(endpoint, body):
        return None
    kept = dict(body)
    if endpoint == "embeddings":
        kept["data"] = [item | {"embedding": _packed(item["embedding"])} for item in body["data"]]
        if any(item["embedding"] is None for item in kept["data"]):
            return None
    for name in ECHOED:
        if kept.get(name) is not None:
            kept[name] = {} if name == "metadata" else None
    return Answer(endpoint, kept)


def from_raw(endpoint: Endpoint, raw: bytes) -> Answer | None:
    """The answer in the bytes of a body; None where they are no JSON or not of the endpoint's form."""
    try:
        # Vectors are long lists of floats: orjson reads them ten times faster, and there is nothing it could lose.
        body = orjson.loads(raw) if endpoint == "embeddings" else parse(raw)
    except ValueError:
        return None
    return from_body(endpoint, body)


def text_answer(endpoint: Endpoint, text: str, model: str) -> Answer:
    """An answer made from plain text, for entries that no model server of ours wrote. Not for embeddings."""
    if endpoint == "responses":
        part = {"type": "output_text", "text": text, "annotations": []}
        item = {"id": "msg_0", "type": "message", "role": "assistant", "status": "completed"}
        head = {"id": "", "object": "response", "created_at": 0, "status": "completed", "model": model}
        settled: dict[str, Any] = {
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
        }
        tools = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        return Answer(endpoint, head | settled | tools | {"output": [item | {"content": [part]}]})
    chat = endpoint == "chat"
    said = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    choice = {"index": 0, **said, "logprobs": None, "finish_reason": "stop"}
    kind = "chat.completion" if chat else "text_completion"
    return Answer(endpoint, {"id": "", "object": kind, "created": 0, "model": model, "choices": [choice]})


def storable(answer: Answer, request: Mapping[str, Any] | None = None) -> str | None:
    """Why the answer to the body `request` must not be stored, as a slug; None where it may.

    A refusal in words is stored as any text: it is what the model says to this prompt. One that a filter made
    ends with `content_filter` and is not.
    """
    if answer.body.get("error"):
        return "upstream_error"
    if answer.endpoint == "embeddings":
        asked = request or {}
        is_float32 = asked.get("embed_dtype") in (None, "float32")
        is_little = asked.get("endianness") in (None, "native", "little")
        return None if is_float32 and is_little else "vector_encoding"
    if answer.endpoint == "responses":
        return _unstorable_response(answer.body)
    return next((reason for c in answer.body["choices"] if (reason := _unstorable_choice(c))), None)


def vector(item: dict[str, Any]) -> list[float]:
    """The numbers of a stored embedding."""
    return cast("list[float]", np.frombuffer(base64.b64decode(item["embedding"]), "<f4").tolist())


def _has_form(endpoint: Any, body: Any) -> bool:
    if not isinstance(body, dict):
        return False
    items = body.get(LISTS[cast("Endpoint", endpoint)])
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        return False
    if endpoint == "chat":
        return bool(items) and all(_is_message(item.get("message")) for item in items)
    if endpoint == "completions":
        return bool(items) and all(isinstance(item.get("text"), str) for item in items)
    return endpoint == "responses" or all("embedding" in item for item in items)


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    calls = value.get("tool_calls") or []
    return isinstance(calls, list) and all(isinstance(call, dict) for call in calls)


def _packed(embedding: Any) -> str | None:
    if isinstance(embedding, str):
        return embedding if _is_float32(embedding) else None
    if not isinstance(embedding, list) or not all(_is_finite(x) for x in embedding):
        return None
    return base64.b64encode(np.array(embedding, "<f4").tobytes()).decode()


def _is_float32(packed: str) -> bool:
    try:
        raw = base64.b64decode(packed, validate=True)
    except binascii.Error:
        return False
    return len(raw) % 4 == 0 and bool(np.isfinite(np.frombuffer(raw, "<f4")).all())


def _is_finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _count(usage: Mapping[str, Any], *names: str) -> int:
    """The first of these that is a count; what no model could read or say is none."""
    given = (usage.get(name) for name in names)
    return next((count for count in given if type(count) is int and 0 < count <= MOST_TOKENS), 0)


def _texts(answer: Answer) -> Iterator[str]:
    for item in answer.items:
        if answer.endpoint == "completions":
            yield item["text"]
        elif answer.endpoint == "chat":
            yield from _words(item["message"].get("content"))
            yield from _words(item["message"].get("refusal"))
        elif answer.endpoint == "responses" and item.get("type") == "message":
            yield from _words(item.get("content"))


def _calls(answer: Answer) -> Iterator[tuple[str, str]]:
    if answer.endpoint == "chat":
        for message in (item["message"] for item in answer.items):
            named = [c.get("function") or c.get("custom") for c in message.get("tool_calls") or ()]
            yield from (_call(one) for one in [*named, message.get("function_call")] if isinstance(one, dict))
    elif answer.endpoint == "responses":
        yield from (_call(item) for item in answer.items if item.get("type") in _CALL_ITEMS)


def _call(function: dict[str, Any]) -> tuple[str, str]:
    arguments = function.get("arguments", function.get("input"))
    return str(function.get("name")), arguments if isinstance(arguments, str) else dumps(arguments)


def _words(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        said = part.get("text") or part.get("refusal") if isinstance(part, dict) else None
        if isinstance(said, str):
            yield said


def _unstorable_choice(choice: dict[str, Any]) -> str | None:
    finish = choice.get("finish_reason")
    if finish not in _ENDED:
        known = finish if finish in _UNFINISHED else "unknown" if finish else "missing"
        return f"finish_reason_{known}"
    message = choice.get("message") or {}
    if message.get("audio"):
        return "server_state"  # its id is a reference to audio that the server forgets
    if message.get("tool_calls") or message.get("function_call"):
        return None
    said = [*_words(message.get("content")), *_words(message.get("refusal")), choice.get("text") or ""]
    return None if "".join(said).strip() else "empty_answer"


def _unstorable_response(body: dict[str, Any]) -> str | None:
    if body.get("status", "completed") != "completed" or body.get("incomplete_details"):
        return "response_incomplete"
    kinds = {item.get("type") for item in body["output"]}
    if not kinds <= _OWN_ITEMS:
        return "server_tool"  # what a server-side tool found ages by rules of its own
    if kinds & _CALL_ITEMS:
        return None
    return None if "".join(_texts(Answer("responses", body))).strip() else "empty_answer"


__all__ = [
    "ECHOED",
    "LISTS",
    "PATHS",
    "REASONING",
    "VERSION",
    "Answer",
    "Endpoint",
    "from_body",
    "from_raw",
    "storable",
    "text_answer",
    "vector",
]
