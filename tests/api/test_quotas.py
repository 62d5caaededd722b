"""Quotas: set on the command line, shown there and in the figures of a cache, kept by the worker."""

from __future__ import annotations

import httpx
import pytest
from calls import Cache, new_cache
from running import Service
from typer.testing import CliRunner

from service.cli import app
from service.errors import SemcacheError


def quotas(url: str, *arguments: str) -> str:
    done = CliRunner().invoke(app, ["quotas", *arguments, "--database-url", url], catch_exceptions=False)
    return done.stdout


def limits(cache: Cache) -> tuple[int | None, int | None, float | None, int]:
    got = cache.http.get(f"{cache.path}/stats").json()
    return got["maxEntries"], got["maxBytes"], got["fullPercent"], got["evicted"]


def test_a_quota_is_set_as_a_whole_and_shown(service: Service, database_url: str) -> None:
    cache = Cache(service.http, "default")
    for number in range(4):
        cache.store(f"Who owns boat {number}?", "Nobody.")
    assert quotas(database_url, "list").startswith("default\t4 of any entries\t")
    assert limits(cache) == (None, None, None, 0)
    quotas(database_url, "set", "--tenant", "default", "--max-entries", "8")
    assert quotas(database_url, "list").startswith("default\t4 of 8 entries\t")
    assert limits(cache) == (8, None, 50.0, 0)
    quotas(database_url, "set", "--tenant", "default", "--max-bytes", "1000000")
    assert limits(cache)[:2] == (None, 1_000_000)
    quotas(database_url, "set", "--tenant", "default")
    assert limits(cache) == (None, None, None, 0)


def test_limits_are_shown_before_a_worker_has_counted(http: httpx.Client) -> None:
    assert limits(new_cache(http, maxEntries=8, maxBytes=1_000_000)) == (8, 1_000_000, 0.0, 0)


def test_a_quota_of_nobody_is_refused(database_url: str) -> None:
    with pytest.raises(SemcacheError, match="quotas list"):
        quotas(database_url, "set", "--tenant", "nobody", "--max-entries", "8")
