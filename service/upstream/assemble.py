"""A stream's events folded into the answer that the same request gets without streaming."""

from __future__ import annotations

from functools import cached_property
from operator import index
from typing import Any

from service.json_text import parse
from service.upstream.answer import Answer, Endpoint, from_body
from service.upstream.sse import Event

_GROWING = ("arguments", "input")
_FAILED = {"error", "response.failed", "response.incomplete", "response.cancelled"}


class StreamAssembler:
    """Fed with every event, then `end()` when the body ended as HTTP says it should.

    A stream is complete when each of `choices` choices had its finish_reason (for responses: when
    `response.completed` came) and either `[DONE]` or the end followed. Anything else is never an answer: SDKs
    do not notice a stream that breaks off.
    """

    def __init__(self, endpoint: Endpoint, choices: int = 1) -> None:
        self._endpoint = endpoint
        self._expected = choices
        self._head: dict[str, Any] = {}
        self._choices: dict[int, _Choice] = {}
        self._items: dict[int, Any] = {}
        self._response: dict[str, Any] | None = None
        self._failure: str | None = None
        self._ended = False

    def feed(self, event: Event) -> None:
        """Take one event; never raises, whatever the server sent."""
        if self._ended or self._failure:
            return
        if event.done:
            self._ended = True
            return
        try:
            data = parse(event.data)
            self._fold(data, data.get("type") or event.name)
        except (ValueError, TypeError, AttributeError, KeyError):
            self._failure = "stream_malformed"

    def end(self) -> None:
        """The body is at its regular end. Not to be called for a connection that was cut."""
        self._ended = True

    @property
    def incomplete(self) -> str | None:
        """Why there is no answer (yet), as a slug; None when the stream is complete."""
        reason = self._unfinished()
        return "stream_malformed" if reason is None and self._whole is None else reason

    @property
    def answer(self) -> Answer | None:
        """The complete answer; None while `incomplete` has a reason."""
        return None if self.incomplete else self._whole

    @cached_property
    def _whole(self) -> Answer | None:
        return from_body(self._endpoint, self._body())

    def _unfinished(self) -> str | None:
        if self._failure:
            return self._failure
        if not self._ended:
            return "stream_cut"
        if self._endpoint == "responses":
            return None if self._response else "stream_unfinished"
        finished = [c for c in self._choices.values() if c.fields.get("finish_reason")]
        whole = len(finished) == len(self._choices) >= self._expected
        return None if whole else "stream_unfinished"

    def _fold(self, data: dict[str, Any], kind: str | None) -> None:
        if kind in _FAILED or data.get("error"):
            self._failure = "stream_error"
        elif self._endpoint == "responses":
            self._fold_response(data, kind)
        else:
            self._fold_chunk(data)

    def _fold_response(self, data: dict[str, Any], kind: str | None) -> None:
        if kind == "response.output_item.done":
            self._items[index(data["output_index"])] = data["item"]
        elif kind == "response.completed":
            self._response = dict(data["response"])

    def _fold_chunk(self, chunk: dict[str, Any]) -> None:
        for name, value in chunk.items():
            if name != "choices" and (value is not None or name not in self._head):
                self._head[name] = value
        for choice in chunk.get("choices") or ():
            number = index(choice.get("index", 0))
            self._choices.setdefault(number, _Choice(number)).fold(choice)

    def _body(self) -> dict[str, Any]:
        if self._response is not None:
            items = [self._items[number] for number in sorted(self._items)]
            return self._response | {"output": self._response.get("output") or items}
        chat = self._endpoint == "chat"
        head = {"id": "", "object": "", "created": 0} | self._head
        head["object"] = "chat.completion" if chat else "text_completion"
        choices = [self._choices[number].body(chat=chat) for number in sorted(self._choices)]
        last = {name: head.pop(name) for name in ("usage", "system_fingerprint") if name in head}
        return head | {"choices": choices} | last


class _Choice:
    """One choice of a chat or text completion while it comes in."""

    def __init__(self, number: int) -> None:
        # Bodies show these where they are null; streams leave some out.
        self.fields: dict[str, Any] = {"index": number, "logprobs": None}
        self._message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
        self._tools: dict[int, dict[str, Any]] = {}
        self._text: list[str] = []

    def fold(self, choice: dict[str, Any]) -> None:
        for name, value in choice.items():
            if name == "delta":
                self._fold_delta(value or {})
            elif name == "text":
                self._text.append(_string(value or ""))
            elif name != "index":
                self.fields[name] = _combined(self.fields.get(name), value)

    def _fold_delta(self, delta: dict[str, Any]) -> None:
        for name, value in delta.items():
            if name == "tool_calls":
                for call in value or ():
                    _merge_call(self._tool(call), call)
            elif name == "function_call" and value:
                _merge_call(self._message.setdefault(name, {}), value)
            elif name == "role":
                self._message["role"] = value or self._message["role"]
            elif isinstance(value, str):
                self._grow(name, value)
            else:
                self._message[name] = _combined(self._message.get(name), value)

    def _grow(self, name: str, piece: str) -> None:
        pieces = self._message.get(name)
        if isinstance(pieces, _Pieces):
            pieces.append(piece)
        else:
            self._message[name] = _Pieces([piece])

    def _tool(self, call: dict[str, Any]) -> dict[str, Any]:
        number = call.get("index")
        if number is None:  # some servers number no calls: an id then begins the next one
            number = len(self._tools) if call.get("id") or not self._tools else max(self._tools)
        return self._tools.setdefault(index(number), {})

    def body(self, *, chat: bool) -> dict[str, Any]:
        """The choice as a body has it. Fields that come last in bodies come last here too."""
        if not chat:
            said: dict[str, Any] = {"text": "".join(self._text)}
        else:
            message = {name: _joined(value) for name, value in self._message.items()}
            message["content"] = message["content"] or None
            if self._tools:
                message["tool_calls"] = [_call(self._tools[number]) for number in sorted(self._tools)]
            said = {"message": message}
        return {"index": self.fields["index"], **said, **self.fields}


class _Pieces(list[str]):
    """A text that is still growing."""


def _merge_call(slot: dict[str, Any], call: dict[str, Any]) -> None:
    for name, value in call.items():
        if name == "index" or value is None or (value == "" and name in slot):
            continue
        if isinstance(value, dict):
            _merge_call(slot.setdefault(name, {}), value)
        elif name in _GROWING:
            slot.setdefault(name, _Pieces()).append(_string(value))
        elif name == "name" and slot.get(name) not in (None, value):
            slot[name] += value
        else:
            slot[name] = value


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a text is expected")
    return value


def _call(slot: dict[str, Any]) -> dict[str, Any]:
    call: dict[str, Any] = {"id": None, "type": "function"} | _joined(slot)
    if call["type"] == "function":
        call["function"] = {"name": None, "arguments": ""} | call.get("function", {})
    return call


def _combined(old: Any, new: Any) -> Any:
    if new is None or old is None:
        return old if new is None else new
    if isinstance(old, list) and isinstance(new, list):
        old += new  # it came out of an event and is ours
        return old
    if isinstance(old, dict) and isinstance(new, dict):
        return old | {name: _combined(old.get(name), value) for name, value in new.items()}
    return new


def _joined(value: Any) -> Any:
    if isinstance(value, _Pieces):
        return "".join(value)
    if isinstance(value, dict):
        return {name: _joined(item) for name, item in value.items()}
    return value


__all__ = ["StreamAssembler"]
