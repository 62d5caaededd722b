"""Routes for operators: is it alive, is it ready, what does it count."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from service.api.context import RuntimeOf
from service.cache.gauges import read_gauges
from service.cache.runtime import Runtime
from service.json_text import dump

router = APIRouter(tags=["operations"])


@router.get("/healthz", summary="The process answers")
async def healthz() -> Response:
    return Response(dump({"status": "ok"}), media_type="application/json")


@router.get(
    "/readyz",
    summary="The database answers and the embedder was tried; without it only exact matches are served",
    responses={503: {"description": "not yet, and what it waits for"}},
)
async def readyz(runtime: RuntimeOf) -> Response:
    waiting = _waiting_for(runtime)
    failure = runtime.embedder.failure
    status = "waiting" if waiting else "degraded" if failure else "ready"
    body = {"status": status, "waitingFor": waiting} | ({"embedder": f"not open: {failure}"} if failure else {})
    return Response(dump(body), 503 if waiting else 200, media_type="application/json")


@router.get("/metrics", response_class=PlainTextResponse, summary="Prometheus metrics")
async def metrics(runtime: RuntimeOf) -> Response:
    shown = generate_latest(runtime.metrics.registry) + generate_latest(await read_gauges(runtime))
    return Response(shown, media_type=CONTENT_TYPE_LATEST)


def _waiting_for(runtime: Runtime) -> list[str]:
    parts = {"database": runtime.db.up, "embedder": runtime.embedder.tried}
    return [name for name, ready in parts.items() if not ready]


__all__ = ["router"]
