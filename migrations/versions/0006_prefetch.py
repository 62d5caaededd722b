"""Prefetch: requests that can be asked again, and what was asked ahead.

Revision: 0006
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0006"
down_revision = "0005"
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
    op.execute("drop view if exists prefetch_value, prefetch_log")
    op.execute(
        "drop function if exists"
        " keep_request(bigint, bigint, bytea, bytea, text, text, bytea, json, text[], bigint, integer, real)"
    )
    op.execute("drop function if exists forget_requests(bigint, uuid[])")
    op.execute(
        "drop function if exists claim_prefetch("
        "text[], bytea[], text, interval, interval, double precision, bigint, bigint)"
    )
    op.execute("drop function if exists requests_a_second(bigint)")
    op.execute("drop function if exists decayed_count(double precision)")
    op.execute("drop table prefetch, request_body")
    op.execute(
        "revoke insert (tenant_id, cache_id, request_key, exact_key), update (exact_key) on node from semcache_app"
    )
