"""Comparing a stored answer with a fresh one as a cache's policy says."""

from __future__ import annotations

from service.cache.embedding import EmbedderSlot
from service.cache.judging import Judging
from service.errors import SemcacheError
from service.policy.cache_policy import Compare
from service.policy.comparison import Said, alike, answer_key, normalised


class Comparer:
    """Answers that are equal but for their form say the same by any rule."""

    def __init__(self, embedder: EmbedderSlot, judging: Judging) -> None:
        self._embedder, self._judging = embedder, judging

    async def same(self, rule: Compare, question: str, fresh: Said, stored: Said) -> bool | None:
        """Whether two answers to a question say the same; None where the rule cannot tell."""
        if answer_key(fresh) == answer_key(stored):
            return True
        if rule == "equality" or answer_key(Said("", fresh.calls)) != answer_key(Said("", stored.calls)):
            return False
        if rule == "judge":
            return await self._judging.say_same(question=question, first=fresh.text, second=stored.text)
        return await self._alike(normalised(fresh.text), normalised(stored.text))

    async def _alike(self, first: str, second: str) -> bool | None:
        """None for a text that the embedder does not read as a whole."""
        if not first or not second:
            return False
        try:
            vectors = [(await self._embedder.embed(text))[0] for text in (first, second)]
        except SemcacheError:
            return None
        return alike(first, second, float(vectors[0] @ vectors[1]))


__all__ = ["Comparer"]
