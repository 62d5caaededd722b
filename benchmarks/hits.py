"""How many hits one process serves in a second, by tier, beside GPTCache's server and a bare FastAPI endpoint.

1,000 entries each, filled through the front door: ours by asking a model server (`upstream.py`) through the proxy and
by storing through the data API, GPTCache's by its `/put`. GPTCache's server (`peer_gptcache_server.py`) embeds with the
same exported model and is asked by its `/get`; it has no exact tier, so every hit of it embeds. The ways take turns,
round by round; per second is the median of the rounds, "of bare" its ratio to the empty endpoint in the same run.

    python -m venv /tmp/peers && /tmp/peers/bin/pip install -r benchmarks/peers-requirements.txt
    python benchmarks/hits.py --peers-python /tmp/peers/bin/python [--clients 1,8] [--json FILE]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lookup import FLOOR, LOW, POLITE, SERVICE, start
from proxy import UPSTREAM
from setting import Times, drive, own_database, post, questions, table, write_json

from service.embed.models import find_model
from service.settings import Settings

CACHE = "hits"
STORED = 1_000
FILLERS = 16
HEADERS = ("what", "clients", "p50 ms", "p99 ms", "per second", "of bare")
SEARCH = f"/v1/caches/{CACHE}/entries/search"
CHAT = "/v1/chat/completions"
NAMESPACE = f"x-cache-namespace: {CACHE}"


@dataclass
class Way:
    """One kind of request to one server."""

    what: str
    port: int
    request: Callable[[str], bytes]
    check: Callable[[bytes], bool]
    rounds: dict[int, list[Times]] = field(default_factory=dict)

    def run(self, clients: int, texts: list[str]) -> None:
        times = drive(self.port, clients, [self.request(text) for text in texts], self.check)
        self.rounds.setdefault(clients, []).append(times)

    def row(self, clients: int, bare: float) -> list[Any]:
        rounds = self.rounds[clients]
        every = Times([seconds for times in rounds for seconds in times.seconds])
        return [self.what, clients, every.p50, every.percentile(0.99), self.rate(clients), self.rate(clients) / bare]

    def rate(self, clients: int) -> float:
        return statistics.median(times.rate for times in self.rounds[clients])


def chat(text: str) -> bytes:
    body = {"model": "small", "temperature": 0, "messages": [{"role": "user", "content": text}]}
    return post(CHAT, body, NAMESPACE)


def fresh(text: str) -> bytes:
    """Stored under its own key, though a neighbour would serve it."""
    return chat(text).replace(b"\r\n\r\n", b"\r\nx-cache-refresh: true\r\n\r\n", 1)


def search(text: str) -> bytes:
    return post(SEARCH, {"prompt": text})


def entry(text: str) -> bytes:
    return post(f"/v1/caches/{CACHE}/entries", {"prompt": text, "response": "An answer of some length. " * 8})


def polite(ask: Callable[[str], bytes]) -> Callable[[str], bytes]:
    """The same question in other words, each a semantic hit."""
    return lambda text: ask(POLITE + text)


def anything(body: bytes) -> bool:
    return bool(body)


def ours(ports: dict[str, int], texts: list[str]) -> list[Way]:
    """Fills our cache. What "cold" serves it never remembers in its process."""
    policy = {"similarityThreshold": LOW}
    drive(ports["service"], 1, [post("/v1/caches", {"name": CACHE, "policy": policy})], anything)
    for request in (fresh, entry):
        drive(ports["service"], FILLERS, [request(text) for text in texts], anything)

    def answered(body: bytes) -> bool:
        return b'"chat.completion"' in body

    def found(body: bytes) -> bool:
        return b'"id":' in body

    return [
        Way("bare endpoint", ports["bare"], lambda text: post("/empty", {"prompt": text}), anything),
        Way("proxy, L1 hit", ports["service"], chat, answered),
        Way("proxy, exact hit", ports["cold"], chat, answered),
        Way("proxy, semantic hit", ports["service"], polite(chat), answered),
        Way("search, L1 hit", ports["service"], search, found),
        Way("search, exact hit", ports["cold"], search, found),
        Way("search, semantic hit", ports["service"], polite(search), found),
    ]


def gptcache(port: int, texts: list[str]) -> list[Way]:
    """Fills GPTCache, which takes one `/put` after the other."""
    drive(
        port,
        1,
        [post("/put", {"prompt": text, "answer": "An answer of some length. " * 8}) for text in texts],
        anything,
    )

    def get(text: str) -> bytes:
        return post("/get", {"prompt": text})

    def answered(body: bytes) -> bool:
        return b"of some length" in body

    return [
        Way("GPTCache's server, same text", port, get, answered),
        Way("GPTCache's server, other words", port, polite(get), answered),
    ]


def start_all(stack: ExitStack, url: str, peers_python: str | None) -> dict[str, int]:
    """The ports of all servers. GPTCache is left out without an interpreter that has it."""

    def begin(*args: Any, **more: str) -> int:
        process, port = start(*args, **more)
        stack.callback(_end, process)
        return port

    upstream = begin(url, UPSTREAM, "/v1/models")
    os.environ["SEMCACHE_UPSTREAM"] = f"http://127.0.0.1:{upstream}/v1"
    ports = {
        "service": begin(url, SERVICE, "/readyz"),
        "cold": begin(url, SERVICE, "/readyz", SEMCACHE_L1_ENTRIES="0"),
        "bare": begin(url, FLOOR, "/docs"),
    }
    if peers_python:
        script = str(Path(__file__).with_name("peer_gptcache_server.py"))
        model = str(Settings().models_dir / find_model(None).revision)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="semcache-peer-"))
        ports["gptcache"] = begin("", (script, model), "/", python=peers_python, folder=folder)
    return ports


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait()


def main(args: argparse.Namespace) -> None:
    texts = questions(STORED)
    with ExitStack() as stack:
        ports = start_all(stack, stack.enter_context(own_database()), args.peers_python)
        ways = ours(ports, texts) + (gptcache(ports["gptcache"], texts) if "gptcache" in ports else [])
        for way in ways:
            drive(way.port, 1, [way.request(text) for text in texts], way.check)
        for _ in range(args.rounds):
            for clients in args.clients:
                for way in ways:
                    way.run(clients, texts[: args.calls])
    rows = [way.row(clients, ways[0].rate(clients)) for clients in args.clients for way in ways]
    print(table(HEADERS, rows))
    write_json(args.json, [dict(zip(HEADERS, row, strict=True)) for row in rows])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(part) for part in text.split(",")]  # noqa: E731
    parser.add_argument("--peers-python", help="the interpreter that has GPTCache installed")
    parser.add_argument("--clients", type=numbers, default=[1, 8])
    parser.add_argument("--calls", type=int, default=300, help="hits of each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    main(parser.parse_args())
