"""The schema as it is, and what must hold for every object of it."""

from __future__ import annotations

import psycopg
from schema_text import COMMITTED, describe

RELEASED = COMMITTED.with_name("released.txt")
UNCOMMENTED = """
select c.relname || coalesce('.' || a.attname, '')
from pg_catalog.pg_class c
left join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and c.relkind <> 'v'
where c.relnamespace = 'semcache'::regnamespace
  and c.relkind in ('r', 'p', 'v')
  and not c.relispartition
  and (
      obj_description(c.oid, 'pg_class') is null
      or (a.attnum is not null and col_description(c.oid, a.attnum) is null)
  )
union all
select p.oid::regprocedure::text
from pg_catalog.pg_proc p
where p.pronamespace = 'semcache'::regnamespace
  and obj_description(p.oid, 'pg_proc') is null
union all
select c.relname
from pg_catalog.pg_class c
where c.relispartition
  and c.relkind = 'r'
  and obj_description(c.oid, 'pg_class') is null
"""


def test_the_schema_is_the_committed_one(database_url: str) -> None:
    assert describe(database_url) == COMMITTED.read_text(), "`make schema` writes the file anew"


def test_functions_that_a_released_service_calls_stay() -> None:
    released = [line for line in RELEASED.read_text().splitlines() if not line.startswith("#")]
    described = COMMITTED.read_text()
    assert released
    assert [function for function in released if f"function {function} returns" not in described] == []


def test_every_table_column_view_and_function_is_explained(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("select semcache.register_embedder('local', 'tiny', 'r1', 3, 16, null)")
        assert connection.execute(UNCOMMENTED).fetchall() == []
