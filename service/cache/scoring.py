"""The cross-encoder of the settings, opened in the background: its first start exports it."""

from __future__ import annotations

import asyncio
import logging

from service.embed.cross_encoder import CrossEncoder, open_cross_encoder
from service.ending import end
from service.errors import SemcacheError
from service.settings import Settings

RETRY_SECONDS = 30.0

logger = logging.getLogger("semcache.cross_encoder")


class CrossEncoderSlot:
    """Holds the cross-encoder once it is open. Without one nothing has a probability."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._open: CrossEncoder | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._settings.cross_encoder is not None:
            self._task = asyncio.create_task(
                self._keep_open(self._settings.cross_encoder), name="semcache cross-encoder"
            )

    async def stop(self) -> None:
        if self._task is not None:
            await end([self._task])
        if self._open is not None:
            await self._open.close()

    async def probability(self, question: str, stored: str) -> float | None:
        """How probable it is that both ask the same, 0 to 1; None where it is not open, or does not read them whole."""
        return None if self._open is None else await self._open.probability(question, stored)

    async def _keep_open(self, model: str) -> None:
        settings = self._settings
        while self._open is None:
            try:
                self._open = await open_cross_encoder(model, settings.models_dir, settings.embedder_threads)
            except SemcacheError as error:
                logger.warning("the cross-encoder could not be opened: %s", error)
                await asyncio.sleep(RETRY_SECONDS)


__all__ = ["CrossEncoderSlot"]
