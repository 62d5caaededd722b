"""Replies made of what is known: a stored answer, or a call that another request leads."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator

from service.cache.call import Call, Reply, Told
from service.cache.flights import Head
from service.upstream.answer import Answer
from service.upstream.headers import Headers
from service.upstream.replay import replay_body, replay_stream
from service.upstream.usage import UsageFilter

_STREAM: Headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]


def replay(call: Call, answer: Answer, told: Told) -> Reply:
    """The answer as this request wants it."""
    now = int(time.time())
    if call.stream:
        return Reply(200, _STREAM, b"".join(replay_stream(answer, created=now, request=call.fields)), told)
    body = replay_body(answer, created=now, request=call.fields)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    return Reply(200, headers, body, told)


def relay(call: Call, head: Head, body: AsyncGenerator[bytes, None], told: Told) -> Reply:
    """The model server's bytes as they come, but for token counts that this request did not ask for."""
    if call.counts and head.streams:
        headers = [pair for pair in head.headers if pair[0] != b"content-length"]
        return Reply(head.status, headers, _without_usage(body), told)
    return Reply(head.status, head.headers, body, told)


def shared(head: Head) -> Head:
    """What of the beginning of an answer is for others than the one who asked."""
    return Head(head.status, [pair for pair in head.headers if pair[0] != b"set-cookie"], head.streams)


async def _without_usage(body: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    usage = UsageFilter()
    async for chunk in body:
        if kept := usage.feed(chunk):
            yield kept
    if rest := usage.flush():
        yield rest


__all__ = ["relay", "replay", "shared"]
