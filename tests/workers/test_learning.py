"""A cache learns what it may serve: it starts strict, gets labels, a worker fits, and every replica decides by it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from itertools import product
from typing import Any
from uuid import UUID, uuid4

import pytest

from service.cache import data, manage
from service.cache.data import Prompt
from service.cache.directory import OpenCache, authenticate, open_cache
from service.cache.lookup import Looked
from service.cache.runtime import Runtime, build_runtime
from service.cache.statistics import read_calibrations
from service.policy.boundary import Budget, missing_labels
from service.policy.policies import NOTHING_LEARNED
from service.policy.signals import see
from service.settings import Settings
from service.store import observations
from service.store.database import Database, Limits
from service.store.observations import NewObservation
from service.store.tenants import Tenant
from workers import calibrate

VERBS = (
    "clean",
    "repair",
    "paint",
    "sell",
    "insure",
    "rent",
    "replace",
    "move",
    "store",
    "lift",
    "polish",
    "ship",
    "test",
)
NOUNS = (
    *("boat", "piano", "fridge", "lawnmower", "caravan", "bicycle", "wardrobe", "drone", "tent", "guitar", "ladder"),
    *("printer", "sofa", "kayak", "toaster", "blender", "telescope", "generator", "trailer", "keyboard", "scooter"),
    *("tractor", "violin", "canoe", "dishwasher", "camera", "barrel", "harp"),
)
WISHES = list(product(VERBS, NOUNS))
LATER = WISHES[-40:]


def stored(wish: tuple[str, str]) -> str:
    return "How do I {} my {}?".format(*wish)


def asked(wish: tuple[str, str]) -> str:
    return "Please tell me, how can I {} my {}?".format(*wish)


@asynccontextmanager
async def replica(url: str) -> AsyncIterator[Runtime]:
    runtime = build_runtime(Settings(database_url=url), Database(url, Limits(timeout=30.0)))
    await runtime.start()
    while not runtime.embedder.tried:  # noqa: ASYNC110 - the slot tells of nothing else
        await asyncio.sleep(0.01)
    try:
        yield runtime
    finally:
        await runtime.stop()


class Learner:
    """A tenant's cache on its replicas, each of which may be asked and told what was right."""

    def __init__(self, replicas: list[Runtime], tenant: Tenant, name: str) -> None:
        self.replicas, self.tenant, self.name = replicas, tenant, name
        self.here, self.there = replicas

    async def cache(self, runtime: Runtime | None = None) -> OpenCache:
        return await open_cache(runtime or self.here, self.tenant, self.name)

    async def store(self, wish: tuple[str, str]) -> None:
        prompt = Prompt(stored(wish), {}, {})
        await data.store(self.here, await self.cache(), prompt, f"Answer: {wish}", tags=[], ttl_ms=None)

    async def look(self, wish: tuple[str, str], runtime: Runtime | None = None) -> Looked:
        return await data.search(runtime or self.here, await self.cache(runtime), Prompt(asked(wish), {}, {}))

    async def hits(self, runtime: Runtime | None = None) -> int:
        """How many of the later wishes are served; none of them with another's answer."""
        looked = [await self.look(wish, runtime) for wish in LATER]
        served = [(wish, one.answer) for wish, one in zip(LATER, looked, strict=True) if one.answer]
        assert all(answer.text == f"Answer: {wish}" for wish, answer in served)
        return len(served)

    async def observe(self, wish: tuple[str, str], *, right: bool = True, **changes: Any) -> None:
        """Note, for each candidate, whether it answers the wish; or, if not `right`, that none does."""
        cache, looked, request_id = await self.cache(), await self.look(wish), uuid4()
        nearby = looked.nearby
        assert nearby is not None
        frequencies = cache.learned.get(nearby.embedder_id, NOTHING_LEARNED).frequencies
        rows = [
            NewObservation(
                **{
                    "request_id": request_id,
                    "entry_id": UUID(seen.candidate.entry_id),
                    "verdict": "correct" if right and seen.candidate.text == stored(wish) else "wrong",
                    "source": "exploration",
                    "embedder_id": nearby.embedder_id,
                    "similarity": seen.candidate.similarity,
                    "rank": rank,
                    "signals": seen.signals,
                    "answer_key": bytes.fromhex(seen.candidate.answer),
                    "probability": None,
                    "served": False,
                    "policy": "calibrated",
                    "inclusion": 1.0,
                }
                | changes
            )
            for rank, seen in enumerate(see(nearby.query, nearby.candidates, frequencies))
        ]
        await observations.record(self.here.db, cache.row, rows)

    async def until_fitted(self, runtime: Runtime, observed: int) -> None:
        """Wait until a replica knows of the fit on so many labelled requests."""
        async with asyncio.timeout(20):
            while await self._fitted(runtime) != observed:  # noqa: ASYNC110 - it follows in its own time
                await asyncio.sleep(0.01)

    async def _fitted(self, runtime: Runtime) -> int | None:
        fits = [learned.calibration for learned in (await self.cache(runtime)).learned.values()]
        return fits[0].observations if fits and fits[0] else None


async def fit(worker: Database) -> int:
    """How many caches the worker's task fitted."""
    return (await calibrate.run_once(worker, timedelta(days=30), 20_000)).caches


@pytest.fixture
async def learner(database_url: str) -> AsyncIterator[Learner]:
    """A cache under a budget, with its entries but without a label."""
    async with AsyncExitStack() as stack:
        replicas = [await stack.enter_async_context(replica(database_url)) for _ in range(2)]
        tenant = await authenticate(replicas[0], None)
        await manage.create_cache(replicas[0], tenant, "careful", {"decision": "calibrated", "budget": {"rate": 0.01}})
        learner = Learner(replicas, tenant, "careful")
        for wish in WISHES:
            await learner.store(wish)
        yield learner


async def test_a_cache_under_a_budget_starts_strict_learns_and_tightens(learner: Learner, worker: Database) -> None:
    looked = await learner.look(LATER[0])
    assert (looked.reason, looked.found) == ("uncalibrated", None)
    told = await data.explain(learner.here, await learner.cache(), Prompt(asked(LATER[0]), {}, {}), limit=4)
    assert told.would_change == f"The nearest entry would take {missing_labels(Budget(), 0)}."

    assert await fit(worker) == 1, "the words of the new entries are counted"
    assert await fit(worker) == 0
    await learner.until_fitted(learner.here, 0)
    for wish in WISHES[:40]:
        await learner.observe(wish)
    assert await fit(worker) == 1
    await learner.until_fitted(learner.here, 40)
    assert await learner.hits() == 0
    (shown,) = await read_calibrations(learner.here, await learner.cache())
    assert shown["cut"] is None
    assert shown["missing"] == missing_labels(Budget(), 40)

    for wish in WISHES[:-40]:
        await learner.observe(wish)
    assert await fit(worker) == 1
    for runtime in learner.replicas:
        await learner.until_fitted(runtime, 40 + len(WISHES) - 40)
        assert await learner.hits(runtime) > 20
    looked = await learner.look(LATER[0])
    assert looked.nearby is not None
    assert looked.nearby.decision.cut is not None

    for wish in WISHES[:60]:
        await learner.observe(wish, right=False, source="audit", served=True)
    assert await fit(worker) == 1
    for runtime in learner.replicas:
        await learner.until_fitted(runtime, 60 + len(WISHES))
        assert await learner.hits(runtime) == 0
