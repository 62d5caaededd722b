"""Hit rates of the eviction policies in SQL against other policies and the offline optimum, over public traces.

Each request is looked up, stored on a miss and counted on a hit through the service's own SQL functions, and the
worker's eviction runs as often as a fiftieth of the cache was asked for. The half-life is learned as the worker does
it, from what came before, ten times in a trace. Baselines get the same requests one by one, and have the whole size
all the time.

    python benchmarks/eviction.py [--traces open,weblog,mooncake] [--json FILE]
    python benchmarks/eviction.py --instances         # the same hits with 1, 4 and 8 services on one store?
    python benchmarks/eviction.py --speed             # rows evicted a second, and what lookups feel of it
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing import Event, Process, Queue
from pathlib import Path
from typing import Any

import psycopg
from eviction_policies import POLICIES, Trace, optimum
from psycopg.types.json import Jsonb
from setting import Times, own_database, table, write_json

from workers.forward_decay import best_half_life

DATA = Path(os.environ.get("SEMCACHE_BENCH_DATA", Path(__file__).parents[2] / "shared" / "data"))
SHARES = (0.01, 0.05, 0.1, 0.2)
OURS = ("lfu-decay-cost", "lru", "s3-fifo")
LOW = 0.98
PAYLOAD = '{"version": 1, "endpoint": "chat", "body": {}}'
LOOK_UP = """
select e.entry_id, o.payload
from semcache.entry e
join semcache.output o using (output_id)
where e.cache_id = %s
  and e.exact_key = %s
  and e.quarantined_at is null
"""
STORE = """
select s.entry_id, k.key
from unnest(%(keys)s::bytea[]) with ordinality as k (key, n)
cross join lateral semcache.store_entry(
    %(tenant_id)s, %(cache_id)s, 0, %(scope_id)s, k.key, sha256(''), 'prompt', null, '{}', '{}', 'upstream', null,
    %(payload)s, null, null, %(cost_ms)s::real, %(embedder_id)s, %(vector)s::halfvec, 1, null, null, null
) s
order by k.n
"""


def traces(names: list[str]) -> Iterator[tuple[str, Trace, list[float]]]:
    """Each trace: its requests as numbers, and when each came, in seconds."""
    readers = {
        "open": ("stream_open", lambda row: [(row["text"], row["t"])]),
        "weblog": ("trace_weblog_semicomplete", lambda row: [(row["text"], row["t"])]),
        "mooncake": ("trace_mooncake_conversation", lambda row: [(b, row["t_ms"] / 1000) for b in row["blocks"]]),
    }
    for name in names:
        file, read = readers[name]
        lines = (DATA / f"{file}.jsonl").read_text().splitlines()
        asked = [pair for line in lines for pair in read(json.loads(line))]
        numbers: dict[Any, int] = {}
        yield file, [numbers.setdefault(key, len(numbers)) for key, _ in asked], [at for _, at in asked]


@dataclass
class SqlCache:
    """A cache in Postgres, as the service and a worker use it."""

    connection: psycopg.Connection[Any]
    size: int
    eviction: str
    ids: dict[str, int] = field(default_factory=dict)
    hits: int = 0

    def __post_init__(self) -> None:
        policy = {"maxEntries": self.size, "eviction": self.eviction}
        self.ids = self._one(
            "with t as (select semcache.ensure_tenant('bench') as id) "
            "select t.id as tenant_id, semcache.create_cache(t.id, %s, %s) as cache_id, "
            "semcache.register_embedder('local', 'bench', 'r1', 3, 16, null) as embedder_id from t",
            (f"{self.eviction}-{time.monotonic_ns()}", Jsonb(policy)),
        )
        self.ids |= self._one(
            "select semcache.ensure_scope(%(tenant_id)s, %(cache_id)s, sha256('s'), 1::smallint, '{}', sha256('m'), "
            """'{"name": "m"}', sha256('{}'), '{}') as scope_id""",
            self.ids,
        )

    def _one(self, statement: str, values: Any) -> Any:
        cursor = self.connection.cursor(row_factory=psycopg.rows.dict_row)
        return cursor.execute(statement, values).fetchone()

    def ask(self, keys: Trace) -> list[dict[str, Any]]:
        """Look these up together and store what is missing; the touches, to be counted with `touch`."""
        named = [hashlib.sha256(str(key).encode()).digest() for key in keys]
        found = self.connection.execute(
            "select exact_key, entry_id from semcache.entry where cache_id = %s and exact_key = any (%s)",
            (self.ids["cache_id"], list(set(named))),
        ).fetchall()
        entries = {bytes(key): str(entry) for key, entry in found}
        missing = [name for name in dict.fromkeys(named) if name not in entries]
        values = self.ids | {"keys": missing, "payload": PAYLOAD, "cost_ms": 100, "vector": None}
        stored = self.connection.execute(STORE, values).fetchall() if missing else []
        entries |= {bytes(key): str(entry) for entry, key in stored}
        new, touches = set(missing), []
        for name in named:
            if name in new:
                new.discard(name)
            else:
                touches.append({"entry_id": entries[name]})
        self.hits += len(touches)
        return touches

    def touch(self, touches: list[dict[str, Any]]) -> None:
        if touches:
            common = {"at": time.time(), "cache_id": self.ids["cache_id"], "outcome": "hit", "reason": "same_request"}
            common |= {"at": self._now(), "served": True, "latency_ms": 0, "tokens_saved": 0, "tokens_spent": 0}
            rows = [common | touch for touch in touches]
            self.connection.execute("select semcache.record_requests(%s, %s)", (self.ids["tenant_id"], Jsonb(rows)))

    def _now(self) -> str:
        return str(self._one("select clock_timestamp()::text as now", None)["now"])

    def evict(self) -> None:
        again = True
        while again:
            (again,) = self.connection.execute(
                "select semcache.evict_entries(%s, 1000, %s)", (self.ids["cache_id"], LOW)
            ).fetchone()

    def learn(self, past: Trace) -> None:
        """As the worker's task half_life."""
        where = {"cache_id": self.ids["cache_id"]}
        now = self._one("select half_life from semcache.cache_size where cache_id = %(cache_id)s", where)["half_life"]
        best = best_half_life(past, self.size, now)
        self.connection.execute(
            "update semcache.cache_size set half_life = %s where cache_id = %s", (best, self.ids["cache_id"])
        )


