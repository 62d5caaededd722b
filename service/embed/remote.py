"""An embedder behind an OpenAI-compatible `POST {url}/embeddings`, as vLLM, TEI or a hosted API serve it.

Such a server shows neither its weights nor, always, how much it reads. So a few fixed texts are embedded when
it is opened and again now and then: other vectors under the same name are another model.
"""

from __future__ import annotations

import asyncio
import base64
import re
import time
from collections.abc import Sequence
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray

from service.embed.vectors import Result, TextTooLong, Vector, encodable, same_generation, unavailable, unit
from service.errors import Code, SemcacheError
from service.settings import Settings

PROBES = (
    "A lighthouse keeper writes the weather into a book each evening.",
    "def area(width, height): return width * height",
    "¿Cuánto cuesta enviar un paquete de tres kilos a Sevilla?",
    "Which of the two bridges is older?",
)
PROBE_INTERVAL = 60.0

# What a server that says nothing is taken to read: as much as most encoders do.
ASSUMED_MAX_TOKENS = 512

# A token stands for at least one byte and a model adds a few tokens around a text, so a text of fewer bytes
# than the limit less these fits. One of over 32 bytes a token does not.
_ADDED_TOKENS = 8
_BYTES_PER_TOKEN = 32

_SAYS_TOO_LONG = re.compile(r"token|context.length|too.(long|large)", re.IGNORECASE)

Rows = list[NDArray[np.floating]]


class _RefusedError(Exception):
    """The server finds fault with the input itself (400, 413, 422); `too_long` if with its length."""

    def __init__(self, status: int, too_long: bool) -> None:
        super().__init__(status)
        self.status = status
        self.too_long = too_long


