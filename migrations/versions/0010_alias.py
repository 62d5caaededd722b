"""Aliases: requests that a judge found to be answered by another request's entry.

Revision: 0010
"""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

COMMENT = (
    "The entry whose answer a judge found right for this request too; both share the output. Null: an entry of its own."
)


def upgrade() -> None:
    """Entries are at work, so what reads all of them comes after their lock is gone. It can be begun again."""
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '5s'")
    op.execute("alter table entry add column if not exists alias_of uuid")
    op.execute(f"comment on column entry.alias_of is '{COMMENT}'")
    op.execute("alter table entry drop constraint if exists entry_alias_of_fkey")
    op.execute(
        "alter table entry add constraint entry_alias_of_fkey "
        "foreign key (alias_of) references entry on delete set null not valid"
    )
    with op.get_context().autocommit_block():
        op.execute("set lock_timeout = '4s'")
        op.execute("set statement_timeout = '30min'")
        op.execute("alter table entry validate constraint entry_alias_of_fkey")
        op.execute("drop index concurrently if exists entry_alias")
        op.execute("create index concurrently entry_alias on entry (alias_of) where alias_of is not null")


def downgrade() -> None:
    """Aliases become entries as others: they lose only the name of the one whose answer they share."""
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '60s'")
    op.execute("drop function if exists alias_entry(bigint, bigint, uuid, bytea, text, json)")
    op.execute("drop function if exists drop_aliases(bigint, uuid[])")
    op.execute("drop function if exists record_feedback(bigint, bigint, uuid, text, jsonb)")
    op.execute("delete from sql_file where path = 'functions/record_feedback.sql'")
    op.execute("alter table entry drop column alias_of")
