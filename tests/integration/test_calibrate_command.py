"""`pgsemcache calibrate`: on a file of pairs, on what a cache has observed, and into its policy."""

from __future__ import annotations

import asyncio
import csv
import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from service.cli import main
from service.policy.signals import Signals
from service.store import caches, embedders, observations, tenants
from service.store.database import Database, Limits
from service.store.observations import NewObservation

TOOLS = ["ladder", "drill", "saw", "hammer", "lathe", "torch", "shovel", "wrench", "anvil", "chisel", "plane", "vice"]
TASKS = ["clean", "repair", "store", "buy", "sharpen", "rent", "paint", "sell"]


@dataclass
class Said:
    """What a run wrote: on its output, as figures, or as its last words."""

    output: str
    figures: dict[str, Any]
    code: int


Run = Callable[..., Said]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    def command(*arguments: str | Path) -> Said:
        written = tmp_path / "figures.json"
        monkeypatch.setattr(sys, "argv", ["pgsemcache", "calibrate", *map(str, arguments), "--json", str(written)])
        with pytest.raises(SystemExit) as ended:
            main()
        written_to = capsys.readouterr()
        code = ended.value.code
        said = written_to.out + written_to.err + (code if isinstance(code, str) else "")
        figures = json.loads(written.read_text()) if written.exists() else {}
        return Said(said, figures, code if isinstance(code, int) else int(code is not None))

    return command


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Paraphrases, and pairs that differ in a number alone."""
    rows = []
    for tool in TOOLS:
        for task in TASKS:
            rows.append({"a": f"How do I {task} a {tool}?", "b": f"How can I {task} a {tool}?", "same": 1})
            rows.append({"a": f"{task} {tool} number 14", "b": f"{task} {tool} number 15", "same": 0})
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def point(said: Said, policy: str, setting: float) -> Any:
    (row,) = [r for r in said.figures["rows"] if (r["policy"], r["setting"]) == (policy, setting)]
    return row["point"]


def test_pairs_show_what_guards_are_worth(run: Run, pairs: Path, tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    said = run(pairs, "--budget", "0.1", "--plot", picture)
    plain, guarded = point(said, "threshold without guards", 0.9), point(said, "threshold", 0.9)
    assert plain["false_per_semantic_hit"]["rate"] > 0.2
    assert guarded["false_per_semantic_hit"]["rate"] == 0
    assert guarded["semantic_hits"] > 30
    assert said.figures["choice"]["policy"]["guards"] is True
    assert "at most 10.00% false hits per semantic hit" in said.output
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_csv_and_jsonl_say_the_same(run: Run, pairs: Path, tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    rows = [json.loads(line) for line in pairs.read_text().splitlines()]
    with table.open("w", newline="", encoding="utf-8-sig") as file:  # as spreadsheets write it
        writer = csv.DictWriter(file, ["a", "b", "same"])
        writer.writeheader()
        writer.writerows(rows)
    assert run(table).figures == run(pairs).figures


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"a": "x", "b": "y", "same": 1}\nnonsense', "line 2 is not JSON"),
        ('{"a": "x", "b": "y", "same": 2}', "row 1: it must have the texts a and b, and same, which is 1 or 0"),
        ('{"a": "x", "same": 1}', "row 1"),
        ("[1]", "row 1"),
    ],
)
def test_a_bad_row_is_named(run: Run, tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(content)
    assert words in run(path).output
    assert "cannot be read" in run(tmp_path / "absent.csv").output


@pytest.mark.parametrize("flags", [[], ["--in-order"], ["--write"]])
@pytest.mark.parametrize("rows", [0, 1])
def test_pairs_that_do_not_make_two_halves_are_refused(run: Run, tmp_path: Path, rows: int, flags: list[str]) -> None:
    path = tmp_path / "few.jsonl"
    path.write_text('{"a": "x", "b": "y", "same": 1}\n' * rows)
    said = run(path, *flags)
    assert (said.code, said.figures) == (2, {})
    assert f"{rows} labelled pairs do not make two halves" in said.output


@pytest.mark.parametrize(("flag", "value"), [("--since", "soon"), ("--tenant", "nobody"), ("--cache", "none")])
def test_what_is_not_there_is_named(run: Run, database_url: str, flag: str, value: str) -> None:
    asyncio.run(seed(database_url, right=0, wrong=0))
    said = run("--database-url", database_url, flag, value)
    assert flag.strip("-") in said.output.replace("policy", "")
    assert said.figures == {}


async def seed(url: str, *, right: int, wrong: int) -> None:
    """Requests of a cache, of which every second was observed: those at 0.93 were right, those at 0.85 wrong."""
    db = Database(url, Limits(pool_min=1, pool_max=2, timeout=30.0))
    await db.open()
    tenant = await tenants.ensure(db, "default")
    cache = await caches.find(db, tenant.tenant_id, "default")
    embedder = await embedders.register(
        db, kind="local", name="tiny", revision="r", dimensions=3, max_tokens=9, probe=None, same=lambda *_: True
    )
    labels = [True] * right + [False] * wrong
    random.Random(0).shuffle(labels)
    for correct in labels:
        similarity = 0.93 if correct else 0.85
        row = NewObservation(
            request_id=uuid4(),
            entry_id=uuid4(),
            verdict="correct" if correct else "wrong",
            source="shadow",
            embedder_id=embedder,
            similarity=similarity,
            rank=0,
            signals=Signals(similarity, *[0.0] * (len(Signals._fields) - 1)),
            answer_key=uuid4().bytes * 2,
            probability=None,
            served=False,
            policy="threshold",
            inclusion=0.5,
        )
        await observations.record(db, cache, [row])
    await db.close()


def log(url: str, **counts: int) -> None:
    """Requests of the last minutes, by outcome."""
    with psycopg.connect(url, autocommit=True) as connection:
        for outcome, count in counts.items():
            connection.execute(
                "insert into semcache.request_log (at, tenant_id, cache_id, outcome, reason, latency_ms) "
                "select now() + interval '1 second', c.tenant_id, c.cache_id, %s, 'same_request', 1 "
                "from semcache.cache c, generate_series(1, %s)",
                (outcome, count),
            )


def policy_of(url: str) -> tuple[Any, list[Any]]:
    with psycopg.connect(url) as connection:
        policy = connection.execute("select policy from semcache.cache").fetchall()
        logged = connection.execute("select detail from semcache.audit_log where action = 'change_policy'").fetchall()
    return policy[0][0], [row[0] for row in logged]


def test_observations_stand_for_as_many_requests_as_they_were_drawn_from(run: Run, database_url: str) -> None:
    asyncio.run(seed(database_url, right=10, wrong=0))
    asyncio.run(seed(database_url, right=0, wrong=10))
    log(database_url, hit=40, shadow=10, miss=50, bypass=9)
    said = run("--database-url", database_url, "--since", "1h")
    found = point(said, "threshold", 0.84)
    assert found["semantic_hits"] == 20, "the later ten requests, each drawn with probability 0.5, were wrong"
    assert found["false_per_semantic_hit"]["rate"] == 1
    assert found["hit_rate"] == pytest.approx((50 + 20) / 100)
    assert found["false_per_served_hit"]["rate"] == pytest.approx(20 / 70)
    assert "nothing, it takes" in said.output


def test_labels_of_requests_that_the_log_no_longer_has_count_as_requests(run: Run, database_url: str) -> None:
    asyncio.run(seed(database_url, right=20, wrong=0))
    log(database_url, hit=5)
    said = run("--database-url", database_url, "--since", "1h")
    assert "of 25 requests there 5 were exact hits" in said.output
    assert point(said, "threshold", 0.84)["hit_rate"] == 1


def test_hits_that_nobody_looks_at_are_told(run: Run, database_url: str) -> None:
    asyncio.run(seed(database_url, right=10, wrong=10))
    log(database_url, semantic_hit=7)
    assert "7 semantic hits of that time are left out" in run("--database-url", database_url).output
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("""update semcache.cache set policy = '{"auditRate": 0.01}'""")
    assert "left out" not in run("--database-url", database_url).output


@pytest.mark.parametrize("decision", ["threshold", "calibrated"])
def test_the_choice_is_written_to_the_policy(run: Run, database_url: str, decision: str) -> None:
    asyncio.run(seed(database_url, right=600, wrong=120))
    log(database_url, miss=1400)
    said = run("--database-url", database_url, "--budget", "0.05", "--decision", decision, "--write")
    assert "kept" in said.output
    written, logged = policy_of(database_url)
    assert written["decision"] == decision
    assert written == said.figures["choice"]["policy"]
    assert logged == [{"policy": written}]


def test_nothing_is_written_where_nothing_keeps_the_budget(run: Run, database_url: str) -> None:
    asyncio.run(seed(database_url, right=10, wrong=10))
    assert "nothing was written" in run("--database-url", database_url, "--write").output
    asyncio.run(seed(database_url, right=500, wrong=0))
    asyncio.run(seed(database_url, right=0, wrong=400))
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("update semcache.observation set similarity = 0.93 where verdict = 'wrong'")
    broken = run("--database-url", database_url, "--write", "--budget", "0.05")
    assert "breaks the budget on the other" in broken.output
    assert policy_of(database_url) == ({}, [])