class RemoteModel:
    """One served model; `open()` comes first.

    `stale` becomes true once the served model is seen to have changed. From then on nothing is embedded, and
    the caller opens a new embedder.
    """

    def __init__(self, settings: Settings) -> None:
        if not settings.embedder_url or not settings.embedder_model:
            raise unavailable(
                "A remote embedder needs SEMCACHE_EMBEDDER_URL (an OpenAI-compatible base that ends in /v1) "
                "and SEMCACHE_EMBEDDER_MODEL."
            )
        self.name = settings.embedder_model
        self.dimensions = settings.embedder_dimensions or 0
        self.max_tokens = settings.embedder_max_tokens or ASSUMED_MAX_TOKENS
        self.probe: Vector = np.empty((0, 0), dtype=np.float32)
        self.stale = False
        self._settings = settings
        self._format = "base64"
        self._probed_at = 0.0
        self._probing = asyncio.Lock()
        key = settings.embedder_key
        try:
            self._client = httpx.AsyncClient(
                base_url=settings.embedder_url.rstrip("/") + "/",
                timeout=None,  # noqa: S113 (the whole call is bounded in _send)
                headers={"authorization": f"Bearer {key.get_secret_value()}"} if key else {},
            )
        except httpx.InvalidURL as error:
            raise unavailable("SEMCACHE_EMBEDDER_URL is no URL such as http://host:8000/v1.") from error

    async def open(self) -> None:
        """Learn how much the server reads, the dimensions and the probe.

        Raises EMBEDDER_UNAVAILABLE, or DIMENSION_MISMATCH where the settings say another length.
        """
        told = await self._told_limit()
        if told is not None:
            self.max_tokens = min(told, self._settings.embedder_max_tokens or told)
        found = (await self._probe_rows())[0].size
        if self.dimensions not in (0, found):
            raise SemcacheError(
                Code.DIMENSION_MISMATCH,
                f"The embedder {self.name!r} gives vectors of {found} numbers and "
                f"SEMCACHE_EMBEDDER_DIMENSIONS says {self.dimensions}. Correct the setting, or leave it out.",
            )
        self.dimensions = found
        self.probe = await self._probe()
        self._probed_at = time.monotonic()

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def embed(self, texts: Sequence[str]) -> list[Result]:
        """One unit vector or error a text, in order. Raises what concerns all of them."""
        await self._check_generation()
        fitting = [text for text in texts if self._surely_fits(text)]
        vectors = dict(zip(fitting, await self._embed_batch(fitting), strict=True)) if fitting else {}
        return [vectors[text] if text in vectors else await self._embed_alone(text) for text in texts]

    async def _embed_batch(self, texts: Sequence[str]) -> list[Result]:
        if len(texts) == 1:
            return [await self._embed_alone(texts[0])]
        try:
            rows, _ = await self._call(texts)
        except _RefusedError:
            return [await self._embed_alone(text) for text in texts]
        return [unit(row, self.dimensions) for row in rows]

    async def _embed_alone(self, text: str) -> Result:
        """The text's vector, or the error that concerns this text only.

        No server is trusted not to cut: of a text that may be too long the server must report fewer tokens
        than it reads.
        """
        if len(text) > self.max_tokens * _BYTES_PER_TOKEN:
            return TextTooLong(None, self.max_tokens)
        try:
            rows, tokens = await self._call([text])
        except _RefusedError as error:
            if error.too_long:
                return TextTooLong(None, self.max_tokens)
            return unavailable(f"The embedder refused the text with status {error.status}.")
        if not self._surely_fits(text) and not 0 < tokens <= self.max_tokens - _ADDED_TOKENS:
            return TextTooLong(None, self.max_tokens)
        return unit(rows[0], self.dimensions)

    def _surely_fits(self, text: str) -> bool:
        room = self.max_tokens - _ADDED_TOKENS
        return len(text) <= room and len(encodable(text).encode()) <= room

    async def _check_generation(self) -> None:
        async with self._probing:
            if not self.stale and time.monotonic() - self._probed_at > PROBE_INTERVAL:
                self.stale = not same_generation(self.probe, await self._probe())
                self._probed_at = time.monotonic()
        if self.stale:
            raise unavailable(
                f"The embedder serves another model under the name {self.name!r} than when it was opened. "
                "Vectors of the two are not mixed; opening it anew begins a new generation."
            )

    async def _probe(self) -> Vector:
        vectors = [unit(row, self.dimensions) for row in await self._probe_rows()]
        for vector in vectors:
            if isinstance(vector, SemcacheError):
                raise vector
        return np.stack([vector for vector in vectors if not isinstance(vector, SemcacheError)])

    async def _probe_rows(self) -> Rows:
        try:
            try:
                return (await self._call(PROBES))[0]
            except _RefusedError:
                self._format = "float"
                return (await self._call(PROBES))[0]
        except _RefusedError as error:
            raise unavailable(f"The embedder refused plain texts with status {error.status}.") from error

    async def _told_limit(self) -> int | None:
        """vLLM's `max_model_len` of the model, from GET /models; None where the server does not say."""
        try:
            listed = await self._send("GET", "models")
        except _RefusedError:
            return None
        models = listed.get("data") if isinstance(listed, dict) else None
        for model in models if isinstance(models, list) else []:
            if isinstance(model, dict) and model.get("id") == self.name:
                limit = model.get("max_model_len")
                return limit if isinstance(limit, int) and limit > 0 else None
        return None

    async def _call(self, texts: Sequence[str]) -> tuple[Rows, int]:
        """The raw vectors in order, and how many tokens the server says it read (0: it does not say)."""
        body = {
            "model": self.name,
            "input": [encodable(text) for text in texts],
            "encoding_format": self._format,
        }
        answer = await self._send("POST", "embeddings", body)
        try:
            by_index = {item["index"]: _numbers(item["embedding"]) for item in answer["data"]}
            rows = [by_index[index] for index in range(len(texts))]
            tokens = (answer.get("usage") or {}).get("prompt_tokens")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise unavailable(
                f"The embedder's answer does not hold {len(texts)} vectors as OpenAI's API defines them."
            ) from error
        return rows, tokens if isinstance(tokens, int) else 0

    async def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        try:
            async with asyncio.timeout(self._settings.embedder_timeout):
                response = await self._exchange(method, path, body)
            return _content(response)
        except SemcacheError:
            self._probed_at = 0.0
            raise
        except TimeoutError as error:
            self._probed_at = 0.0
            raise unavailable(
                f"The embedder did not answer within {self._settings.embedder_timeout:g} s (SEMCACHE_EMBEDDER_TIMEOUT)."
            ) from error
        except httpx.HTTPError as error:
            self._probed_at = 0.0
            raise unavailable(f"The embedder cannot be reached ({type(error).__name__}).") from error

    async def _exchange(self, method: str, path: str, body: dict[str, Any] | None) -> httpx.Response:
        try:
            return await self._client.request(method, path, json=body)
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError):
            # The server has just closed a kept connection, or was started anew; embedding twice does no harm.
            self._probed_at = 0.0
            return await self._client.request(method, path, json=body)


def _content(response: httpx.Response) -> Any:
    status = response.status_code
    if status in (400, 413, 422):
        raise _RefusedError(status, status == 413 or _SAYS_TOO_LONG.search(response.text) is not None)
    if status in (401, 403):
        raise unavailable(f"The embedder refused the key ({status}). Correct SEMCACHE_EMBEDDER_KEY.")
    if status == 404:
        raise unavailable(
            "The embedder knows no such path or model (404). Correct SEMCACHE_EMBEDDER_URL or SEMCACHE_EMBEDDER_MODEL."
        )
    if status != 200:
        raise unavailable(f"The embedder answered with status {status}.")
    try:
        return response.json()
    except ValueError as error:
        raise unavailable("The embedder's answer is not JSON.") from error


def _numbers(embedding: Any) -> NDArray[np.floating]:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    return np.asarray(embedding, dtype=np.float64)


__all__ = ["PROBES", "RemoteModel"]
