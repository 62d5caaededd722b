"""Approximate indexes count how often they were built.

Revision: 0017, after 0016
"""

from __future__ import annotations

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '5s'")
    op.execute("alter table vector_index add column builds int not null default 1")
    op.execute("comment on column vector_index.builds is 'How often it was built.'")


def downgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '5s'")
    op.execute("alter table vector_index drop column builds")
