"""The real model server behind a real service. Needs the environment that `make test-vllm` makes."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from calls import Cache, new_cache
from conftest import NewDatabase
from openai import AsyncOpenAI
from running import Service, running_service

from service.settings import Settings
from tests.vllm.server import EMBEDDER, MODEL, PYTHON, Vllm

CHAT = (
    f"--served-model-name={MODEL}",
    "--enable-auto-tool-choice",
    "--tool-call-parser=hermes",
    "--reasoning-parser=deepseek_v3",
    "--scheduling-policy=priority",
    "--enable-prompt-tokens-details",
    "--enable-per-request-metrics",
    "--enable-scale-out",
)
EMBED = (f"--served-model-name={EMBEDDER}", "--runner=pooling", "--convert=embed")


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every variant of the tiny model."""
    folder = tmp_path_factory.mktemp("models")
    subprocess.run([PYTHON, Path(__file__).with_name("tiny_model.py"), folder], check=True, timeout=300)
    return folder


@pytest.fixture(scope="session")
def vllm(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vllm]:
    """The server of the base model. Who serves another one puts it back."""
    server = Vllm(models, tmp_path_factory.mktemp("vllm"), CHAT)
    server.serve()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def embedder(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vllm]:
    """A second server, which makes vectors of the base model."""
    server = Vllm(models, tmp_path_factory.mktemp("embedder"), EMBED)
    server.serve()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def proxy(vllm: Vllm, new_database: NewDatabase) -> Iterator[Service]:
    """A service in front of it, for all tests: each has a cache of its own."""
    with new_database() as url, running_service(Settings(database_url=url, upstream=vllm.url)) as running:
        yield running


@pytest.fixture
def cache(proxy: Service) -> Cache:
    return new_cache(proxy.http)


@pytest.fixture
async def direct(vllm: Vllm) -> AsyncIterator[AsyncOpenAI]:
    """Past the cache."""
    async with AsyncOpenAI(base_url=vllm.url, api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
async def cached(proxy: Service, cache: Cache) -> AsyncIterator[AsyncOpenAI]:
    """Through the cache of the test."""
    headers = {"x-cache-namespace": cache.name}
    async with AsyncOpenAI(
        base_url=f"{proxy.base}/v1", api_key="none", max_retries=0, default_headers=headers
    ) as client:
        yield client
