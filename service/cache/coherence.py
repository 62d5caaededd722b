"""Keeps a replica's memory coherent: what was invalidated is served nowhere once that is acknowledged.

A replica may serve from memory only under a lease that the database granted. It renews the lease a few times per
duration and follows, before it trusts the new lease, every invalidation recorded since. Whoever invalidates waits until
each replica with a live lease has confirmed, or that lease has run out (C. Gray and D. Cheriton, "Leases", SOSP 1989).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from uuid import UUID, uuid4

from service.ending import end
from service.errors import SemcacheError
from service.memory.replica import ReplicaMemory
from service.store import leases
from service.store.database import Database, DriverError
from service.store.notifications import CONFIRMED, INVALIDATION, listen
from service.store.rows import InvalidationId

SAFETY = 0.95  # the share of a lease that is used: two clocks may run at slightly different speeds
RENEWALS = 3
UNHEARD = 0.02  # how often to look, in seconds, for one who does not listen

logger = logging.getLogger("semcache.coherence")


class Coherence:
    """One replica's lease and its loop. `duration` in seconds; `told` hears what others tell of their flights."""

    def __init__(
        self, db: Database, memory: ReplicaMemory, duration: float, told: Callable[[str, str], None] = lambda *_: None
    ) -> None:
        self._db, self._memory, self._duration, self._told = db, memory, duration, told
        self._holder: UUID = uuid4()
        self._confirmed: InvalidationId | None = None
        self._alone = False
        self._news = asyncio.Event()
        self._confirmation = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._keep_lease(), name="semcache lease"),
            asyncio.create_task(self._keep_listening(), name="semcache listen"),
        ]

    async def stop(self) -> None:
        await end(self._tasks)
        self._memory.trust(0.0)
        with contextlib.suppress(SemcacheError):
            await leases.end(self._db, self._holder)

    @property
    def alone(self) -> bool:
        """Whether no other replica serves, as far as a live lease tells: one that starts tells the others.

        Good for what may be done twice, as a call to the model, and for nothing that must not.
        """
        return self._alone and self._memory.live

    async def invalidated(
        self, invalidation_id: InvalidationId | None, cache_id: int | None, exact_key: bytes | None
    ) -> None:
        """Forget here at once, and return when no replica can serve it from memory any more.

        Raises: SemcacheError(DATABASE_UNAVAILABLE): it is recorded and will be followed, but nobody can say when.
        """
        if invalidation_id is not None:
            self._memory.forget(cache_id, exact_key)
            await self.wait_for_replicas(invalidation_id)

    async def wait_for_replicas(self, invalidation_id: InvalidationId) -> None:
        """Return when every other replica has confirmed this invalidation or lost its lease."""
        while True:
            confirmation = self._confirmation
            seconds = await leases.lagging(self._db, self._holder, invalidation_id)
            if seconds is None:
                return
            patience = seconds if self._tasks else min(seconds, UNHEARD)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(confirmation.wait(), max(patience, 0.001))

    async def _keep_lease(self) -> None:
        while True:
            self._news.clear()
            with contextlib.suppress(SemcacheError):
                await self._renew()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), self._duration / RENEWALS)

    async def _renew(self) -> None:
        """Renew, follow what is new, and renew again to confirm it; only then trust the lease."""
        while True:
            sent = time.monotonic()
            renewal = await leases.renew(self._db, self._holder, self._duration, self._confirmed)
            head = renewal.head
            if self._confirmed is None:
                self._memory.forget(None, None)
                self._confirmed = head
            if head == self._confirmed:
                break
            for news in await leases.pending(self._db, self._confirmed, head):
                self._memory.forget(news.cache_id, news.exact_key)
            self._confirmed = head
        self._alone = renewal.alone
        self._memory.trust(sent + self._duration * SAFETY)

    async def _keep_listening(self) -> None:
        """Without notifications all stays right, only slower: the loop renews by itself."""
        while True:
            with contextlib.suppress(DriverError):
                await listen(self._db.url, self._heard)
            await asyncio.sleep(self._duration)

    def _heard(self, channel: str, payload: str) -> None:
        if channel == INVALIDATION:
            self._news.set()
        elif channel == CONFIRMED:
            self._confirmation.set()
            self._confirmation = asyncio.Event()
        else:
            self._told(channel, payload)


__all__ = ["Coherence"]
