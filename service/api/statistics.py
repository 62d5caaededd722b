"""Routes of figures: what a cache holds, how it served, and what another threshold would have made of it."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from itertools import groupby
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from service.api.context import CacheOf, RuntimeOf, respond
from service.api.problems import RESPONSES
from service.api.schemas import (
    AtThresholdView,
    CalibrationView,
    GraphView,
    Instant,
    NearView,
    SimilarityView,
    Stats,
    TierView,
    TrafficStep,
    TrafficView,
    VerdictCounts,
)
from service.cache.statistics import (
    Similarities,
    Traffic,
    read_calibrations,
    read_graph,
    read_similarities,
    read_stats,
    read_traffic,
)
from service.policy.decision import FLOOR
from service.policy.sweep import STEPS

router = APIRouter(prefix="/v1/caches/{cache_id}/stats", tags=["statistics"], responses=RESPONSES)

WindowMillis = Annotated[
    int, Query(alias="windowMillis", ge=60_000, le=604_800_000, description="how far back, in milliseconds: to a week")
]


@router.get("", response_model=Stats, summary="What a cache holds and how it served")
async def stats(runtime: RuntimeOf, cache: CacheOf, since: Instant | None = None) -> Response:
    figures, reasons = await read_stats(runtime, cache, since)
    rate = figures["hits"] / figures["lookups"] if figures["lookups"] else None
    learned = [CalibrationView(**row) for row in await read_calibrations(runtime, cache)]
    return respond(
        Stats(
            cache_id=cache.row.name, since=since, hit_rate=rate, miss_reasons=reasons, calibrations=learned, **figures
        )
    )


@router.get("/traffic", response_model=TrafficView, summary="How a cache served of late, step by step and by tier")
async def traffic(runtime: RuntimeOf, cache: CacheOf, window: WindowMillis = 900_000) -> Response:
    return respond(_traffic(cache.row.name, await read_traffic(runtime, cache, timedelta(milliseconds=window))))


@router.get(
    "/similarity",
    response_model=SimilarityView,
    summary="How near neighbours were, and what other thresholds would have made of it",
)
async def similarity(runtime: RuntimeOf, cache: CacheOf, window: WindowMillis = 86_400_000) -> Response:
    found = await read_similarities(runtime, cache, timedelta(milliseconds=window))
    return respond(_similarity(cache.row.name, found))


@router.get("/graph", response_model=GraphView, summary="The most central requests, and what follows what in a session")
async def graph(
    runtime: RuntimeOf,
    cache: CacheOf,
    measure: Literal["popularity", "pagerank", "betweenness", "markov"] = "pagerank",
    limit: Annotated[int, Query(ge=1, le=100)] = 12,
) -> Response:
    nodes, edges = await read_graph(runtime, cache, measure, limit)
    shown = [row | {"entry_id": row["entry_id"] and row["entry_id"].hex} for row in nodes]
    return respond(GraphView.model_validate({"cache_id": cache.row.name, "nodes": shown, "edges": edges}))


def _traffic(name: str, found: Traffic) -> TrafficView:
    tiers = []
    for tier, rows in groupby(found.tiers, key=lambda row: row["tier"]):
        whole, *steps = rows
        figures = {key: whole[key] for key in ("requests", "p50_ms", "p95_ms")}
        tiers.append(TierView(tier=tier, steps=[TrafficStep.model_validate(step) for step in steps], **figures))
    return TrafficView(
        cache_id=name,
        since=found.since,
        until=found.until,
        step_millis=int(found.step.total_seconds() * 1000),
        tiers=tiers,
        miss_reasons=found.miss_reasons,
    )


def _similarity(name: str, found: Similarities) -> SimilarityView:
    nearest = found.nearest
    return SimilarityView(
        cache_id=name,
        since=found.since,
        until=found.until,
        floor=FLOOR,
        requests=nearest.requests,
        exact_hits=nearest.exact_hits,
        nearest=[
            NearView(
                similarity=seen.step / STEPS,
                requests=seen.requests,
                semantic_hits=seen.semantic_hits,
                below_threshold=seen.below_threshold,
            )
            for seen in nearest.seen
        ],
        verdicts=VerdictCounts(
            since=found.judged_since,
            drawn=sum(verdict.drawn for verdict in nearest.verdicts),
            reported=sum(verdict.reported for verdict in nearest.verdicts),
            reported_wrong=sum(verdict.reported_wrong for verdict in nearest.verdicts),
        ),
        thresholds=[AtThresholdView(**asdict(at)) for at in found.sweep],
    )


__all__ = ["router"]
