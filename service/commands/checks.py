"""What `pgsemcache doctor` holds right and wrong. Each rule says what it saw and, where it is not well, the mend."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from service.settings import Settings
from service.store.facts import ServerFacts, TrafficFacts
from service.store.migrate import UPGRADE_HINT, State

Level = Literal["ok", "warn", "FAIL"]
OLDEST_PGVECTOR = (0, 8, 4)
SLOW_MS = 500
BUSY = 0.7
LATE = 900.0  # seconds without a worker's task
ROOM, LEAST_ROOM = 2 * 2**30, 200 * 2**20


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; `mend` where something is to be done."""

    level: Level
    what: str
    said: str
    mend: str = ""


def judge_schema(state: State, difference: str | None) -> Iterator[Finding]:
    if state.behind:
        yield Finding("FAIL", "schema", f"at {state.revision or 'none'}, this release needs {state.head}", UPGRADE_HINT)
    elif not state.known:
        yield Finding("warn", "schema", f"at {state.revision}, which a later release made", "upgrade this installation")
    elif difference:
        mend = "undo the change, or make it a revision; `pgsemcache db check` shows it whole"
        yield Finding("FAIL", "schema", f"changed by hand: {difference[:200]}", mend)
    else:
        yield Finding("ok", "schema", f"at {state.head}, as this release made it")


def judge_server(facts: ServerFacts, settings: Settings, now: float) -> Iterator[Finding]:
    yield _versions(facts)
    if facts.in_recovery:
        yield Finding("FAIL", "postgres", "is a standby, which takes no writes", "give the address of the primary")
    if not (facts.fsync and facts.full_page_writes):
        mend = "alter system set fsync = on; alter system set full_page_writes = on; select pg_reload_conf();"
        yield Finding("FAIL", "durability", "fsync or full_page_writes is off: a crash may lose the database", mend)
    if not facts.autovacuum:
        yield Finding("FAIL", "autovacuum", "is off", "alter system set autovacuum = on; select pg_reload_conf();")
    yield _clock(facts.clock - now)
    yield _connections(facts, settings)
    yield _vectors(facts)
    yield _indexes(facts)
    if facts.bloated_tables:
        tables = ", ".join(facts.bloated_tables)
        mend = f"vacuum (analyze) semcache.{facts.bloated_tables[0]}; and autovacuum_vacuum_scale_factor = 0.05"
        yield Finding("warn", "dead rows", f"more than a quarter of {tables}", mend)
    if facts.replay_lag > 10:
        said = f"a standby is {facts.replay_lag:.0f} s behind"
        yield Finding("warn", "replication", said, "look at its network and disk; a failover would lose that much")


def judge_traffic(facts: TrafficFacts) -> Iterator[Finding]:
    slow = {tier: ms for tier, ms in facts.p99_ms.items() if ms > SLOW_MS}
    if slow:
        said = ", ".join(f"p99 of {tier} is {ms:.0f} ms" for tier, ms in sorted(slow.items()))
        mend = (
            f"the stage {facts.slowest_stage} takes most of it; docs/runbook.md#pgsemcachelookupsslow says what helps"
        )
        yield Finding("warn", "latency", said, mend)
    else:
        yield Finding("ok", "latency", f"{facts.requests} requests in the last hour, no tier over {SLOW_MS} ms at p99")
    if facts.ended is None or facts.ended > LATE:
        said = "never ran" if facts.ended is None else f"last ended a task {facts.ended:.0f} s ago"
        yield Finding("warn", "worker", said, "run `pgsemcache worker`, or serve --with-worker")
    elif facts.failing_tasks:
        said = f"fails again and again at {', '.join(facts.failing_tasks)}"
        yield Finding("warn", "worker", said, "`table semcache.tasks` says why")
    else:
        yield Finding("ok", "worker", f"ended a task {facts.ended:.0f} s ago")
    if facts.overgrown_indexes:
        said = f"{facts.overgrown_indexes} cover less than a third of their rows"
        yield Finding("warn", "vector indexes", said, "a worker rebuilds them: does it run, and what says its log?")


def judge_policy(tenant: str, cache: str, lacking: list[str]) -> Iterator[Finding]:
    """lacking: what the policy asks for in vain."""
    for said in lacking:
        mend = "set it where the service starts, or take the key back: PATCH /v1/caches/{cacheId}"
        yield Finding("warn", f"cache {cache} of {tenant}", said, mend)


def judge_disk(what: str, free: int) -> Finding:
    said = f"{free / 2**30:.1f} GB free"
    if free < ROOM:
        level: Level = "FAIL" if free < LEAST_ROOM else "warn"
        return Finding(level, what, said, "make room, or move it: SEMCACHE_DATA_DIR, SEMCACHE_MODELS_DIR")
    return Finding("ok", what, said)


def judge_engine(model: str, busy: float | None) -> Iterator[Finding]:
    """busy: the share of its key-value cache that an engine uses; None where it does not say."""
    if busy is not None and busy > BUSY:
        mend = (
            "let hits spare it (a longer ttlMillis, more SEMCACHE_L1_ENTRIES, a policy that learns), or add an engine"
        )
        yield Finding("warn", f"engine of {model}", f"uses {busy:.0%} of its key-value cache", mend)


def _versions(facts: ServerFacts) -> Finding:
    said = f"{facts.version_text} with pgvector {facts.pgvector or 'absent'}"
    if facts.version < 160000:
        return Finding("FAIL", "postgres", said, "upgrade to Postgres 16 or later")
    number = tuple(int(part) for part in (facts.pgvector or "0").split(".") if part.isdigit())
    if number < OLDEST_PGVECTOR:
        mend = "install pgvector 0.8.4 or later, then as a superuser: alter extension vector update;"
        return Finding("FAIL", "postgres", said, mend)
    return Finding("ok", "postgres", said)


def _clock(ahead: float) -> Finding:
    if abs(ahead) > 2:
        said = f"the database's is {ahead:+.1f} s from here"
        return Finding("warn", "clock", said, "run a time service on both: ages and the log's times are off")
    return Finding("ok", "clock", "agrees with the database's")


def _connections(facts: ServerFacts, settings: Settings) -> Finding:
    said = f"{facts.connections} of {facts.max_connections} in use, a replica takes up to {settings.pool_max + 1}"
    if facts.max_connections - facts.connections < settings.pool_max:
        mend = "lower SEMCACHE_POOL_MAX, or raise max_connections (which restarts Postgres)"
        return Finding("warn", "connections", said, mend)
    return Finding("ok", "connections", said)


def _vectors(facts: ServerFacts) -> Finding:
    said = f"{facts.vector_bytes / 2**20:.0f} MB of vectors, shared_buffers {facts.shared_buffers / 2**20:.0f} MB"
    if facts.vector_bytes > facts.shared_buffers:
        mend = "alter system set shared_buffers to a quarter of the memory, so that searches do not read the disk"
        return Finding("warn", "memory", said, mend)
    return Finding("ok", "memory", said)


def _indexes(facts: ServerFacts) -> Finding:
    if facts.invalid_indexes:
        said = f"left by a build that broke off: {', '.join(facts.invalid_indexes)}"
        return Finding(
            "warn", "indexes", said, "a worker drops those of vectors; of others: reindex index concurrently"
        )
    return Finding("ok", "indexes", "all valid")


__all__ = [
    "Finding",
    "Level",
    "judge_disk",
    "judge_engine",
    "judge_policy",
    "judge_schema",
    "judge_server",
    "judge_traffic",
]
