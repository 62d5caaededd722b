"""A chat model that the cache asks questions of its own, beside the model whose answers it keeps."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import httpx

from service.json_text import dump, parse
from service.settings import UpstreamTarget

logger = logging.getLogger("semcache.side_model")


class SideModel:
    """One model behind an OpenAI-compatible endpoint. Close it when done.

    It never fails whoever asks: what is no whole answer within `timeout` seconds is None.
    """

    def __init__(self, target: UpstreamTarget, model: str, timeout: float) -> None:
        self._model, self._timeout = model, timeout
        self._http = httpx.AsyncClient(
            base_url=target.url.rstrip("/") + "/",
            timeout=None,  # noqa: S113 - the whole call is bounded below
            headers={"authorization": f"Bearer {target.key.get_secret_value()}"} if target.key else {},
        )

    async def aclose(self) -> None:
        await self._http.aclose()

    async def say(self, instruction: str, text: str, *, max_tokens: int) -> str | None:
        """What the model says to a text under an instruction, greedily; None where it says nothing whole in time."""
        body = {
            "model": self._model,
            "messages": [{"role": "system", "content": instruction}, {"role": "user", "content": text}],
            "temperature": 0,
            "max_tokens": max_tokens,
        }
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._http.post(
                    "chat/completions", content=dump(body), headers={"content-type": "application/json"}
                )
            return _said(parse(answer.raise_for_status().content))
        except (TimeoutError, httpx.HTTPError, ValueError) as error:
            logger.warning("a model that the cache asks gave no answer: %s", type(error).__name__)
            return None


def _said(body: Any) -> str | None:
    try:
        choice = body["choices"][0]
        text = choice["message"]["content"]
    except (KeyError, IndexError, TypeError):
        return None
    whole = choice.get("finish_reason") == "stop" and isinstance(text, str)
    return text.strip() or None if whole else None


__all__ = ["SideModel"]
