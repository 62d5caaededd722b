"""Beside an entry's fit: how often its answer was found right and wrong.

Revision: 0007, after 0006
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '30s'")
    sql = Path(__file__).with_suffix(".sql").read_text()
    op.execute(sql.replace(":", r"\:"))


def downgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '30s'")
    op.execute("delete from entry_fit where n is null")
    op.execute(
        """
        alter table entry_fit
            drop column confirmed,
            drop column refuted,
            alter column slope set not null,
            alter column middle set not null,
            alter column variance set not null,
            alter column n set not null
        """
    )
