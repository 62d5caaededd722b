"""Long work with progress: imports, exports, and vectors of another embedder.

Revision: 0009, after 0008
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '30s'")
    sql = Path(__file__).with_suffix(".sql").read_text()
    op.execute(sql.replace(":", r"\:"))


def downgrade() -> None:
    """Remove all jobs, and what exports have written. Entries stay, the imported ones too."""
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '30s'")
    op.execute("drop view if exists jobs")
    op.execute("drop function if exists create_job(bigint, bigint, text, json)")
    op.execute("drop function if exists advance_job(bigint, uuid, uuid, jsonb, integer, jsonb, json, boolean)")
    op.execute("drop function if exists end_job(bigint, uuid, text, jsonb)")
    op.execute("delete from sql_file")
    op.execute("drop table job_line, job")
