"""A cache of each test's own in one running service."""

from __future__ import annotations

import httpx
import pytest
from calls import Cache, new_cache
from running import Service


@pytest.fixture
def http(shared_service: Service) -> httpx.Client:
    return shared_service.http


@pytest.fixture
def cache(http: httpx.Client) -> Cache:
    return new_cache(http)
