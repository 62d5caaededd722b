"""Keeping what the model said, where it is whole and from the model that was asked."""

from __future__ import annotations

import logging
from uuid import UUID

from service.cache.asked import Asked
from service.cache.exchange import Exchange
from service.cache.kept_requests import keep_request
from service.cache.lifetime import fresh_ttl
from service.cache.plan import Plan
from service.cache.runtime import Runtime
from service.cache.store import New, store_answer
from service.errors import SemcacheError
from service.json_text import dumps
from service.upstream.answer import Answer, storable

SHOWN = 1_000  # characters of a prompt that cannot be embedded

logger = logging.getLogger("semcache.proxy")


def to_be_kept(asked: Asked, exchange: Exchange) -> bool:
    """Whether an exchange that was read to its end brought an answer as whole as stored ones must be."""
    return exchange.answer is not None and storable(exchange.answer, asked.call.fields) is None


async def whole_answer(runtime: Runtime, asked: Asked, plan: Plan, exchange: Exchange) -> Answer | None:
    """The answer of an exchange that was read to its end; None where it is not to be kept."""
    answer = exchange.answer
    if answer is None or not to_be_kept(asked, exchange):
        return None
    if await runtime.models.answered(asked.call.model, _fingerprint(answer)) != plan.identity.scope.model:
        return None  # the model was changed meanwhile
    return answer


async def keep(runtime: Runtime, asked: Asked, plan: Plan, exchange: Exchange, answer: Answer) -> UUID | None:
    """Store a whole answer. A failure is nobody's but the log's."""
    if asked.cache is None:
        return None
    new = New(
        identity=plan.identity,
        prompt=plan.identity.text or _shown(asked),
        answer=answer,
        provenance=asked.provenance,
        tags=list(asked.call.controls.tags),
        ttl_ms=await fresh_ttl(runtime, asked, plan, answer),
        cost_ms=exchange.cost_ms,
        scope=asked.looked.scope if asked.looked else None,
        variants=plan.ask.variants,
        needs_vector=False,
    )
    try:
        kept = await store_answer(runtime, asked.cache, new)
    except SemcacheError as error:
        logger.info("an answer was not stored: %s", error.code.slug)
        return None
    if kept is None:
        logger.info("an answer was not stored: invalidated")
        return None
    await keep_request(runtime, asked, plan, exchange)
    return kept.stored.entry_id


def _fingerprint(answer: Answer) -> str | None:
    shown = answer.body.get("system_fingerprint")
    return shown if isinstance(shown, str) else None


def _shown(asked: Asked) -> str:
    """The start of what was asked, for people."""
    fields = asked.call.fields
    said = next((fields[name] for name in ("messages", "input", "prompt") if fields.get(name) is not None), "")
    return (said if isinstance(said, str) else dumps(said))[:SHOWN]


__all__ = ["keep", "to_be_kept", "whole_answer"]
