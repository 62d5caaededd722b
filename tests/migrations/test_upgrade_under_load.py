"""An upgrade at noon: requests of a running service go on, and none of them fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg
import pytest
from running import Service

from service.errors import Code, SemcacheError
from service.store import migrate

REVISION = """
from alembic import op

revision = "9999"
down_revision = "{head}"


def upgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '5s'")
    op.execute("alter table entry add column region text default 'north' not null")
    op.execute("alter table entry add constraint region_known check (region in ('north', 'south')) not valid")
    op.execute("alter table entry validate constraint region_known")
    with op.get_context().autocommit_block():
        op.execute("create index concurrently entry_region on entry (region, entry_id)")


def downgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '5s'")
    op.execute("alter table entry drop column region")
"""
CLIENTS = 4
LONGEST = 10.0  # seconds of a request meanwhile, on a very busy machine


@dataclass
class Load:
    """What the clients saw: statuses, and the longest time of a request."""

    statuses: list[int] = field(default_factory=list)
    slowest: float = 0.0


@contextmanager
def load(service: Service) -> Iterator[Load]:
    """Clients that store and search all the time."""
    seen, over = Load(), threading.Event()

    def client(number: int) -> None:
        with httpx.Client(base_url=f"{service.base}/v1/caches/default", timeout=30) as http:
            for turn in range(100_000):
                if over.is_set():
                    return
                prompt = f"What is the fare to island {number}-{turn % 50}?"
                for path, body in (("entries", {"response": "Two coins."}), ("entries/search", {})):
                    begun = time.monotonic()
                    seen.statuses.append(http.post(path, json={"prompt": prompt, **body}).status_code)
                    seen.slowest = max(seen.slowest, time.monotonic() - begun)

    with ThreadPoolExecutor(CLIENTS) as pool:
        ends = [pool.submit(client, number) for number in range(CLIENTS)]
        try:
            while len(seen.statuses) < 20 * CLIENTS:
                assert not any(end.done() for end in ends)
                over.wait(0.01)
            yield seen
        finally:
            over.set()
    for end in ends:
        end.result()


def test_no_request_fails_and_none_waits_long(service: Service, database_url: str, scripts: Path) -> None:
    (scripts / "versions" / "9999_region.py").write_text(REVISION.format(head=migrate.state(database_url).head))
    with load(service) as seen:
        before = len(seen.statuses)
        migrate.upgrade(database_url)
        while len(seen.statuses) < before + 20 * CLIENTS:
            time.sleep(0.01)
    assert set(seen.statuses) == {200, 201}
    assert seen.slowest < LONGEST
    assert migrate.state(database_url).revision == "9999"


def test_an_upgrade_gives_up_rather_than_wait_behind_a_long_transaction(database_url: str, scripts: Path) -> None:
    (scripts / "versions" / "9999_region.py").write_text(REVISION.format(head=migrate.state(database_url).head))
    with psycopg.connect(database_url) as report:
        report.execute("select count(*) from semcache.entry")
        with pytest.raises(SemcacheError, match="a long transaction holds") as refused:
            migrate.upgrade(database_url)
    assert refused.value.code is Code.SCHEMA_BEHIND
    migrate.upgrade(database_url)
    assert migrate.state(database_url).revision == "9999"
