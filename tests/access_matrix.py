"""Who reaches a tenant's rows: every table, by role, by the tenant that the session has set, by verb.

`make schema` writes `tests/security/matrix.txt` anew. A letter: the verb reaches the rows. A dot: it is granted, but
row security shows nothing or refuses the row. A dash: it is not granted.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb
from sessions import Session, feedback, key, open_session

from service.store import migrate
from service.store.embedded import EmbeddedPostgres

COMMITTED = Path(__file__).parent / "security" / "matrix.txt"
WORKER = "semcache_worker"
ROLES = ("semcache_app", WORKER, "semcache_owner")
TABLES = """
select c.relname::text, (
    select a.attname::text
    from pg_catalog.pg_attribute a
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
    order by a.attnum desc
    limit 1
)
from pg_catalog.pg_class c
where c.relnamespace = 'semcache'::regnamespace
  and c.relkind in ('r', 'p')
  and not c.relispartition
order by c.relname collate "C"
"""
EVICTED = """
insert into evicted (cache_id, exact_key, tenant_id, score, tick)
values (%(cache_id)s, sha256('x'), %(tenant_id)s, 0, 0)
returning 1
"""


def matrix(url: str) -> str:
    """The lines of the matrix, on a database that holds nothing yet."""
    own, other, worker = open_session(url, "own"), open_session(url, "other"), open_session(url, "own", WORKER)
    fill(own, worker)
    for session in (own, other, worker):
        session.connection.close()
    lines = [f"{'table':16} {'role':16} {'no tenant':10} {'own':10} other"]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set session_replication_role = replica")  # no foreign keys
        connection.execute("delete from semcache.cache where tenant_id = %s", (other.tenant_id,))
        for table, column in connection.execute(TABLES).fetchall():
            for role in ROLES:
                none, mine, others = (
                    "".join(
                        reach(connection, table=table, column=column, role=role, tenant=tenant, verb=verb)
                        for verb in "siud"
                    )
                    for tenant in ("", str(own.tenant_id), str(other.tenant_id))
                )
                lines.append(f"{table:16} {role:16} {none:10} {mine:10} {others}")
    return "\n".join(lines) + "\n"


def fill(own: Session, worker: Session) -> None:
    """A row in every table."""
    entry_id = own.store()["entry_id"]
    own.call(
        "record_requests",
        tenant_id=own.tenant_id,
        requests=Jsonb(
            [
                {
                    "at": f"2030-01-01T00:0{minute}:00Z",
                    "request_key": key(f"request {minute}").hex(),
                    "session": "s",
                    "cache_id": own.cache_id,
                    "entry_id": str(served),
                    "outcome": "hit",
                    "reason": "same_request",
                    "latency_ms": 1,
                    "tokens_saved": 0,
                    "tokens_spent": 0,
                    "served": True,
                }
                for minute, served in enumerate((entry_id, own.store("next")["entry_id"]))
            ]
        ),
    )
    said = feedback(entry_id, "wrong")
    own.call("record_feedback", tenant_id=own.tenant_id, cache_id=own.cache_id, **said)
    worker.call("fold_requests", head=2, limit=10, gap="30 minutes")
    worker.rows("insert into centrality select node_id, tenant_id, cache_id, 0, 0, 0, 0 from node returning 1")
    own.call(
        "keep_request",
        tenant_id=own.tenant_id,
        cache_id=own.cache_id,
        request_key=key("request 0"),
        exact_key=key("first"),
        endpoint="chat",
        model="m",
        model_key=key("m"),
        body="{}",
        tags=[],
        ttl_ms=None,
        tokens=1,
        cost_ms=None,
    )
    worker.rows(
        """
        insert into prefetch (tenant_id, cache_id, node_id, why, measure, chance, score, tokens)
        select tenant_id, cache_id, node_id, 'missing', 'popularity', 1, 1, 1
        from request_body
        returning 1
        """
    )
    worker.call("claim_task", name="purge", holder=uuid4(), seconds=60.0)
    own.call("create_job", tenant_id=own.tenant_id, cache_id=own.cache_id, kind="import", lines="[{}]")
    worker.rows(
        "insert into vector_index select distinct s.scope_id, v.embedder_id, s.tenant_id, 'hnsw', 1 "
        "from scope s join embedding v using (scope_id) returning 1"
    )
    worker.rows("select fold_changes()")
    worker.rows(EVICTED, tenant_id=own.tenant_id, cache_id=own.cache_id)
    own.store("counted later")
    worker.call(
        "save_calibration",
        tenant_id=own.tenant_id,
        cache_id=own.cache_id,
        embedder_id=own.embedder_id,
        model=None,
        frequencies=Jsonb({}),
        pooled=None,
        observations=0,
        learned=0,
        fits=Jsonb(
            [
                {
                    "entry_id": str(entry_id),
                    "slope": 1,
                    "middle": 0.9,
                    "variance": 0,
                    "n": 6,
                    "confirmed": 4,
                    "refuted": 0,
                }
            ]
        ),
    )
    own.call("create_key", tenant_id=own.tenant_id, key_hash=key("k"), hint="k")
    own.rows(
        "insert into flight_chunk (tenant_id, holder, starts_at, piece)"
        " values (%(tenant_id)s, gen_random_uuid(), 0, '') returning 1",
        tenant_id=own.tenant_id,
    )
    own.call("renew_lease", name="replica:x", holder=uuid4(), seconds=60.0, confirmed=None)
    own.cache()


def reach(
    connection: psycopg.Connection[tuple[str, str]], *, table: str, column: str, role: str, tenant: str, verb: str
) -> str:
    """One verb of one role, on all rows of `own` in a table; undone."""
    name = sql.Identifier("semcache", table)
    statement = {
        "s": sql.SQL("select from {}"),
        "i": sql.SQL("insert into {} overriding system value select * from pg_temp.rows"),
        "u": sql.SQL("update {} set {column} = {column}"),
        "d": sql.SQL("delete from {}"),
    }[verb].format(name, column=sql.Identifier(column))
    with connection.transaction(force_rollback=True):
        connection.execute(sql.SQL("create temporary table rows on commit drop as table {}").format(name))
        found = connection.execute("select from pg_temp.rows").rowcount
        assert found, f"fill() makes no row in {table}"
        if verb == "i":
            connection.execute(sql.SQL("delete from {}").format(name))
            connection.execute(sql.SQL("grant select on pg_temp.rows to {}").format(sql.Identifier(role)))
        connection.execute("select set_config('semcache.tenant_id', %s, true)", (tenant,))
        connection.execute(sql.SQL("set local role {}").format(sql.Identifier(role)))
        try:
            touched = connection.execute(statement).rowcount
        except psycopg.errors.InsufficientPrivilege as error:
            return "." if "row-level security" in str(error) else "-"
        return verb if touched else "."


if __name__ == "__main__":
    with TemporaryDirectory() as folder, EmbeddedPostgres(Path(folder), durable=False) as server:
        migrate.upgrade(server.url)
        COMMITTED.write_text(matrix(server.url))
