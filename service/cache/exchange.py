"""One call to the model server, and the answer that its bytes grow into."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from typing import Any, Protocol

from service.cache.call import Call
from service.cache.flights import Head
from service.telemetry.tracing import Span, begin
from service.upstream.answer import Answer, Endpoint, from_raw
from service.upstream.assemble import StreamAssembler
from service.upstream.client import UpstreamClient, UpstreamError, UpstreamResponse
from service.upstream.headers import Headers
from service.upstream.sse import Parser
from service.upstream.usage import ask_usage

LONGEST_MS = 1e9
_REFUSED = (400, 422)
_OPERATIONS: dict[Endpoint, str] = {
    "chat": "chat",
    "completions": "text_completion",
    "responses": "chat",
    "embeddings": "embeddings",
}


class Response(Protocol):
    """What an answer is read from: the model server's response, or what another replica shows of one."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Headers: ...

    @property
    def streams(self) -> bool: ...

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """Raises UpstreamError."""

    def close(self) -> None: ...


class Exchange:
    """A response that is read once. After `chunks` has ended, `answer` says whether it was a whole one."""

    def __init__(self, call: Call, response: Response, begun: float, max_bytes: int, span: Span) -> None:
        self._span = span
        self._call, self._response, self._room = call, response, max_bytes
        self._begun = self._ended = begun
        self.head = Head(response.status, response.headers, response.streams)
        self._parser, self._assembler = Parser(), StreamAssembler(call.endpoint, _expected(call))
        self._body: list[bytes] = []
        self.answer: Answer | None = None
        self.incomplete: str | None = "stream_cut"

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The bytes as they come; each is looked at after it was given out. Raises UpstreamError."""
        try:
            async for chunk in self._response.chunks():
                yield chunk
                self._fold(chunk)
            self._finish()
        finally:
            self._end_span()

    def close(self) -> None:
        self._response.close()
        self._end_span()

    @property
    def spent(self) -> int:
        """Tokens that the model counted; 0 where nobody said."""
        return sum(self.answer.tokens) if self.answer else 0

    @property
    def cost_ms(self) -> float:
        """What the answer cost the model in time: as vLLM measured it, else from our side."""
        metrics = self.answer.body.get("metrics") if self.answer else None
        shown = _measured(metrics) if isinstance(metrics, dict) else None
        return shown if shown is not None else round((self._ended - self._begun) * 1000, 3)

    def _fold(self, chunk: bytes) -> None:
        self._room -= len(chunk)
        if self._room < 0 or not self.head.good:
            self._body.clear()
        elif not self.head.streams:
            self._body.append(chunk)
        else:
            for event in self._parser.feed(chunk):
                self._assembler.feed(event)

    def _finish(self) -> None:
        self._ended = time.perf_counter()
        if not self.head.good:
            self.incomplete = "upstream_error"
        elif self._room < 0:
            self.incomplete = "answer_too_large"
        elif self.head.streams:
            self._assembler.end()
            self.answer, self.incomplete = self._assembler.answer, self._assembler.incomplete
        else:
            answer = from_raw(self._call.endpoint, b"".join(self._body))
            self.answer = answer if answer and len(answer.items) >= _expected(self._call) else None
            self.incomplete = None if self.answer else "answer_malformed"

    def _end_span(self) -> None:
        self._span.set({"http.response.status_code": self.head.status} | (_told(self.answer) if self.answer else {}))
        if self.incomplete is not None:
            self._span.fail(self.incomplete)
        self._span.end()


async def open_exchange(client: UpstreamClient, call: Call, *, max_bytes: int, count: bool) -> Exchange:
    """Send the request and wait for the head of its answer. Raises UpstreamError.

    count: ask a stream for its token counts too; a server that refuses gets the request as it was.
    """
    begun, span = time.perf_counter(), _span(call)
    try:
        with span.active():
            response = await _ask(client, call, count=count)
    except UpstreamError as error:
        span.fail(error.code.slug)
        span.end()
        raise
    return Exchange(call, response, begun, max_bytes, span)


async def _ask(client: UpstreamClient, call: Call, *, count: bool) -> UpstreamResponse:
    if count and call.counts:
        response = await _send(client, call, ask_usage(call.raw, call.fields))
        if response.status not in _REFUSED:
            return response
        response.close()
    return await _send(client, call, call.raw)


def _span(call: Call) -> Span:
    """By the conventions for spans of GenAI clients."""
    asked = {name: call.fields.get(name) for name in ("temperature", "top_p", "max_tokens", "seed")}
    plain = {f"gen_ai.request.{name}": value for name, value in asked.items() if isinstance(value, int | float)}
    operation = _OPERATIONS[call.endpoint]
    given = {"gen_ai.operation.name": operation, "gen_ai.request.model": call.model} | plain
    return begin(f"{operation} {call.model}", given, kind="CLIENT")


def _told(answer: Answer) -> dict[str, Any]:
    prompt, completion = answer.tokens
    reasons = [choice.get("finish_reason") for choice in answer.body.get("choices") or ()]
    return {
        "gen_ai.response.id": answer.body.get("id"),
        "gen_ai.response.model": answer.body.get("model"),
        "gen_ai.response.finish_reasons": [str(reason) for reason in reasons] or None,
        "gen_ai.usage.input_tokens": prompt or None,
        "gen_ai.usage.output_tokens": completion or None,
    }


async def _send(client: UpstreamClient, call: Call, content: bytes) -> UpstreamResponse:
    return await client.send(
        "POST", call.path, query=call.query, headers=call.headers, content=content, model=call.model
    )


def _expected(call: Call) -> int:
    """How many choices or vectors a whole answer has at least."""
    if call.endpoint == "responses":
        return 0
    n, given = call.fields.get("n"), call.fields.get("input" if call.endpoint == "embeddings" else "prompt")
    each = n if isinstance(n, int) and n > 0 else 1
    texts = given if isinstance(given, list) and given and isinstance(given[0], str | list) else [given]
    return each * len(texts)


def _measured(metrics: dict[str, Any]) -> float | None:
    shown = (metrics.get("time_to_first_token_ms"), metrics.get("generation_time_ms"))
    times = [time for time in shown if isinstance(time, int | float) and 0 <= time <= LONGEST_MS]
    return sum(times) if len(times) == len(shown) else None


__all__ = ["Exchange", "Response", "open_exchange"]
