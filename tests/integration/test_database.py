"""The door: whatever happens to Postgres, its callers get an answer in time, and a working door again after it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import psycopg
import pytest
from fakes.relay import Relay
from sqlalchemy import make_url

from service.errors import Code, SemcacheError
from service.store.database import Database, Limits

TIMEOUT = 0.4
LIMITS = Limits(pool_min=1, pool_max=2, timeout=TIMEOUT, bulk_timeout=30.0, breaker_failures=2, breaker_retry=0.01)
OTHERS = """
select count(*)
from pg_catalog.pg_stat_activity
where datname = current_database()
  and pid <> pg_backend_pid()
"""
SOON = 15.0  # for what has no time of its own; the machine may be busy


@pytest.fixture
async def relay(database_url: str) -> AsyncIterator[Relay]:
    async with Relay(database_url) as relay:
        yield relay


@pytest.fixture
async def db(relay: Relay) -> AsyncIterator[Database]:
    """A door through the relay, open and in use."""
    door = Database(relay.url, LIMITS)
    await door.open()
    await settle(door)
    yield door
    relay.up()  # so that nothing that waits for it outlives the test
    await door.close()


async def settle(door: Database) -> None:
    """Wait until a statement comes through: a new pool connects in the background."""
    async with asyncio.timeout(SOON):
        while not await comes_through(door):  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)


async def comes_through(door: Database) -> bool:
    try:
        return await one(door) == 1
    except SemcacheError:
        return False


async def one(door: Database, *, bulk: bool = False, seconds: float = 0.0) -> int:
    async with door.connection(bulk=bulk) as connection:
        row = await connection.one("select 1 as one, pg_sleep(%s)", (seconds,))
    return int(row["one"])


async def refusal(door: Database) -> tuple[SemcacheError, float]:
    """The failure of a statement, and the seconds that it took."""
    begun = time.monotonic()
    with pytest.raises(SemcacheError) as refused:
        await one(door)
    return refused.value, time.monotonic() - begun


async def break_down(door: Database) -> None:
    """Statements fail until the door gives the database up."""
    for _ in range(LIMITS.breaker_failures):
        error, _ = await refusal(door)
        assert error.code is Code.DATABASE_UNAVAILABLE
    assert not door.up


async def test_a_frozen_database_does_not_freeze_its_caller(db: Database, relay: Relay) -> None:
    relay.hang()
    error, seconds = await refusal(db)
    assert error.code is Code.DATABASE_UNAVAILABLE
    assert TIMEOUT * 0.9 <= seconds < TIMEOUT * 5
    assert db.up, "one failure is not enough to give the database up"


async def test_bulk_work_has_a_longer_time(db: Database) -> None:
    assert await one(db, bulk=True, seconds=TIMEOUT * 2) == 1
    with pytest.raises(SemcacheError) as cut:
        await one(db, seconds=TIMEOUT * 20)
    assert cut.value.code is Code.DATABASE_UNAVAILABLE


async def test_after_a_few_failures_it_answers_at_once(db: Database, relay: Relay) -> None:
    relay.hang()
    await break_down(db)
    error, seconds = await refusal(db)
    assert error.code is Code.DATABASE_UNAVAILABLE
    assert "tried again in the background" in error.detail
    assert seconds < TIMEOUT / 4


async def test_a_success_between_failures_starts_the_count_anew(db: Database, relay: Relay) -> None:
    for _ in range(LIMITS.breaker_failures):
        relay.hang()
        await refusal(db)
        relay.up()
        await settle(db)
        assert db.up


@pytest.mark.parametrize("failure", ["hang", "down"])
async def test_a_database_that_comes_back_is_noticed(db: Database, relay: Relay, failure: str) -> None:
    getattr(relay, failure)()
    await break_down(db)
    relay.up()
    await settle(db)
    assert db.up


async def test_a_database_that_is_away_at_the_start_is_waited_for(relay: Relay) -> None:
    relay.down()
    door = Database(relay.url, LIMITS)
    await door.open()
    await break_down(door)
    relay.up()
    await settle(door)
    await door.close()


async def test_who_can_start_the_server_again_is_called_until_it_answers(relay: Relay) -> None:
    calls: list[int] = []

    def revive() -> None:
        calls.append(1)
        if len(calls) < 3:
            raise RuntimeError("whatever goes wrong here must not end the recovery")
        relay_loop.call_soon_threadsafe(relay.up)

    relay_loop = asyncio.get_running_loop()
    door = Database(relay.url, LIMITS, on_down=revive)
    await door.open()
    await settle(door)
    assert calls == []
    relay.down()
    await break_down(door)
    await settle(door)
    assert len(calls) >= 3
    await door.close()


async def test_when_all_connections_are_in_use_the_rest_is_told_in_time(db: Database) -> None:
    free = asyncio.Event()

    async def hold() -> None:
        async with db.connection(bulk=True) as connection:
            await connection.one("select 1")
            holding.release()
            await free.wait()

    holding = asyncio.Semaphore(0)
    holders = [asyncio.create_task(hold()) for _ in range(LIMITS.pool_max)]
    for _ in holders:
        await holding.acquire()
    error, seconds = await refusal(db)
    assert error.code is Code.DATABASE_UNAVAILABLE
    assert "no connection to the database was free" in error.detail
    assert seconds < TIMEOUT * 5
    free.set()
    await asyncio.gather(*holders)
    assert await one(db) == 1


async def test_a_cancelled_caller_gives_its_connection_back(database_url: str) -> None:
    door = Database(database_url, Limits(pool_min=1, pool_max=1, timeout=10.0))
    await door.open()
    begun = asyncio.Event()

    async def long() -> None:
        async with door.connection() as connection:
            begun.set()
            await connection.one("select pg_sleep(60)")

    caller = asyncio.create_task(long())
    await begun.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert await one(door) == 1
    await door.close()


async def test_the_time_waited_for_connections_outlives_an_outage(db: Database, relay: Relay) -> None:
    async with asyncio.TaskGroup() as crowd:
        for _ in range(2 * LIMITS.pool_max):
            crowd.create_task(one(db, seconds=0.02))
    waited = db.waited
    assert waited > 0
    relay.down()
    await break_down(db)
    relay.up()
    await settle(db)
    assert db.waited >= waited


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("select semcache.flush_cache(0, 0)", Code.CACHE_NOT_FOUND),
        ("select semcache.delete_entry(0, 0, gen_random_uuid())", Code.ENTRY_NOT_FOUND),
        ("select semcache.delete_entries(0, 0, null, null, null, null, true)", Code.EMPTY_FILTER),
    ],
)
async def test_our_own_sqlstates_keep_their_code(db: Database, statement: str, code: Code) -> None:
    for _ in range(LIMITS.breaker_failures):
        with pytest.raises(SemcacheError) as refused:
            async with db.connection() as connection:
                await connection.execute(statement)
        assert refused.value.code is code
    assert db.up


async def too_long(door: Database) -> None:
    async with door.connection() as connection, connection.transaction():
        await connection.execute("set local statement_timeout = 1")
        await connection.execute("select pg_sleep(10)")


async def test_a_statement_that_the_server_gives_up_says_nothing_about_the_server(db: Database) -> None:
    for _ in range(LIMITS.breaker_failures * 2):
        with pytest.raises(SemcacheError, match="statement timeout") as refused:
            await too_long(db)
        assert refused.value.code is Code.DATABASE_UNAVAILABLE
    assert db.up


async def test_a_wrong_statement_is_our_fault_and_shows_no_text(db: Database) -> None:
    with pytest.raises(SemcacheError) as refused:
        async with db.connection() as connection:
            await connection.execute("select %s::text::int", ("what somebody asked",))
    assert refused.value.code is Code.INTERNAL
    assert "22P02" in refused.value.detail
    assert "asked" not in refused.value.detail
    assert await one(db) == 1


async def test_a_session_is_the_app_roles_and_finds_our_types(db: Database) -> None:
    async with db.connection() as connection:
        row = await connection.one(
            "select current_user as role, current_setting('search_path') as path, "
            "'[1]'::halfvec as vector, current_setting('ivfflat.iterative_scan') as scan"
        )
    assert (row["role"], row["path"].split(", ")[0], row["scan"]) == ("semcache_app", "semcache", "relaxed_order")
    assert row["vector"].to_list() == [1.0]


def malformed(url: str) -> str:
    return url.replace("postgresql://", "postgres//", 1)


def shut(url: str) -> str:
    return make_url(url).set(host="127.0.0.1", port=1, query={}).render_as_string(hide_password=False)


@pytest.mark.parametrize("spoil", [malformed, shut])
async def test_a_password_is_in_no_message_and_no_log(
    database_url: str, caplog: pytest.LogCaptureFixture, spoil: Callable[[str], str]
) -> None:
    url = spoil(make_url(database_url).set(password="opensesame").render_as_string(hide_password=False))
    door = Database(url, LIMITS)
    with caplog.at_level("DEBUG"), pytest.raises(SemcacheError) as refused:
        await door.verify()
    assert "opensesame" not in f"{refused.value} {refused.value!r} {caplog.text}"
    assert "opensesame" not in f"{door!r}"


async def test_verify_says_what_postgres_says(database_url: str) -> None:
    url = make_url(database_url).set(database="nowhere").render_as_string(hide_password=False)
    with pytest.raises(SemcacheError, match='database "nowhere" does not exist'):
        await Database(url, LIMITS).verify()


async def test_a_closed_door_leaves_no_connection(database_url: str) -> None:
    door = Database(database_url, LIMITS)
    await door.open()
    await settle(door)
    await door.close()
    async with asyncio.timeout(SOON), await psycopg.AsyncConnection.connect(database_url, autocommit=True) as outside:
        while await (await outside.execute(OTHERS)).fetchone() != (0,):  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)
