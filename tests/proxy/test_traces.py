"""Traces: one from the caller through every stage to the model, with outcomes and without prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from uuid import uuid4

import pytest
from asking import Asker, chat, says
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from service.settings import Settings
from service.telemetry.tracing import configure_tracing
from tests.fakes.upstream import USAGE, FakeUpstream, Reply
from tests.proxy.conftest import Start

pytestmark = pytest.mark.asyncio(loop_scope="module")

SERVED = "POST /v1/chat/completions"
STAGES = {"identity", "l1", "exact", "store"}


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    kept = InMemorySpanExporter()
    configure_tracing(Settings(traces=True), kept)
    yield kept
    configure_tracing(Settings())


def caller() -> tuple[str, str]:
    """A trace of a client, and the header that names it."""
    trace = uuid4().hex
    return trace, f"00-{trace}-00f067aa0ba902b7-01"


async def spans(exporter: InMemorySpanExporter, trace: str, *names: str) -> dict[str, ReadableSpan]:
    """The spans of a trace by name, once these are there."""
    for _ in range(500):
        found = {s.name: s for s in exporter.get_finished_spans() if f"{s.context.trace_id:032x}" == trace}
        if found.keys() >= set(names):
            return found
        await asyncio.sleep(0.01)
    raise AssertionError(f"{sorted(found)} lack some of {names}")


async def test_a_miss_is_one_trace_from_the_caller_to_the_model(
    exporter: InMemorySpanExporter, upstream: FakeUpstream, start: Start
) -> None:
    says(upstream, "glazier", "Windows.")
    trace, header = caller()
    async with Asker((await start(traces=True)).base) as asker:
        await asker.ask(chat("What does a glazier fit?", max_tokens=9), traceparent=header)
        found = await spans(exporter, trace, SERVED, "chat small-chat", *STAGES)
    (call,) = (call for call in upstream.calls if call.target.endswith("/chat/completions"))
    served, asked = found[SERVED], found["chat small-chat"]
    assert served.parent is not None
    assert f"{served.parent.span_id:016x}" == "00f067aa0ba902b7"
    assert (
        dict(served.attributes or {}) | {"semcache.outcome": "MISS", "http.response.status_code": 200}
        == served.attributes
    )
    assert asked.parent is not None
    assert asked.parent.span_id == served.context.span_id
    assert call.header("traceparent") == f"00-{trace}-{asked.context.span_id:016x}-01"
    told = dict(asked.attributes or {})
    assert told["gen_ai.operation.name"] == "chat"
    assert told["gen_ai.request.max_tokens"] == 9
    assert told["gen_ai.usage.input_tokens"] == USAGE["prompt_tokens"]
    assert told["gen_ai.response.finish_reasons"] == ("stop",)
    assert {found[stage].context.trace_id for stage in STAGES} == {served.context.trace_id}


async def test_a_semantic_hit_shows_its_stages_and_no_prompt(
    exporter: InMemorySpanExporter, upstream: FakeUpstream, start: Start
) -> None:
    says(upstream, "pear tree", "In late winter.")
    async with Asker((await start(traces=True)).base) as asker:
        await asker.stored(chat("How do I prune a pear tree?"))
        trace, header = caller()
        got = await asker.ask(chat("How can I prune a pear tree?"), traceparent=header)
        assert got.cache == "SEMANTIC-HIT"
        found = await spans(exporter, trace, SERVED, "embed", "neighbours", "decide")
    told = dict(found[SERVED].attributes or {})
    assert (told["semcache.outcome"], told["semcache.reason"]) == ("SEMANTIC-HIT", "accepted")
    assert 0.95 <= told["semcache.similarity"] <= 1
    assert not [s for s in exporter.get_finished_spans() if "pear" in str(dict(s.attributes or {})) + s.name]


async def test_prompts_are_shown_only_where_that_is_switched_on(
    exporter: InMemorySpanExporter, upstream: FakeUpstream, start: Start
) -> None:
    says(upstream, "cobbler", "Shoes.")
    trace, header = caller()
    async with Asker((await start(traces=True, trace_prompts=True)).base) as asker:
        await asker.ask(chat("What does a cobbler mend?"), traceparent=header)
        found = await spans(exporter, trace, SERVED)
    assert "cobbler" in dict(found[SERVED].attributes or {})["gen_ai.input.messages"]


async def test_a_failure_of_the_model_is_a_failed_span(
    exporter: InMemorySpanExporter, upstream: FakeUpstream, start: Start
) -> None:
    upstream.on("tinsmith", Reply(drop=True))
    trace, header = caller()
    async with Asker((await start(traces=True)).base) as asker:
        got = await asker.ask(chat("What does a tinsmith make?"), traceparent=header)
        assert got.status == 502
        found = await spans(exporter, trace, "chat small-chat", SERVED)
    for name, kind in {"chat small-chat": "upstream_unreachable", SERVED: "502"}.items():
        assert not found[name].status.is_ok
        assert dict(found[name].attributes or {})["error.type"] == kind


async def test_without_tracing_the_callers_own_header_goes_on(upstream: FakeUpstream, start: Start) -> None:
    says(upstream, "saddler", "Saddles.")
    _, header = caller()
    async with Asker((await start()).base) as asker:
        await asker.ask(chat("What does a saddler make?"), traceparent=header)
    (call,) = (call for call in upstream.calls if call.target.endswith("/chat/completions"))
    assert call.header("traceparent") == header
