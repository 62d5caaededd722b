"""Keeping requests whose answers may be asked for ahead of their users."""

from __future__ import annotations

import logging

from service.cache.asked import Asked
from service.cache.exchange import Exchange
from service.cache.plan import Plan
from service.cache.runtime import Runtime
from service.errors import SemcacheError
from service.identity.fields import STRIPPED
from service.json_text import dump
from service.store import prefetch
from service.store.prefetch import KeptRequest

logger = logging.getLogger("semcache.prefetch")


async def keep_request(runtime: Runtime, asked: Asked, plan: Plan, exchange: Exchange) -> None:
    """Keep a request whose answer was just stored, if its cache's policy has prefetch on. A failure is only logged.

    Not kept are those that are too long, of which several answers are kept, and that their caller keeps apart.
    """
    call, cache, identity = asked.call, asked.cache, plan.identity
    if cache is None or not cache.policy.prefetch or plan.ask.variants > 1 or call.salt:
        return
    body = dump({name: value for name, value in call.fields.items() if name not in STRIPPED})
    if len(body) > runtime.settings.prefetch_body_bytes:
        return
    kept = KeptRequest(
        request_key=identity.request_key,
        exact_key=identity.exact_key,
        endpoint=call.endpoint,
        model=call.model,
        model_key=identity.scope.model.key,
        body=body.decode(),
        tags=list(call.controls.tags),
        ttl_ms=None if call.controls.ttl is None else int(call.controls.ttl * 1000),
        tokens=exchange.spent,
        cost_ms=exchange.cost_ms,
    )
    try:
        await prefetch.keep(runtime.db, cache.row, kept)
    except SemcacheError as error:
        logger.info("a request was not kept: %s", error.code.slug)


__all__ = ["keep_request"]
