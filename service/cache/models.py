"""Which model answers: what the operator declares of it, and what the model server shows, looked at again and again.

A server that shows something else serves another model: from then on requests have another identity, and no answer of
the old one is served.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from service.cache.background import Background, finished
from service.ending import end
from service.identity.model import ModelIdentity
from service.settings import DeclaredModel, Settings
from service.upstream.client import UpstreamClient
from service.upstream.probe import ProbeResult, probe

MOST = 1_000
AT_ONCE = 4
LONGEST = 10.0  # seconds for one look
RETRY = 1.0  # seconds between looks at a server that does not answer

logger = logging.getLogger("semcache.models")


@dataclass(slots=True)
class _Watched:
    """One model. `fingerprint` is the last that its server gave with an answer: an alarm, no identity.

    used: whether it was asked for since the last round of looks. rests: it was not, and is looked at before it is used
    again. late: whether its server was waited for in vain.
    """

    used: bool = True
    rests: bool = False
    late: bool = False
    identity: ModelIdentity | None = None
    fingerprint: str | None = None
    look: asyncio.Task[None] | None = None


class ModelWatch:
    """Looks at the models that are declared or asked for."""

    def __init__(self, settings: Settings, client: UpstreamClient, background: Background) -> None:
        self._settings, self._client, self._background = settings, client, background
        self._models: dict[str, _Watched] = {}
        self._places = asyncio.Semaphore(AT_ONCE)
        self._task: asyncio.Task[None] | None = None

    @property
    def failing(self) -> int:
        """How many models were looked at in vain."""
        return sum(_failed(watched) for watched in self._models.values())

    def start(self) -> None:
        for name in self._settings.models:
            self._look(name)
        self._task = asyncio.create_task(self._keep_looking(), name="semcache models")

    async def stop(self) -> None:
        if self._task is not None:
            await end([self._task])

    async def identity(self, name: str) -> ModelIdentity | None:
        """The model's identity now. None where its server has not been seen within SEMCACHE_PROBE_PATIENCE.

        After one wait in vain no request waits again: the looks go on by themselves. A model that was seen before is
        still that one while its server fails.
        """
        watched = self._watched(name)
        if watched.rests or (watched.identity is None and not watched.late):
            await finished(self._look(name), self._settings.probe_patience)
            watched.rests, watched.late = False, watched.identity is None
        return watched.identity

    def suspect(self, name: str) -> None:
        """The server failed to answer: it may come back as another one."""
        self._look(name)

    async def answered(self, name: str, fingerprint: str | None) -> ModelIdentity | None:
        """The identity after an answer with this fingerprint: another fingerprint than before asks for another look."""
        watched = self._watched(name)
        if fingerprint is not None and fingerprint != watched.fingerprint:
            is_news, watched.fingerprint = watched.fingerprint is not None, fingerprint
            if is_news:
                await finished(self._look(name), self._settings.probe_patience)
        return await self.identity(name)

    def _watched(self, name: str) -> _Watched:
        known = self._models.pop(name, None)
        watched = self._models[name] = known or _Watched()
        if len(self._models) > MOST:
            del self._models[next(iter(self._models))]
        watched.used = True
        return watched

    def _look(self, name: str) -> asyncio.Task[None]:
        watched = self._models.get(name) or self._watched(name)
        if watched.look is None or watched.look.done():
            watched.look = self._background.spawn(self._see(name, watched))
        return watched.look

    async def _see(self, name: str, watched: _Watched) -> None:
        async with self._places, asyncio.timeout(LONGEST):
            shown = await probe(self._client, name, canary=self._settings.probe_canary)
        declared = self._settings.models.get(name, DeclaredModel())
        seen = identify_model(name, declared, shown)
        if watched.identity is not None and seen != watched.identity:
            logger.warning("the server of a model shows another model: stored answers of the old one serve no more")
        watched.identity, watched.late = seen, False

    async def _keep_looking(self) -> None:
        """A round every so often; and every second looks at servers that failed, until they are seen again."""
        due = self._settings.probe_interval
        while True:
            pause = min(RETRY, self._settings.probe_interval)
            await asyncio.sleep(pause)
            due -= pause
            again: set[str] = set()
            if due <= 0:
                due = self._settings.probe_interval
                again = self._round()
            again |= {name for name, watched in self._models.items() if _failed(watched)}
            if again:
                await asyncio.wait([self._look(name) for name in again])

    def _round(self) -> set[str]:
        """The models to look at: those that are declared or were asked for. Others rest."""
        for name, watched in self._models.items():
            watched.rests = not (watched.used or name in self._settings.models)
            watched.used = False
        return {name for name, watched in self._models.items() if not watched.rests}


def _failed(watched: _Watched) -> bool:
    look = watched.look
    return not watched.rests and look is not None and look.done() and look.exception() is not None


def identify_model(name: str, declared: DeclaredModel, shown: ProbeResult) -> ModelIdentity:
    """What is declared counts, what is shown fills in; the digest of all that is shown is part of the revision."""
    revision = f"{declared.revision} probe:{shown.digest}" if declared.revision else f"probe:{shown.digest}"
    return ModelIdentity(
        name,
        revision=revision,
        tokenizer=declared.tokenizer or shown.tokenizer,
        chat_template=declared.chat_template or shown.template,
        dtype=declared.dtype,
        quantization=declared.quantization,
        kv_cache_dtype=declared.kv_cache_dtype or (shown.kv_cache or {}).get("cache_dtype"),
        engine_version=declared.engine_version or shown.engine_version,
    )


__all__ = ["ModelWatch", "identify_model"]
