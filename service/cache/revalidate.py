"""An expired answer is served while a fresh one is fetched in the background, once over all replicas (RFC 5861)."""

from __future__ import annotations

from service.cache.asked import Asked
from service.cache.exchange import open_exchange
from service.cache.keep import keep, whole_answer
from service.cache.lead import take_place
from service.cache.plan import Plan
from service.cache.runtime import Runtime


def revalidate(runtime: Runtime, asked: Asked) -> None:
    """Begin to fetch a fresh answer, unless it is being fetched; where too many are, a later request begins it."""
    plan = asked.plan
    if plan is not None:
        runtime.revalidations.begin(plan.flight_name, lambda: _fetch(runtime, asked, plan))


async def _fetch(runtime: Runtime, asked: Asked, plan: Plan) -> None:
    if (await take_place(runtime, asked, plan)).landed:
        return
    try:
        limit = runtime.settings.max_answer_bytes
        exchange = await open_exchange(runtime.upstream, asked.call, max_bytes=limit, count=True)
        async for _ in exchange.chunks():
            pass
        if (fresh := await whole_answer(runtime, asked, plan, exchange)) is not None:
            await keep(runtime, asked, plan, exchange, fresh)
    finally:
        await runtime.leadership.end(plan.flight_name)


__all__ = ["revalidate"]
