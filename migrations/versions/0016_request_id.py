"""The log of requests has their ids, by which answers name them.

Revision: 0016, after 0015
"""

from __future__ import annotations

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '30s'")
    op.execute("alter table request_log add column if not exists request_id text")
    op.execute(
        "comment on column request_log.request_id is 'The x-request-id of its answer: the caller''s own, or a new one.'"
    )
    with op.get_context().autocommit_block():
        op.execute("set lock_timeout = '4s'")
        op.execute("set statement_timeout = '30min'")
        op.execute("drop index concurrently if exists request_log_request")
        op.execute(
            "create index concurrently request_log_request on request_log (cache_id, request_id) "
            "where request_id is not null"
        )


def downgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '30s'")
    op.execute("delete from sql_file")
    op.execute("alter table request_log drop column request_id")
