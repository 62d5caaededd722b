"""The one door to Postgres: a pool whose connections act as the app role, for one tenant at a time, within a deadline.

A frozen database must not freeze its callers: a watchdog cuts the wire of an operation that is over its time, and after
a few failures in a row a circuit breaker refuses further ones at once, until a probe in the background succeeds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from pgvector.psycopg import register_vector_async
from psycopg import AsyncConnection
from psycopg.abc import Params
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from service.ending import end
from service.errors import BY_SQLSTATE, Code, SemcacheError

Row = dict[str, Any]
DriverError = psycopg.Error  # what a connection outside the door may raise


class Connection(AsyncConnection[Row]):
    """A connection that knows which tenant its session was last set to."""

    tenant_id: int | None = None

    async def enter(self, tenant_id: int) -> None:
        """Show this session the rows of a tenant."""
        self.tenant_id = None  # a cancelled call leaves open which tenant the session has
        await self.execute("select set_config('semcache.tenant_id', %s, false)", (str(tenant_id),), prepare=True)
        self.tenant_id = tenant_id

    async def one(self, statement: LiteralString, values: Params | None = None, *, prepare: bool | None = None) -> Row:
        """The row of a statement that always gives one."""
        row = await (await self.execute(statement, values, prepare=prepare)).fetchone()
        if row is None:
            raise SemcacheError(Code.INTERNAL, "a statement that always gives a row gave none")
        return row


logger = logging.getLogger("semcache.database")

# Every statement is written for one plan that is right for all parameters, so none is planned twice: a small scope's
# neighbours took a third less. No lookup wants a sequential scan, whatever the statistics of the moment say.
CONFIGURE = """
select
    set_config('search_path', 'semcache, ' || quote_ident(n.nspname), false),
    set_config('plan_cache_mode', 'force_generic_plan', false),
    set_config('enable_seqscan', 'off', false),
    set_config('ivfflat.probes', %(probes)s, false),
    set_config('ivfflat.iterative_scan', 'relaxed_order', false),
    set_config('ivfflat.max_probes', %(max_probes)s, false),
    set_config('hnsw.ef_search', %(ef_search)s, false),
    set_config('hnsw.iterative_scan', 'relaxed_order', false)
