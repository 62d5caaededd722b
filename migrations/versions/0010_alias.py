"""Aliases: requests that a judge found to be answered by another request's entry.

Revision: 0010
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

FEEDBACK = "record_feedback(bigint, bigint, uuid, text, real, text, json)"


def upgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '60s'")  # a foreign key and an index over all entries
    sql = Path(__file__).with_suffix(".sql").read_text()
    op.execute(sql.replace(":", r"\:"))
    op.execute(f"drop function if exists {FEEDBACK}")


def downgrade() -> None:
    """Aliases become entries as others: they lose only the name of the one whose answer they share."""
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '60s'")
    op.execute("drop function if exists alias_entry(bigint, bigint, uuid, bytea, text, json)")
    op.execute("drop function if exists drop_aliases(bigint, uuid[])")
    op.execute("drop function if exists record_feedback(bigint, bigint, uuid, text, jsonb)")
    op.execute("delete from sql_file where path = 'functions/record_feedback.sql'")
    op.execute("alter table entry drop column alias_of")
