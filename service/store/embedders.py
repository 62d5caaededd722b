"""Embedders as rows: each is a generation whose vectors are only compared with one another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from service.store.database import Database
from service.store.queries import query
from service.store.rows import EmbedderId

Probe = NDArray[np.float32]


async def register(
    db: Database,
    *,
    kind: str,
    name: str,
    revision: str,
    dimensions: int,
    max_tokens: int | None,
    probe: Probe | None,
    same: Callable[[Probe, Probe], bool],
) -> EmbedderId:
    """Find or make the generation of this embedder.

    A remote model shows no revision: a known generation whose probe is the `same` is taken again. `probe` has shape
    (texts, dimensions), unit rows.
    """
    if probe is not None:
        for embedder_id, stored in await _probes(db, kind, name, dimensions):
            if stored.size == probe.size and same(stored.reshape(probe.shape), probe):
                return embedder_id
    async with db.connection() as connection:
        row = await connection.one(
            "select semcache.register_embedder(%s, %s, %s, %s, %s, %s::real[]) as embedder_id",
            (kind, name, revision, dimensions, max_tokens, None if probe is None else probe.ravel().tolist()),
        )
    return EmbedderId(row["embedder_id"])


async def _probes(db: Database, kind: str, name: str, dimensions: int) -> list[tuple[EmbedderId, Probe]]:
    async with db.connection() as connection:
        cursor = await connection.execute(
            query("list_embedders"), {"kind": kind, "name": name, "dimensions": dimensions}
        )
        rows = await cursor.fetchall()
    return [(EmbedderId(row["embedder_id"]), np.asarray(row["probe"] or [], dtype=np.float32)) for row in rows]


__all__ = ["register"]