from pg_catalog.pg_extension e
join pg_catalog.pg_namespace n on n.oid = e.extnamespace
where e.extname = 'vector'
"""
FAR = 1e9


@dataclass(frozen=True, slots=True)
class Limits:
    """How the door is sized. Times in seconds."""

    pool_min: int = 2
    pool_max: int = 10
    timeout: float = 2.0
    bulk_timeout: float = 120.0
    breaker_failures: int = 3
    breaker_retry: float = 0.5
    probes: int = 10
    ef_search: int = 40


class Database:
    """Connections of one service process to one database.

    `on_down` is called, in a thread, before each probe of an open breaker: it may start a server again.
    """

    def __init__(
        self,
        url: str,
        limits: Limits,
        *,
        role: str = "semcache_app",
        on_down: Callable[[], None] | None = None,
    ) -> None:
        self._url, self._limits, self._role, self._on_down = url, limits, role, on_down
        self._pool: AsyncConnectionPool[Connection] | None = None
        self._failures = 0
        self._recovery: asyncio.Task[None] | None = None
        self._waited_before = 0.0
        self.openings = 0

    @property
    def url(self) -> str:
        """Where the database is. Holds the password: never logged."""
        return self._url

    @property
    def up(self) -> bool:
        """Whether the breaker is closed: operations are tried."""
        return self._pool is not None and self._recovery is None

    @property
    def pool_stats(self) -> dict[str, int]:
        """What the pool says of itself, by psycopg_pool's names; empty where it is not open."""
        return self._pool.get_stats() if self._pool is not None else {}

    @property
    def waited(self) -> float:
        """Seconds that operations waited for a connection, in the pools before this one too."""
        return self._waited_before + self.pool_stats.get("requests_wait_ms", 0) / 1000

    async def open(self) -> None:
        """Open the pool; a database that is down now is waited for in the background."""
        self._pool = self._new_pool()
        await self._pool.open(wait=False)

    async def close(self) -> None:
        if self._recovery is not None:
            await end([self._recovery])
        if self._pool is not None:
            await self._pool.close(timeout=1)

    def tenant(self, tenant_id: int, *, bulk: bool = False) -> Visit:
        """A connection that sees the rows of this tenant alone. Each statement is a transaction of its own.

        Raises: SemcacheError(DATABASE_UNAVAILABLE) when the database does not answer in time, or with the code of
        an SQLSTATE of ours.
        """
        return Visit(self, tenant_id, self._limits.bulk_timeout if bulk else self._limits.timeout)

    def connection(self, *, bulk: bool = False) -> Visit:
        """A connection for what belongs to no tenant. Raises as `tenant` does."""
        return Visit(self, None, self._limits.bulk_timeout if bulk else self._limits.timeout)

    async def borrow(self) -> tuple[AsyncConnectionPool[Connection], Connection]:
        """A free connection and the pool that it goes back to."""
        if self._pool is None or self._recovery is not None:
            raise _unavailable("the database has not answered, and is tried again in the background")
        pool = self._pool
        try:
            return pool, await pool.getconn(timeout=self._limits.timeout)
        except (PoolTimeout, psycopg.Error) as error:
            raise self._note_failure("no connection to the database was free in time") from error

    def judge(self, error: BaseException | None, connection: Connection) -> SemcacheError | None:
        """What a use of a connection ended with, as a failure of ours; None where it is none of the driver's."""
        if isinstance(error, psycopg.Error):
            return self._translate(error, connection)
        if error is None:
            self._failures = 0
        return None

    def _translate(self, error: psycopg.Error, connection: Connection) -> SemcacheError:
        """Our own SQLSTATEs keep their code, lost connections open the breaker, wrong statements are our fault."""
        code = BY_SQLSTATE.get(error.sqlstate or "")
        if code is not None:
            return SemcacheError(code, str(error.diag.message_primary))
        if connection.closed or connection.broken:
            return self._note_failure("the database did not answer")
        if isinstance(error, psycopg.OperationalError):
            return _unavailable(f"the database could not do it: {reason(error)}")
        logger.error("a statement failed: %s (SQLSTATE %s)", error.diag.message_primary, error.sqlstate)
        return SemcacheError(Code.INTERNAL, f"a statement failed with SQLSTATE {error.sqlstate}")

    def _note_failure(self, detail: str) -> SemcacheError:
        self._failures += 1
        if self._failures >= self._limits.breaker_failures and self._recovery is None:
            logger.warning("%s, again and again; it is tried every %s s", detail, self._limits.breaker_retry)
            self._recovery = asyncio.create_task(self._recover(), name="semcache database recovery")
            self.openings += 1
        return _unavailable(detail)

    async def _recover(self) -> None:
        """Probe until the database answers, then start with a fresh pool: the old one's back-off may be long."""
        while not await self._answers():  # noqa: ASYNC110 - nothing tells of a server that comes back
            await asyncio.sleep(self._limits.breaker_retry)
        self._waited_before = self.waited
        old, self._pool = self._pool, self._new_pool()
        await self._pool.open(wait=False)
        self._failures, self._recovery = 0, None
        logger.warning("the database answers again")
        if old is not None:
            await old.close(timeout=0)

    async def _answers(self) -> bool:
        try:
            if self._on_down is not None:
                await asyncio.to_thread(self._on_down)
            await self.verify()
        except Exception as error:
            logger.debug("the database does not answer yet: %s", error)
            return False
        return True

    async def verify(self) -> None:
        """Connect once as the pool does.

        Raises: SemcacheError(DATABASE_UNAVAILABLE) with Postgres' own reason, or with the grant that is missing.
        """
        watchdog: asyncio.TimerHandle | None = None
        try:
            connection = await Connection.connect(self._url, connect_timeout=2, autocommit=True)
            watchdog = asyncio.get_running_loop().call_later(self._limits.timeout, _cut, connection)
            async with connection:
                await self._configure_or_ask_for_role(connection)
        except psycopg.Error as error:
            raise _unavailable(f"the database cannot be used: {reason(error)}") from error
        finally:
            if watchdog is not None:
                watchdog.cancel()

    async def _configure_or_ask_for_role(self, connection: Connection) -> None:
        try:
            await self._configure(connection)
        except psycopg.errors.InsufficientPrivilege as error:
            mend = f"as a superuser: grant {self._role} to {connection.info.user};"
            raise _unavailable(f"the database cannot be used: {reason(error)}; {mend}") from error

    def _new_pool(self) -> AsyncConnectionPool[Connection]:
        return AsyncConnectionPool(
            self._url,
            connection_class=Connection,
            kwargs={
                "autocommit": True,
                "connect_timeout": 2,
                "row_factory": dict_row,
                "application_name": "semcache",
            },
            min_size=self._limits.pool_min,
            max_size=self._limits.pool_max,
            configure=self._configure,
            reconnect_timeout=FAR,
            open=False,
            name="semcache",
        )

    async def _configure(self, connection: Connection) -> None:
        await register_vector_async(connection)
        limits = self._limits
        await connection.execute(
            CONFIGURE,
            {
                "probes": str(limits.probes),
                "max_probes": str(limits.probes * 8),
                "ef_search": str(limits.ef_search),
            },
        )
        await connection.execute(
            "select set_config('role', %s, false), set_config('statement_timeout', %s, false)",
            (self._role, str(int(limits.bulk_timeout * 1000))),
        )


