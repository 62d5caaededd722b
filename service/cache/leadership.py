"""One call for many replicas: who leads asks the model, the others wait for what it stores.

The lead is a lease that the leader renews while its call lasts. No lock is held; a leader that dies loses it, and one
that cannot reach the database asks without it. So does a replica that is alone: calls that it began before another one
started may be made twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from uuid import uuid4

from service import ending
from service.cache.background import Background, finished
from service.errors import SemcacheError
from service.store import flights
from service.store.database import Database
from service.store.flights import Place
from service.store.rows import CacheRow

RENEWALS = 3
SOONEST, LATEST = 0.05, 1.0  # seconds between looks, where no notification comes
LONGEST_STORE = 2.0  # seconds from the time of an entry to where all see it


class Leadership:
    """The leads of one replica. `duration` of a lease in seconds."""

    def __init__(self, db: Database, background: Background, duration: float) -> None:
        self._db, self._background, self._duration = db, background, duration
        self._holder = uuid4()
        self._held: set[str] = set()
        self._landings: dict[str, asyncio.Event] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def held(self) -> int:
        """How many leads this replica holds."""
        return len(self._held)

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep_renewing(), name="semcache leads")

    async def stop(self) -> None:
        if self._task is not None:
            await ending.end([self._task])
        for name in set(self._held):
            await self.end(name)

    async def take(
        self,
        cache: CacheRow,
        name: str,
        exact_key: bytes,
        *,
        begun: float,
        patience: float,
        longest: float = math.inf,
    ) -> bool:
        """Whether this replica is to ask the model; False where another has stored the answer meanwhile.

        Waits while another leads, `longest` seconds at most. Where that one ends and has stored nothing, all who waited
        ask at once. `begun`: when the lookup began, by time.perf_counter; `patience`: seconds for one question to the
        database.
        """
        ended, until = False, time.perf_counter() + longest
        while time.perf_counter() < until:
            landing = self._landings.setdefault(name, asyncio.Event())
            place = await self._ask(cache, name, exact_key, time.perf_counter() - begun, patience)
            if ended or place is None or place.leads or place.landed:
                self._landings.pop(name, None)
                return place is None or not place.landed
            wait = min(max(place.seconds or 0.0, SOONEST), LATEST)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(landing.wait(), wait)
            ended = landing.is_set()
            self._landings.pop(name, None)
        return True

    async def end(self, name: str) -> None:
        """Give the lead back, once the answer is stored or will not be."""
        if name in self._held:
            self._held.discard(name)
            with contextlib.suppress(SemcacheError):
                await flights.end(self._db, name, self._holder)

    def landed(self, name: str) -> None:
        """A flight of another replica has ended. "": look again at all."""
        for waiting in list(self._landings.values()) if not name else [self._landings.get(name)]:
            if waiting is not None:
                waiting.set()

    async def _ask(self, cache: CacheRow, name: str, exact_key: bytes, since: float, patience: float) -> Place | None:
        """None where the database cannot say."""
        work = self._background.spawn(
            flights.acquire(
                self._db,
                cache,
                name=name,
                holder=self._holder,
                seconds=self._duration,
                exact_key=exact_key,
                since=since + LONGEST_STORE,
            )
        )
        if not await finished(work, patience) or work.exception() is not None:
            return None
        place = work.result()
        if place.leads:
            self._held.add(name)
        return place

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(self._duration / RENEWALS)
            if self._held and self._db.up:
                with contextlib.suppress(SemcacheError):
                    await flights.renew(self._db, self._held, self._holder, self._duration)


__all__ = ["Leadership"]
