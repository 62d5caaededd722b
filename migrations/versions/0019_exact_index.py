"""Requests are looked up by their key from the first entry on.

To a planner without statistics every index that begins with cache_id costs the same, and it takes the newest: plans
that were made on an empty table read a whole cache for each request, until the first analyze. Tables that hold
something need no mend.

Revision: 0019, after 0018
"""

from __future__ import annotations

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '30s'")
    op.execute(
        "do $$ begin if pg_relation_size('entry') = 0 then "
        "alter table entry drop constraint entry_cache_id_exact_key_attributes_key_variant_key, "
        "add unique (cache_id, exact_key, attributes_key, variant); "
        "end if; end $$"
    )


def downgrade() -> None:
    """The schema is the same."""