def replay(connection: psycopg.Connection[Any], trace: Trace, size: int, eviction: str) -> int:
    """Hits of our policy in SQL."""
    cache = SqlCache(connection, size, eviction)
    step = max(1, size // 50)
    lessons = {len(trace) * tenth // 10 // step for tenth in range(1, 10)}
    for number, start in enumerate(range(0, len(trace), step)):
        cache.touch(cache.ask(trace[start : start + step]))
        cache.evict()
        if eviction == "lfu-decay-cost" and number in lessons:
            cache.learn(trace[:start])
    connection.execute("select semcache.delete_cache(%(tenant_id)s, %(cache_id)s)", cache.ids)
    return cache.hits


def replay_shared(
    connection: psycopg.Connection[Any], trace: Trace, times: list[float], size: int, instances: int
) -> int:
    """Hits where requests go in turn to several services, each of which counts its hits each second of the trace."""
    cache = SqlCache(connection, size, "lfu-decay-cost")
    waiting: list[list[dict[str, Any]]] = [[] for _ in range(instances)]
    written = [times[0]] * instances
    for number, (key, at) in enumerate(zip(trace, times, strict=True)):
        who = number % instances
        waiting[who] += cache.ask([key])
        for service in range(instances):
            if at - written[service] >= 1:
                cache.touch(waiting[service])
                waiting[service], written[service] = [], at
        if number % max(1, size // 50) == 0:
            cache.evict()
    return cache.hits


def compare(url: str, names: list[str]) -> list[dict[str, Any]]:
    rows = []
    with psycopg.connect(url, autocommit=True) as connection:
        act_as_worker(connection)
        for name, trace, _ in traces(names):
            distinct = len(set(trace))
            for share in SHARES:
                size = max(2, int(distinct * share))
                hits = {other: policy(trace, size) for other, policy in POLICIES.items()}
                hits |= {ours: replay(connection, trace, size, ours) for ours in OURS}
                hits["optimum"] = optimum(trace, size)
                rates = {policy: round(100 * count / len(trace), 2) for policy, count in hits.items()}
                rows.append({"trace": name, "share": share, "entries": size, **rates})
                print(json.dumps(rows[-1]), flush=True)
    return rows


def compare_instances(url: str) -> list[dict[str, Any]]:
    rows = []
    with psycopg.connect(url, autocommit=True) as connection:
        act_as_worker(connection)
        for name, trace, times in traces(["open", "weblog"]):
            size = int(len(set(trace)) * 0.1)
            rates = {
                str(count): round(100 * replay_shared(connection, trace, times, size, count) / len(trace), 2)
                for count in (1, 4, 8)
            }
            rows.append({"trace": name, "entries": size, **rates})
    return rows


def act_as_worker(connection: psycopg.Connection[Any]) -> None:
    connection.execute("select semcache.ensure_tenant('bench')")
    connection.execute("set search_path = semcache, public")
    connection.execute("set synchronous_commit = off")
    connection.execute("set plan_cache_mode = force_generic_plan")
    connection.execute("set enable_seqscan = off")


def measure_speed(url: str, *, rows: int = 80_000, pace: int = 10_000) -> list[dict[str, Any]]:
    """Exact lookups while nothing, and while `pace` rows a second are evicted."""
    with psycopg.connect(url, autocommit=True) as connection:
        act_as_worker(connection)
        cache = SqlCache(connection, 10, "lfu-decay-cost")
        connection.execute("update semcache.cache set policy = '{}' where cache_id = %(cache_id)s", cache.ids)
        vector = "[" + ",".join(["0.05"] * 3) + "]"
        for start in range(0, rows, 5_000):
            keys = [hashlib.sha256(str(n).encode()).digest() for n in range(start, start + 5_000)]
            connection.execute(STORE, cache.ids | {"keys": keys, "payload": PAYLOAD, "cost_ms": 1, "vector": vector})
            if start == 0:
                connection.execute("analyze")  # generic plans that were made for empty tables scan too much
        begun = time.perf_counter()
        limit_to(connection, cache, rows - 1)
        cache.evict()
        ranked = rows / (time.perf_counter() - begun)
        connection.execute("vacuum analyze semcache.entry, semcache.entry_usage, semcache.output")
        before = look_up(url, cache, rest)
        limit_to(connection, cache, rows - 6 * pace)
        during = look_up(url, cache, lambda: evict_at(connection, cache, pace))
        after = look_up(url, cache, rest)
        print(f"ranked at first sight: {ranked:,.0f} rows a second")
    return [
        {"when": when, "evicted a second": rate, "p50 ms": times.percentile(0.5), "p99 ms": times.percentile(0.99)}
        for when, (times, rate) in (("before", before), ("during", during), ("after", after))
    ]


def limit_to(connection: psycopg.Connection[Any], cache: SqlCache, entries: int) -> None:
    connection.execute(
        "update semcache.cache set policy = %s where cache_id = %s",
        (Jsonb({"maxEntries": entries}), cache.ids["cache_id"]),
    )


def evict_at(connection: psycopg.Connection[Any], cache: SqlCache, pace: int) -> int:
    """Batches at this pace for five seconds; rows a second that were reached."""
    counted = "select evicted from semcache.cache_size where cache_id = %s"
    (before,) = connection.execute(counted, (cache.ids["cache_id"],)).fetchone()
    begun, batches = time.monotonic(), 0
    while (now := time.monotonic()) - begun < 5:
        if (now - begun) * pace / 1000 > batches:
            connection.execute("select semcache.evict_entries(%s, 1000, %s)", (cache.ids["cache_id"], LOW))
            batches += 1
        else:
            time.sleep(0.001)
    seconds = time.monotonic() - begun
    (after,) = connection.execute(counted, (cache.ids["cache_id"],)).fetchone()
    return int((after - before) / seconds)


def look_up(url: str, cache: SqlCache, work: Callable[[], int]) -> tuple[Times, int]:
    """Exact lookups in a process of their own while `work` runs, and what it returns."""
    done, found = Event(), Queue()
    asking = Process(target=keep_asking, args=(url, cache.ids["cache_id"], done, found))
    asking.start()
    result = work()
    done.set()
    times = Times(found.get())
    asking.join()
    return times, result


def keep_asking(url: str, cache_id: int, done: Any, found: Any) -> None:
    seconds, number = [], 0
    with psycopg.connect(url, autocommit=True) as connection:
        while not done.is_set():
            number += 1
            key = hashlib.sha256(str(number * 7919 % 80_000).encode()).digest()
            begun = time.perf_counter()
            connection.execute(LOOK_UP, (cache_id, key), prepare=True).fetchall()
            seconds.append(time.perf_counter() - begun)
            time.sleep(0.001)
    found.put(seconds)


def rest() -> int:
    time.sleep(5)
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", default="open,weblog,mooncake")
    parser.add_argument("--instances", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with own_database() as url:
        if options.speed:
            rows = measure_speed(url)
        elif options.instances:
            rows = compare_instances(url)
        else:
            rows = compare(url, options.traces.split(","))
    print(table(list(rows[0]), [list(row.values()) for row in rows]))
    if options.json:
        write_json(options.json, rows)


if __name__ == "__main__":
    main()
