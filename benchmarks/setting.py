"""What the benchmarks share: a database of their own, filled caches, clients, and figures as a table and JSON."""

from __future__ import annotations

import json
import random
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from service.store import migrate
from service.store.embedded import EmbeddedPostgres

Vectors = NDArray[np.float32]

OPENINGS = ("How do I", "Why can't I", "What is the best way to", "Where may one", "When should I", "Who can help me")
ACTIONS = ("mend", "moor", "insure", "repaint", "launch", "rent", "store", "sell", "inspect", "heat", "name", "clean")
THINGS = ("a wooden boat", "an old ferry", "a canoe", "the harbour crane", "two kayaks", "a dinghy", "a lifebuoy")
ENDINGS = ("?", " in winter?", " without a licence?", " on a small budget?", " at night?", " before the race?")


def questions(count: int) -> list[str]:
    """Distinct questions, always the same ones."""
    every = [f"{o} {a} {t}{e}" for o in OPENINGS for a in ACTIONS for t in THINGS for e in ENDINGS]
    random.Random(0).shuffle(every)
    return every[:count]


def spread(vectors: Vectors, count: int) -> Vectors:
    """More unit vectors of the same region: each a mixture of three real ones. Shape (count, dimensions)."""
    draw = np.random.default_rng(0)
    mixed = np.empty((count, vectors.shape[1]), dtype=np.float32)
    for start in range(0, count, 10_000):
        size = min(10_000, count - start)
        parts = vectors[draw.integers(0, len(vectors), (size, 3))]
        weights = draw.dirichlet((1.0, 1.0, 1.0), size)[:, :, None]
        noise = draw.normal(0, 0.02, (size, vectors.shape[1]))
        block = (parts * weights).sum(axis=1) + noise
        mixed[start : start + size] = block / np.linalg.norm(block, axis=1, keepdims=True)
    return mixed


@contextmanager
def own_database() -> Iterator[str]:
    """A fresh embedded Postgres with the current schema, crash-safe as for users."""
    with tempfile.TemporaryDirectory(prefix="semcache-bench-") as folder:
        server = EmbeddedPostgres(Path(folder))
        url = server.start()
        try:
            migrate.upgrade(url)
            yield url
        finally:
            server.release()


def fill(url: str, *, like: str, vectors: Vectors) -> None:
    """Add entries with these vectors to the scope of the entry `like` (its id), in bulk."""
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(
            "select e.tenant_id, e.cache_id, e.scope_id, e.epoch, v.embedder_id from semcache.entry e "
            "join semcache.embedding v using (entry_id) where e.entry_id = %s",
            (like,),
        ).fetchone()
        assert row is not None
        tenant_id, cache_id, scope_id, epoch, embedder_id = row
        connection.execute(
            "create temp table filler (n bigint, entry_id uuid default gen_random_uuid(), vector halfvec)"
        )
        with connection.cursor().copy("copy filler (n, vector) from stdin") as copy:
            for number, vector in enumerate(vectors):
                copy.write_row((number, "[" + ",".join(f"{x:.5f}" for x in vector) + "]"))
        payload = {"version": 1, "endpoint": "chat", "body": chat_body("An answer of some length. " * 8)}
        connection.execute(
            "with made as (insert into semcache.output (tenant_id, payload, bytes) select %s, %s, 400 from filler "
            "returning output_id), numbered as (select output_id, row_number() over () - 1 as n from made) "
            "insert into semcache.entry (entry_id, tenant_id, cache_id, scope_id, output_id, epoch, exact_key, "
            "attributes_key, prompt, provenance) select f.entry_id, %s, %s, %s, output_id, %s, "
            "sha256(f.entry_id::text::bytea), sha256('x'), 'filler ' || f.n, 'import' "
            "from filler f join numbered using (n)",
            (tenant_id, json.dumps(payload), tenant_id, cache_id, scope_id, epoch),
        )
        connection.execute(
            "insert into semcache.embedding (tenant_id, embedder_id, scope_id, entry_id, vector) "
            "select %s, %s, %s, entry_id, vector from filler",
            (tenant_id, embedder_id, scope_id),
        )
        for table in ("entry", "output", "embedding"):
            connection.execute(f"vacuum analyze semcache.{table}")


def chat_body(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {"id": "", "object": "chat.completion", "created": 0, "model": "", "choices": [choice]}


@dataclass
class Times:
    """Seconds of single calls, and how long all of them took together."""

    seconds: list[float] = field(default_factory=list)
    wall: float = 0.0

    def percentile(self, share: float) -> float:
        """In milliseconds."""
        ordered = sorted(self.seconds)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    @property
    def p50(self) -> float:
        return 1000 * statistics.median(self.seconds)

    @property
    def rate(self) -> float:
        return len(self.seconds) / self.wall


class HttpClient:
    """One kept-alive connection, as cheap as a client can be: the server's time is what is measured."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request: bytes) -> bytes:
        self._socket.sendall(request)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._socket.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
        while len(body) < length:
            body += self._socket.recv(65536)
        assert head.startswith(b"HTTP/1.1 2"), head
        return body

    def close(self) -> None:
        self._socket.close()


def post(path: str, body: Any, *headers: str) -> bytes:
    """A whole request, for `HttpClient.send`."""
    data = json.dumps(body).encode()
    head = "\r\n".join(["host: 127.0.0.1", "content-type: application/json", f"content-length: {len(data)}", *headers])
    return f"POST {path} HTTP/1.1\r\n{head}\r\n\r\n".encode() + data


def drive(port: int, clients: int, requests: Sequence[bytes], check: Callable[[bytes], bool]) -> Times:
    """Send all requests over so many connections at once."""
    times = Times()
    lock = threading.Lock()
    queue = iter(requests)

    def work() -> None:
        client = HttpClient("127.0.0.1", port)
        own = []
        while (request := _next(queue, lock)) is not None:
            begun = time.perf_counter()
            body = client.send(request)
            own.append(time.perf_counter() - begun)
            assert check(body), body[:300]
        client.close()
        with lock:
            times.seconds += own

    threads = [threading.Thread(target=work) for _ in range(clients)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times.wall = time.perf_counter() - begun
    return times


def _next(queue: Iterator[bytes], lock: threading.Lock) -> bytes | None:
    with lock:
        return next(queue, None)


def table(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows as a Markdown table; numbers to three figures."""
    lines = ["| " + " | ".join(headers) + " |", "|" + "---|" * len(headers)]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return (
        f"{value:.3g}"
        if isinstance(value, float) and abs(value) < 1000
        else f"{value:,.0f}"
        if isinstance(value, float)
        else str(value)
    )


def write_json(path: str | None, figures: Any) -> None:
    if path:
        Path(path).write_text(json.dumps(figures, indent=2) + "\n")
