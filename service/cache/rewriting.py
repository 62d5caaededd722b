"""Questions of a conversation in their stand-alone form, asked of the resolver once and then remembered."""

from __future__ import annotations

import time

from service.identity.canonical import digest
from service.identity.request import Identity
from service.identity.tier import Reason
from service.memory.lru import Lru
from service.policy.cache_policy import CachePolicy
from service.settings import Settings, UpstreamTarget
from service.telemetry.metrics import Metrics
from service.upstream.resolver import stand_alone
from service.upstream.side_model import SideModel

REMEMBERED = 20_000
REMEMBERED_BYTES = 8 * 2**20


class Rewriter:
    """Asks the resolver of the settings. Without one, or where it fails, a request can only be matched exactly."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._model = _model(settings)
        self._metrics = metrics
        self._known: Lru[bytes, str] = Lru(REMEMBERED, REMEMBERED_BYTES)

    async def aclose(self) -> None:
        if self._model is not None:
            await self._model.aclose()

    async def question(self, policy: CachePolicy, identity: Identity) -> str | None:
        """The stand-alone form that this request waits for; None where it waits for none, or the resolver has none."""
        if identity.reason is not Reason.NOT_REWRITTEN or policy.mode != "semantic" or self._model is None:
            return None
        key = digest(identity.dialogue)
        known = self._known.get(key)
        if known is not None:
            self._metrics.rewrites.labels("remembered").inc()
            return known
        begun = time.perf_counter()
        said = await stand_alone(self._model, identity.dialogue)
        self._metrics.rewrite_seconds.observe(time.perf_counter() - begun)
        self._metrics.rewrites.labels("rewritten" if said else "failed").inc()
        if said:
            self._known.put(key, said, len(key) + len(said))
        return said


def _model(settings: Settings) -> SideModel | None:
    if settings.resolver_url is None or settings.resolver_model is None:
        return None
    target = UpstreamTarget(url=settings.resolver_url, key=settings.resolver_key)
    return SideModel(target, settings.resolver_model, settings.resolver_timeout)


__all__ = ["Rewriter"]
