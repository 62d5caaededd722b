"""Streams under way that replicas share.

Revision: 0021, after 0020
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '30s'")
    op.execute(Path(__file__).with_suffix(".sql").read_text().replace(":", r"\:"))


def downgrade() -> None:
    """Streams that are followed break off."""
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '30s'")
    op.execute("drop table flight_chunk")
