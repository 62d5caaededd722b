"""Built indexes are counted with their embedder, which stays when an index goes.

Revision: 0020, after 0019
"""

from __future__ import annotations

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '5s'")
    op.execute("alter table embedder add column index_builds bigint not null default 0")
    op.execute(
        "comment on column embedder.index_builds is "
        "'How many approximate indexes of its vectors were built, also those that are gone.'"
    )
    op.execute("grant update (index_builds) on embedder to semcache_worker")
    op.execute("set local role semcache_worker")
    op.execute(
        "update embedder m set index_builds = b.builds "
        "from (select embedder_id, sum(builds) as builds from vector_index group by embedder_id) b "
        "where b.embedder_id = m.embedder_id"
    )
    op.execute("set local role semcache_owner")
    op.execute("alter table vector_index drop column builds")


def downgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '5s'")
    op.execute("alter table vector_index add column builds int not null default 1")
    op.execute("comment on column vector_index.builds is 'How often it was built.'")
    op.execute("alter table embedder drop column index_builds")
