"""Every query of the guide runs, on a database that has something to say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from calls import Cache
from running import Service

PAGE = Path(__file__).parents[2] / "docs" / "psql.md"
BLOCKS = re.findall(r"^## (\d+)\..*?(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
QUERIES = [
    query.strip()
    for block in re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for query in block.split(";")
]

# What only workers and audits fill.
BY_WORKERS = ("semcache.observation", "semcache.capacity", "semcache.index_health", "semcache.tasks")


@pytest.fixture(scope="module")
def connection(shared_service: Service) -> Iterator[psycopg.Connection]:
    """A session of a worker, after a wrong answer, a hit, a near miss and a deleted entry."""
    cache = Cache(shared_service.http, "default")
    wrong = cache.store("How do I prune a pear tree?", "In late winter.")
    for prompt in ("How do I prune a pear tree?", "How do I prune 2 pear trees?", "Who wrote this song?"):
        cache.look(prompt)
    cache.post("feedback", {"entryId": wrong, "verdict": "wrong", "prompt": "How do I prune 2 pear trees?"})
    for prompt in ("Where is the harbour?", "Who is the mayor?"):
        cache.store(prompt, "Ask in town.")
    cache.look("Where is the harbour?")
    gone = cache.store("What is on today?", "A market.")
    shared_service.http.delete(f"{cache.entries}/{gone}")
    shared_service.http.get("/v1/caches/default/stats")
    with psycopg.connect(shared_service.runtime.db.url) as connection:
        connection.execute("set role semcache_worker")
        yield connection


def test_there_are_ten_questions() -> None:
    assert [str(number) for number in range(1, 11)] == BLOCKS


def test_a_false_hit_shows_what_was_asked_and_answered(connection: psycopg.Connection) -> None:
    asked, stored = "How do I prune 2 pear trees?", "How do I prune a pear tree?"
    shown = connection.execute("select source, stored, answer from semcache.false_hits where asked = %s", (asked,))
    assert shown.fetchall() == [("feedback", stored, "In late winter.")]


@pytest.mark.parametrize(
    "query", [query for query in QUERIES if query], ids=lambda query: query[:40].replace("\n", " ")
)
def test_a_query_answers(connection: psycopg.Connection, query: str) -> None:
    found = connection.execute(query.encode())
    assert found.description
    assert found.fetchall() or any(name in query for name in BY_WORKERS), "it shows nothing"
