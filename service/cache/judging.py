"""The judge of the settings, and how its words are counted."""

from __future__ import annotations

import time
from collections.abc import Awaitable

from service.settings import Settings, UpstreamTarget
from service.telemetry.metrics import Metrics
from service.upstream.judge import is_right, say_same
from service.upstream.side_model import SideModel


class Judging:
    """Without a judge in the settings no question has an answer."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._model = _model(settings)
        self._metrics = metrics

    @property
    def there(self) -> bool:
        return self._model is not None

    async def aclose(self) -> None:
        if self._model is not None:
            await self._model.aclose()

    async def is_right(self, *, question: str, stored_question: str, stored_answer: str) -> bool | None:
        """Whether a stored answer is right for a question; None where the judge does not say."""
        if self._model is None:
            return None
        asking = is_right(self._model, question=question, stored_question=stored_question, stored_answer=stored_answer)
        return await self._counted("is_right", asking)

    async def say_same(self, *, question: str, first: str, second: str) -> bool | None:
        """Whether two answers say the same; None where the judge does not say."""
        if self._model is None:
            return None
        return await self._counted("say_same", say_same(self._model, question=question, first=first, second=second))

    async def _counted(self, name: str, asking: Awaitable[bool | None]) -> bool | None:
        begun = time.perf_counter()
        said = await asking
        self._metrics.judge_seconds.observe(time.perf_counter() - begun)
        self._metrics.judgements.labels(name, {True: "yes", False: "no", None: "none"}[said]).inc()
        return said


def _model(settings: Settings) -> SideModel | None:
    if settings.judge_url is None or settings.judge_model is None:
        return None
    return SideModel(
        UpstreamTarget(url=settings.judge_url, key=settings.judge_key), settings.judge_model, settings.judge_timeout
    )


__all__ = ["Judging"]
