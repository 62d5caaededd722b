"""The embedder of a service process and its number in the database, opened in the background and kept open."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from service.embed.batching import EmbedderCounts
from service.embed.embedder import Embedder, open_embedder
from service.embed.vectors import Vector, same_generation
from service.ending import end
from service.errors import Code, SemcacheError
from service.policy.guards.scripts import foreign_scripts
from service.settings import Settings
from service.store import embedders
from service.store.database import Database
from service.store.rows import EmbedderId

UNREAD = frozenset({Code.TEXT_TOO_LONG, Code.FOREIGN_SCRIPT, Code.TEXT_UNREADABLE})
RETRY_SECONDS = (0.5, 1.0, 2.0, 5.0)

logger = logging.getLogger("semcache.embedder")


class EmbedderSlot:
    """Holds the embedder once it is open. A failure is told to whoever asks, and tried again.

    `counts` are of all embedders that were open here.
    """

    def __init__(self, settings: Settings, db: Database) -> None:
        self._settings, self._db = settings, db
        self._open: tuple[Embedder, EmbedderId] | None = None
        self._failure = SemcacheError(Code.EMBEDDER_UNAVAILABLE, "the embedder is being opened; try again shortly")
        self.counts = EmbedderCounts()
        self._tried = asyncio.Event()
        self._languages = _languages(settings)
        self._task: asyncio.Task[None] | None = None

    @property
    def tried(self) -> bool:
        """Whether the first attempt to open the embedder has ended, well or not."""
        return self._tried.is_set()

    async def first_try(self) -> None:
        """Return when `tried`."""
        await self._tried.wait()

    @property
    def failure(self) -> str | None:
        """Why the embedder is not open after an attempt; None where it is, or where none has ended."""
        return self._failure.detail if self._open is None and self.tried else None

    @property
    def embedder(self) -> Embedder | None:
        return self._open[0] if self._open else None

    def start(self, instead_of: Embedder | None = None) -> None:
        self._task = asyncio.create_task(self._keep_open(instead_of), name="semcache embedder")

    async def stop(self) -> None:
        if self._task is not None:
            await end([self._task])
        if self._open is not None:
            await self._open[0].close()

    async def embed(self, text: str) -> tuple[Vector, EmbedderId]:
        """The text's unit vector and the embedder that made it.

        Raises: SemcacheError with one of UNREAD, where only an exact match is left, or EMBEDDER_UNAVAILABLE.
        """
        if scripts := foreign_scripts(text, self._languages):
            raise SemcacheError(
                Code.FOREIGN_SCRIPT,
                f"the embedder was not made for {', '.join(scripts)}, so such texts are matched exactly; "
                "choose a multilingual one, or declare its languages in SEMCACHE_EMBEDDER_LANGUAGES",
            )
        if self._open is None:
            raise SemcacheError(self._failure.code, self._failure.detail)
        embedder, embedder_id = self._open
        try:
            return await embedder.embed(text), embedder_id
        finally:
            if embedder.stale and self._open is not None and self._open[0] is embedder:
                self._open = None
                self.start(instead_of=embedder)

    async def _keep_open(self, instead_of: Embedder | None) -> None:
        if instead_of is not None:
            with contextlib.suppress(SemcacheError):
                await instead_of.close()
        for attempt in range(10**9):
            try:
                self._open = await self._opened()
            except SemcacheError as error:
                self._failure = error
                logger.warning("the embedder could not be opened: %s", error)
            self._tried.set()
            if self._open is not None:
                return
            await asyncio.sleep(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)])

    async def _opened(self) -> tuple[Embedder, EmbedderId]:
        embedder = await open_embedder(self._settings, self.counts)
        info = embedder.info
        try:
            embedder_id = await embedders.register(
                self._db,
                kind=info.kind,
                name=info.name,
                revision=info.revision,
                dimensions=info.dimensions,
                max_tokens=info.max_tokens,
                probe=info.probe,
                same=same_generation,
            )
        except BaseException:
            with contextlib.suppress(SemcacheError):
                await embedder.close()
            raise
        logger.info("embedder %s, %s dimensions, generation %s", info.name, info.dimensions, embedder_id)
        return embedder, embedder_id


def _languages(settings: Settings) -> frozenset[str]:
    """What the embedder was made for: as declared, else English for the bundled one and any language for others."""
    if settings.embedder_languages is not None:
        return frozenset(settings.embedder_languages)
    bundled = settings.embedder == "local" and settings.embedder_model is None
    return frozenset({"en"} if bundled else {"mul"})


__all__ = ["UNREAD", "EmbedderSlot"]
