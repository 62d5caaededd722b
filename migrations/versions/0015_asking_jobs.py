"""Jobs that ask the model again: warm and revalidate.

Revision: 0015, after 0014
"""

from __future__ import annotations

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

BEFORE = (
    "import: its lines become entries; export: entries become its lines; re-embed: entries get vectors of the embedder "
    "that the worker has."
)
AFTER = BEFORE[:-1] + (
    "; warm: kept requests without an answer of the revision to come are asked; revalidate: those with one are asked "
    "again."
)


def upgrade() -> None:
    allow("'import', 'export', 're-embed', 'warm', 'revalidate'", AFTER)
    op.execute(
        "comment on table job_line is 'What a job has yet to read, and what an export has written. Goes with its job.'"
    )


def downgrade() -> None:
    op.execute("set local role semcache_worker")
    op.execute("delete from job where kind in ('warm', 'revalidate')")
    op.execute("set local role semcache_owner")
    allow("'import', 'export', 're-embed'", BEFORE)


def allow(kinds: str, comment: str) -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '30s'")
    op.execute("alter table job drop constraint job_kind_check")
    op.execute(f"alter table job add constraint job_kind_check check (kind in ({kinds}))")
    op.execute(f"comment on column job.kind is '{comment}'")
