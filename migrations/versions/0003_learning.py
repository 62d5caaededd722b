"""What the cache learns from: features of prompts, labelled observations, and what is fitted on them.

Revision: 0003, after 0002
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '30s'")
    sql = Path(__file__).with_suffix(".sql").read_text()
    op.execute(sql.replace(":", r"\:"))


def downgrade() -> None:
    """Remove what was learned. Entries, feedback and observations stay, but for a source that 0002 does not know."""
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
                select format('drop function %s', p.oid\\:\\:regprocedure)
                from pg_catalog.pg_proc p
                where p.pronamespace = 'semcache'\\:\\:regnamespace
                  and p.proname in ('store_entry', 'record_observations', 'save_calibration')
            loop
                execute v_command;
            end loop;
        end
        $$
        """
    )
    op.execute("delete from sql_file")
    op.execute("drop table feature, calibration, entry_fit")
    op.execute("alter table output drop column answer_key")
    op.execute("delete from observation where source = 'shadow'")
    op.execute(
        """
        alter table observation
            drop column request_id,
            drop column embedder_id,
            drop column rank,
            drop column signals,
            drop column signals_version,
            drop column answer_key,
            drop column probability,
            drop column served,
            drop column policy,
            drop column inclusion,
            drop constraint observation_source_check,
            add constraint observation_source_check check (source in ('feedback', 'exploration', 'judge', 'audit'))
        """
    )
