"""The first schema: tenants, caches, request identity, entries with vectors and answers, and coherence.

Revision: 0001
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '30s'")
    sql = Path(__file__).with_suffix(".sql").read_text()
    op.execute(sql.replace(":", r"\:"))


def downgrade() -> None:
    """Remove everything but the roles, the schema and the extension, which other databases and tables may use."""
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '60s'")
    op.execute(
        """
        do $$
        declare
            v_command text;
        begin
            for v_command in
                select format('drop view %s cascade', c.oid\\:\\:regclass)
                from pg_catalog.pg_class c
                where c.relnamespace = 'semcache'\\:\\:regnamespace
                  and c.relkind = 'v'
            loop
                execute v_command;
            end loop;
            for v_command in
                select format('drop table %s cascade', c.oid\\:\\:regclass)
                from pg_catalog.pg_class c
                where c.relnamespace = 'semcache'\\:\\:regnamespace
                  and c.relkind in ('r', 'p')
                  and not c.relispartition
                  and c.relname <> 'alembic_version'
            loop
                execute v_command;
            end loop;
            for v_command in
                select format('drop function %s cascade', p.oid\\:\\:regprocedure)
                from pg_catalog.pg_proc p
                where p.pronamespace = 'semcache'\\:\\:regnamespace
            loop
                execute v_command;
            end loop;
        end
        $$
        """
    )
