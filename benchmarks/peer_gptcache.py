"""GPTCache with faiss and SQLite and its own defaults, as a peer of `peers.py`. Argument: how many entries."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Any

import faiss  # noqa: F401 - GPTCache would install what is missing by itself
import numpy as np
import sqlalchemy  # noqa: F401
from gptcache import Cache
from gptcache.adapter.api import get, put
from gptcache.manager import CacheBase, VectorBase, get_data_manager
from gptcache.processor.pre import get_prompt
from gptcache.similarity_evaluation import SearchDistanceEvaluation
from peer import answer, number, serve


def main(size: int) -> None:
    vectors = {"entry": np.load("vectors.npy"), "query": np.load("queries.npy")}

    def embed(prompt: str, **_: Any) -> Any:
        kind, place = prompt.split()
        return vectors[kind][int(place)]

    store = get_data_manager(
        CacheBase("sqlite", sql_url="sqlite:///./answers.db"),
        VectorBase("faiss", dimension=vectors["entry"].shape[1], index_path="faiss.index"),
        max_size=2 * size,
    )
    cache = Cache()
    cache.init(
        pre_embedding_func=get_prompt,
        embedding_func=embed,
        data_manager=store,
        similarity_evaluation=SearchDistanceEvaluation(),
    )
    cache.import_data([f"entry {place}" for place in range(size)], [answer(place) for place in range(size)])

    def look(place: int) -> int | None:
        found = get(f"query {place}", cache_obj=cache)
        return None if found is None else number(found)

    def insert(place: int) -> None:
        put(f"entry {place}", answer(place), cache_obj=cache)

    what = f"GPTCache {version('gptcache')} on faiss {version('faiss-cpu')} and SQLite"
    serve(what, {"look": look, "insert": insert})


if __name__ == "__main__":
    main(int(sys.argv[1]))
