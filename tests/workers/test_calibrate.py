"""What the worker's task calibrate takes up, counts and keeps; what comes of it is in test_learning."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from labelled import label, record
from psycopg.types.json import Jsonb
from sessions import Session, open_session
from stored import Cached

from service.policy.boundary import Budget
from service.policy.verified import LEAST
from service.store import calibrations, observations
from service.store.calibrations import Due
from service.store.database import Database
from service.store.observations import Traffic
from workers import calibrate
from workers.calibrate import wants_fit


async def fit(worker: Database) -> calibrate.Calibrated:
    return await calibrate.run_once(worker, timedelta(days=30), 1000)


async def window(known: Cached, worker: Database, limit: int = 100) -> list[observations.Observed]:
    since = datetime.now(UTC) - timedelta(days=1)
    return await observations.window(worker, known.cache, known.embedder_id, since=since, limit=limit)


NOTHING_NEW: dict[str, Any] = {
    "budget": Budget(),
    "observations": 1000,
    "old": False,
    "tightened_at": None,
    "last": 900,
    "learned": 900,
    "requests": 0,
    "alarming": False,
    "grown": False,
}


@pytest.mark.parametrize(
    ("new", "wanted"),
    [
        ({}, False),
        ({"requests": 19}, False),
        ({"requests": 20}, True),
        ({"requests": 1, "alarming": True}, True),
        ({"grown": True}, True),
        ({"old": True}, True),
        ({"budget": Budget(0.02)}, True),
        ({"last": 0, "learned": 0, "observations": 0, "old": True, "budget": None}, False),
        ({"last": 0, "learned": 0, "observations": 0, "grown": True, "budget": None}, True),
        ({"requests": 1, "observations": 0, "budget": None}, True),
    ],
)
async def test_a_fit_is_worth_its_while(known: Cached, new: dict[str, Any], wanted: bool) -> None:
    assert wants_fit(Due(known.cache, known.embedder_id, **NOTHING_NEW | new)) == wanted


async def test_the_window_keeps_requests_whole_and_in_their_order(known: Cached, worker: Database) -> None:
    for number in range(3):
        first = label(known, 0.9 - number / 100)
        await record(known, replace(first, rank=1, similarity=0.7), first)
    rows = await window(known, worker)
    assert [row.similarity for row in rows] == pytest.approx([0.9, 0.7, 0.89, 0.7, 0.88, 0.7])
    assert len({row.request_id for row in rows}) == 3
    newest = await window(known, worker, limit=2)
    assert [row.similarity for row in newest] == pytest.approx([0.88, 0.7])


async def test_nothing_is_learned_from_what_is_stale_or_was_blocked(known: Cached, worker: Database) -> None:
    await record(known, label(known, verdict="stale"), label(known, signals=None), label(known))
    assert len(await window(known, worker)) == 1


async def test_a_label_weighs_as_many_requests_as_it_was_drawn_from(known: Cached, worker: Database) -> None:
    await record(known, label(known), label(known, inclusion=None, source="feedback"))
    assert sorted(o.weight for o in observations.to_train_on(await window(known, worker))) == [0.0, 4.0]


async def test_exact_hits_of_the_window_are_counted_also_those_in_shadow(known: Cached, worker: Database) -> None:
    lookup = {"cache_id": known.cache.cache_id, "latency_ms": 1, "tokens_saved": 0, "tokens_spent": 0}
    log = [
        ("hit", "same_request", "2026-01-02"),
        ("shadow", "same_request", "2026-01-02"),
        ("shadow", "accepted", "2026-01-02"),
        ("semantic_hit", "accepted", "2026-01-02"),
        ("hit", "same_request", "2025-12-31"),
    ]
    async with known.db.tenant(known.cache.tenant_id) as connection:
        rows = [lookup | {"outcome": outcome, "reason": reason, "at": at} for outcome, reason, at in log]
        await connection.execute("select record_requests(%s, %s)", (known.cache.tenant_id, Jsonb(rows)))
    since = datetime(2026, 1, 1, tzinfo=UTC)
    assert await observations.traffic(worker, known.cache, since) == Traffic(requests=4, exact_hits=2, semantic_hits=1)
    assert await observations.traffic(worker, known.cache, since, since) == Traffic(0, 0, 0)


async def test_the_words_of_a_cache_are_counted_by_entry(known: Cached, worker: Database, database_url: str) -> None:
    app = open_session(database_url, "acme")
    for number, content in enumerate((["rose", "old", "rose"], ["rose", "young"], ["oak"])):
        app.store(f"p{number}", features=Jsonb({"content": content}))
    app.connection.close()
    found = await calibrations.frequencies(worker, known.cache, entries=100, words=2)
    assert (found.total, found.counts) == (3, {"rose": 2, "oak": 1})
    newest = await calibrations.frequencies(worker, known.cache, entries=1, words=10)
    assert (newest.total, newest.counts) == (1, {"oak": 1})


async def test_an_entry_gets_its_fit_and_loses_it_with_its_labels(known: Cached, worker: Database) -> None:
    labels = [label(known, 0.8 + number / 100, correct=number > 5) for number in range(LEAST * 2)]
    await record(known, *labels)
    assert (await fit(worker)).caches == 1
    assert (await fit(worker)).caches == 0
    own, pooled = await fits(known)
    assert own == [{"n": 2 * LEAST + 2, "confirmed": 6, "refuted": 6}]
    assert pooled is not None
    assert 0.84 < pooled.middle < 0.87
    await record(known, label(known, source="feedback", inclusion=None))
    superuser(known, "update semcache.observation set at = now() - interval '31 days'")
    await record(known, label(known))
    assert (await fit(worker)).caches == 1
    assert len(await window(known, worker)) == 1
    assert superuser(known, "select source from semcache.observation order by source") == ["exploration", "feedback"]
    assert await fits(known) == ([{"n": None, "confirmed": 1, "refuted": 0}], None)


async def fits(known: Cached) -> tuple[list[dict[str, Any]], Any]:
    """What labels say of entries, and the pooled fit."""
    async with known.db.tenant(known.cache.tenant_id) as connection:
        rows = await (await connection.execute("select n, confirmed, refuted from entry_fit")).fetchall()
    (learned,) = (await calibrations.read(known.db, known.cache)).values()
    return rows, learned.pooled


def superuser(known: Cached, statement: str) -> list[Any]:
    """The first column of what a statement gives, if it gives rows."""
    with psycopg.connect(known.db.url) as connection:
        found = connection.execute(statement)  # type: ignore[call-overload]
        return [row[0] for row in found] if found.description else []


async def test_after_an_alarm_older_labels_are_not_learned_from_again(known: Cached, worker: Database) -> None:
    await record(known, *(label(known, 0.95) for _ in range(8)))
    await fit(worker)
    assert (await fits(known))[1] is not None
    superuser(known, "update semcache.calibration set tightened_at = now() + interval '1 second'")
    await record(known, label(known, 0.95, correct=False, source="audit"))
    assert (await fit(worker)).caches == 1
    assert (await fits(known))[1] is None


async def test_without_the_library_it_says_so(known: Cached, worker: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "find_spec", lambda _: None)
    await record(known, label(known))
    await fit(worker)
    (learned,) = (await calibrations.read(known.db, known.cache)).values()
    assert learned.calibration is not None
    assert 'pip install "pgsemcache[learn]"' in learned.calibration.boundary.missing


async def test_another_tenant_sees_nothing_of_it(known: Cached, worker: Database, database_url: str) -> None:
    await record(known, *(label(known, 0.9) for _ in range(8)))
    await fit(worker)
    other: Session = open_session(database_url, "other")
    tables = ("observation", "calibration", "entry_fit", "feature", "calibrations", "observations")
    assert [other.count(table) for table in tables] == [0] * len(tables)
    other.connection.close()
    own = open_session(database_url, "acme")
    assert [own.count(table) for table in tables] == [8, 1, 1, 0, 1, 1]
    (row,) = own.rows("select source, verdicts, wrong_percent, wrong_percent_from, wrong_percent_to from observations")
    assert (row["source"], row["verdicts"], row["wrong_percent"], row["wrong_percent_from"]) == ("exploration", 8, 0, 0)
    assert float(row["wrong_percent_to"]) == pytest.approx(32.44, abs=0.01)
    own.connection.close()
