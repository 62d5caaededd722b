"""The request graph: nodes, transitions between them, and centralities.

Revision: 0004
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '5min'")  # the index over a long log
    sql = Path(__file__).with_suffix(".sql").read_text()
    op.execute(sql.replace(":", r"\:"))


def downgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '30s'")
    op.execute("drop view if exists top_nodes, top_edges")
    op.execute("drop function if exists fold_requests(bigint, integer, interval)")
    op.execute("drop function if exists trim_graph(integer, integer, integer, interval)")
    op.execute("drop function if exists log_head()")
    op.execute(
        "drop function if exists save_centralities(bigint, timestamptz, bigint[], real[], real[], real[], real[])"
    )
    op.execute("drop function if exists add_decayed(double precision, double precision)")
    op.execute("drop function if exists decay_clock(timestamptz)")
    op.execute("drop table request_graph, centrality, transition, node, log_reader")
    op.execute("drop index request_log_session")
    op.execute("alter table request_log drop column request_key")
