"""One call for many replicas: who leads asks the model, the others wait for what it stores, or follow its stream.

The lead is a lease that the leader renews while its call lasts. No lock is held; a leader that dies loses it, and one
that cannot reach the database asks without it. So does a replica that is alone: calls that it began before another one
started may be made twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import time
from dataclasses import dataclass
from uuid import UUID, uuid4
from weakref import WeakValueDictionary

from service import ending
from service.cache.background import Background, finished
from service.cache.flights import Flight, Outcome
from service.cache.shared_stream import FollowedStream, show
from service.errors import SemcacheError
from service.store import flights
from service.store.database import Database
from service.store.flights import Lead, Place
from service.store.notifications import FLIGHT, FOLLOW
from service.store.rows import CacheRow

RENEWALS = 3
SOONEST, LATEST = 0.05, 1.0  # seconds between looks, where no notification comes
LONGEST_STORE = 2.0  # seconds from the time of an entry to where all see it
KEPT = 10.0  # seconds after its end in which those who follow a stream may read the rest


@dataclass(slots=True, eq=False)
class Held:
    """A lead of this replica. stream: what others may follow; showing: what shows it to them, once one asks."""

    lead: Lead
    stream: Flight | None
    showing: asyncio.Task[None] | None = None


class Leadership:
    """The leads of one replica. `duration` of a lease in seconds."""

    def __init__(self, db: Database, background: Background, duration: float) -> None:
        self._db, self._background, self._duration = db, background, duration
        self._held: dict[str, Held] = {}
        self._news: WeakValueDictionary[str, Outcome[bool]] = WeakValueDictionary()  # True: the flight has ended
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
        for name in list(self._held):
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
        stream: Flight | None = None,
    ) -> Place:
        """Where the answer is to come from: it has landed, or the stream of a lead is to be followed, else the model.

        Waits while another leads, `longest` seconds at most. Where that one ends and has stored nothing, all who waited
        ask at once. `begun`: when the lookup began, by time.perf_counter; `patience`: seconds for one question to the
        database; `stream`: a call that may follow, or be followed.
        """
        ended, until = False, time.perf_counter() + longest
        while time.perf_counter() < until:
            news = self._news_of(name)
            held = Held(Lead(cache.tenant_id, name, uuid4()), stream)
            place = await self._ask(cache, held, exact_key, time.perf_counter() - begun, patience)
            if place is None:
                break
            if ended or place.leads or place.landed or place.stream:
                return place
            wait = min(max(place.seconds or 0.0, SOONEST), LATEST)
            with contextlib.suppress(TimeoutError):
                ended = await asyncio.wait_for(news.get(), wait)
        return Place()

    def follow(self, cache: CacheRow, name: str, holder: UUID) -> FollowedStream:
        """The stream of another replica's lead."""
        return FollowedStream(self._db, Lead(cache.tenant_id, name, holder), lambda: self._news_of(name))

    async def end(self, name: str) -> None:
        """Give the lead back, once the answer is stored or will not be. What is shown must have an end, too."""
        if (held := self._held.pop(name, None)) is not None:
            if held.showing is not None:
                await asyncio.wait({held.showing})
            with contextlib.suppress(SemcacheError):
                await flights.end(self._db, held.lead)

    def heard(self, channel: str, payload: str) -> None:
        """A flight of another replica has ended or shows more, or one of ours is asked for. "": look again at all."""
        if channel == FOLLOW:
            name, _, form = payload.partition(" ")
            self._show(self._held.get(name), form)
            return
        for name in [payload] if payload else list(self._news):
            if (news := self._news.pop(name, None)) is not None:
                news.settle(channel == FLIGHT and bool(payload))

    def _news_of(self, name: str) -> Outcome[bool]:
        return self._news.setdefault(name, Outcome())

    def _show(self, held: Held | None, form: str) -> None:
        if held is None or held.stream is None or held.stream.form != form or held.showing is not None:
            return
        held.showing = self._background.spawn(self._keep_showing(held, held.stream))

    async def _keep_showing(self, held: Held, stream: Flight) -> None:
        lead = held.lead
        try:
            await show(self._db, lead, stream)
        except SemcacheError:
            if self._held.get(lead.name) is held:
                del self._held[lead.name]  # its lease runs out, which tells those who follow
        finally:
            forget = functools.partial(flights.forget_chunks, self._db, lead)
            asyncio.get_running_loop().call_later(KEPT, lambda: self._background.spawn(forget()))

    async def _ask(self, cache: CacheRow, held: Held, exact_key: bytes, since: float, patience: float) -> Place | None:
        """None where the database cannot say."""
        work = self._background.spawn(
            flights.acquire(
                self._db,
                cache,
                held.lead,
                seconds=self._duration,
                exact_key=exact_key,
                since=since + LONGEST_STORE,
                form=held.stream.form if held.stream else None,
            )
        )
        if not await finished(work, patience) or work.exception() is not None:
            return None
        place = work.result()
        if place.leads:
            self._held[held.lead.name] = held
        return place

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(self._duration / RENEWALS)
            if self._held and self._db.up:
                with contextlib.suppress(SemcacheError):
                    await flights.renew(self._db, [held.lead for held in self._held.values()], self._duration)


__all__ = ["Leadership"]
