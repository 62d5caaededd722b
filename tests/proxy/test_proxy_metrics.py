"""What the proxy counts: tokens and time, spent and saved, and the stages that only it has."""

from __future__ import annotations

import pytest
from asking import Asker, chat, says
from prometheus_client.parser import text_string_to_metric_families

from tests.fakes.upstream import USAGE, FakeUpstream
from tests.proxy.conftest import Start

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def value(asker: Asker, name: str, **labels: str) -> float:
    families = text_string_to_metric_families((await asker.http.get("/metrics")).text)
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())


async def test_tokens_and_time_are_spent_once_and_saved_at_each_hit(upstream: FakeUpstream, start: Start) -> None:
    says(upstream, "cooper", "Barrels.")
    question = chat("What does a cooper make?")
    async with Asker((await start()).base) as asker:
        await asker.ask(question)
        await asker.stored(question)
        hits = await value(asker, "semcache_lookups_total", outcome="hit")
        shared = await value(asker, "semcache_lookups_total", outcome="coalesced")
        total = USAGE["total_tokens"]
        assert await value(asker, "semcache_tokens_spent_total") == total
        assert await value(asker, "semcache_tokens_saved_total") == (hits + shared) * total
        spent = await value(asker, "semcache_seconds_spent_total")
        assert await value(asker, "semcache_seconds_saved_total") == pytest.approx(hits * spent, rel=1e-3)
        for stage, times in {"upstream": 1, "store": 1, "identity": hits + 1}.items():
            assert await value(asker, "semcache_stage_seconds_count", stage=stage) >= times
        assert await value(asker, "semcache_stage_seconds_sum", stage="upstream") == pytest.approx(spent)
        assert await value(asker, "semcache_models_failing") == 0
