"""Adapters under test talk to the shared service over real HTTP, each test to a cache of its own."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest
from calls import Cache, new_cache
from running import Service

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # read at import: no download of a price list


@pytest.fixture
def cache(shared_service: Service) -> Cache:
    return new_cache(shared_service.http)


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody answers."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{reserved.getsockname()[1]}"
