"""Requests that fail because of the cache while its database is killed under load: there must be none.

A service with the embedded Postgres stands before an upstream. Many clients send a mixture of repeats and new prompts,
streamed and not; Postgres is killed with SIGKILL when a third and when two thirds are done, and comes back by itself.
Counted: answers that are not 200 or not whole, and what `x-cache` said.

    python benchmarks/outage.py [--requests 10000] [--clients 32] [--json FILE]
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from lookup import SERVICE, start
from setting import Times, write_json

UPSTREAM = (str(Path(__file__).with_name("upstream.py")),)


class Storm:
    """All clients, what they got, and the kills on the way."""

    def __init__(self, port: int, data_dir: Path, requests: int) -> None:
        self.port, self.data_dir, self.requests = port, data_dir, requests
        self.lock, self.sent = threading.Lock(), 0
        self.said: Counter[str] = Counter()
        self.failed: list[str] = []
        self.times = Times()
        self.kills = [requests * 2 // 3, requests // 3]

    def client(self, seed: int) -> None:
        draw = random.Random(seed)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while self._take():
            stream, is_new = draw.random() < 0.5, draw.random() < 0.4
            number = draw.randrange(self.requests // 2) if is_new else draw.randrange(50)
            message = {"role": "user", "content": f"What is the {number}th rule of the harbour?"}
            body = {"model": "small", "temperature": 0, "stream": stream, "messages": [message]}
            begun = time.perf_counter()
            try:
                connection.request(
                    "POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"}
                )
                response = connection.getresponse()
                data = response.read()
                whole = b"[DONE]" in data if stream else b'"finish_reason"' in data
                fault = None if response.status == 200 and whole else f"{response.status} {data[:200]!r}"
                said = response.headers.get("x-cache", "none")
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                fault, said = repr(error), "none"
            with self.lock:
                self.said[said] += 1
                self.times.seconds.append(time.perf_counter() - begun)
                if fault:
                    self.failed.append(fault)
        connection.close()

    def _take(self) -> bool:
        with self.lock:
            self.sent += 1
            if self.kills and self.sent == self.kills[-1]:
                self.kills.pop()
                self._kill_postgres()
            return self.sent <= self.requests

    def _kill_postgres(self) -> None:
        file = next(self.data_dir.rglob("postmaster.pid"))
        os.kill(int(file.read_text().split()[0]), signal.SIGKILL)
        print(f"killed Postgres after {self.sent} requests; so far {dict(self.said)}", flush=True)


def main(args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="semcache-outage-") as folder:
        upstream, upstream_port = start("", UPSTREAM, "/v1/models")
        os.environ["SEMCACHE_UPSTREAM"] = f"http://127.0.0.1:{upstream_port}/v1"
        command = (*SERVICE, "--data-dir", folder)
        service, port = start("", command, "/readyz", SEMCACHE_EMBEDDER_MEMORY="10000")
        try:
            storm = Storm(port, Path(folder), args.requests)
            clients = [threading.Thread(target=storm.client, args=(seed,)) for seed in range(args.clients)]
            begun = time.perf_counter()
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            storm.times.wall = time.perf_counter() - begun
        finally:
            for process in (service, upstream):
                process.terminate()
                process.wait()
    print(
        f"{args.requests} requests, {args.clients} clients, {storm.times.rate:.0f} a second, "
        f"p50 {storm.times.p50:.0f} ms, p99 {storm.times.percentile(0.99):.0f} ms; x-cache: {dict(storm.said)}"
    )
    print(f"failed: {len(storm.failed)} {storm.failed[:3]}")
    write_json(args.json, {"requests": args.requests, "failed": len(storm.failed), "x_cache": dict(storm.said)})
    if storm.failed:
        raise SystemExit(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--json")
    main(parser.parse_args())
