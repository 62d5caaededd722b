"""Requests in the log as the service would have noted them, and the graph that they are folded into."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from typing import Any

from psycopg.types.json import Jsonb
from sessions import Session, key

GAP = timedelta(minutes=30)
EDGES = """
select coalesce(f.prompt, '?') as before, coalesce(t.prompt, '?') as after, x.seen
from transition x
join node a on a.node_id = x.from_node
join node b on b.node_id = x.to_node
left join entry f on f.exact_key = a.exact_key
left join entry t on t.exact_key = b.exact_key
order by 1, 2
"""
NODES = "select e.prompt, n.seen from node n left join entry e on e.exact_key = n.exact_key order by 1"


class Log:
    """Requests as the service would note them: one each minute, unless it is said when."""

    def __init__(self, app: Session, worker: Session) -> None:
        self.app, self.worker = app, worker
        self._minutes = count()

    def ask(self, prompt: str, session: str | None = "s", minute: float | None = None, **more: Any) -> None:
        """Ask for a prompt, which is stored where it is new. serves: the prompt whose entry answers instead."""
        serves = more.pop("serves", prompt)
        found = self.app.rows("select entry_id from entry where prompt = %(prompt)s", prompt=serves)
        entry_id = found[0]["entry_id"] if found else self.app.store(serves)["entry_id"]
        at = minute if minute is not None else next(self._minutes)
        row = {
            "at": self.app.one("select (timestamptz '2030-01-01' + %(at)s * interval '1 minute')::text", at=at),
            "cache_id": self.app.cache_id,
            "request_key": key(f"request {prompt}").hex(),
            "entry_id": str(entry_id),
            "session": session,
            "outcome": "hit" if serves == prompt else "semantic_hit",
            "reason": "same_request",
            "latency_ms": 1,
            "tokens_saved": 0,
            "tokens_spent": 0,
        }
        self.app.call("record_requests", tenant_id=self.app.tenant_id, requests=Jsonb([row | more]))

    def fold(self, limit: int = 1000) -> int:
        head = self.worker.call("log_head")
        return int(self.worker.call("fold_requests", head=head, limit=limit, gap=GAP))

    def edges(self) -> list[tuple[str, str, int]]:
        return [(row["before"], row["after"], row["seen"]) for row in self.worker.rows(EDGES)]

    def nodes(self) -> list[tuple[str, int]]:
        return [(row["prompt"], row["seen"]) for row in self.worker.rows(NODES)]


__all__ = ["GAP", "Log"]