class Visit:
    """One use of a connection, as an async context manager: borrowed, set to its tenant, watched, given back."""

    __slots__ = ("_connection", "_db", "_pool", "_tenant_id", "_timeout", "_watchdog")

    def __init__(self, db: Database, tenant_id: int | None, timeout: float) -> None:
        self._db, self._tenant_id, self._timeout = db, tenant_id, timeout

    async def __aenter__(self) -> Connection:
        self._pool, self._connection = await self._db.borrow()
        self._watchdog = asyncio.get_running_loop().call_later(self._timeout, _cut, self._connection)
        if self._tenant_id is not None and self._connection.tenant_id != self._tenant_id:
            try:
                await self._connection.enter(self._tenant_id)
            except BaseException as error:
                await self.__aexit__(type(error), error, None)
                raise
        return self._connection

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._watchdog.cancel()
        failure = self._db.judge(error, self._connection)
        await self._pool.putconn(self._connection)
        if failure is not None:
            raise failure from error


def _cut(connection: AsyncConnection[Any]) -> None:
    """End whatever waits on this connection. Asking the server to cancel could itself hang."""
    with (
        contextlib.suppress(OSError, psycopg.Error),
        socket.socket(fileno=os.dup(connection.fileno())) as wire,
    ):
        wire.shutdown(socket.SHUT_RDWR)


def reason(error: psycopg.Error) -> str:
    """Why, in one line without a password: a URL that cannot be read is not repeated."""
    if error.diag.message_primary:
        return error.diag.message_primary
    if isinstance(error, psycopg.OperationalError):
        return " ".join(str(error).split())
    return "its URL cannot be read; it should look like postgresql://user:password@host:5432/name"


def split_password(url: str) -> tuple[str, str | None]:
    """Where a database is, as libpq reads it, and the password apart, since arguments are for all to see.

    Raises: SemcacheError(DATABASE_UNAVAILABLE) where the URL cannot be read.
    """
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error as error:
        raise _unavailable(f"the database cannot be reached: {reason(error)}") from None
    password = parts.pop("password", None)
    return make_conninfo("", **parts), None if password is None else str(password)


def _unavailable(detail: str) -> SemcacheError:
    return SemcacheError(Code.DATABASE_UNAVAILABLE, detail)


__all__ = ["Connection", "Database", "DriverError", "Limits", "Row", "reason", "split_password"]
