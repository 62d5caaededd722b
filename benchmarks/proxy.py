"""What the proxy adds to a miss, and how many hits it serves in a second, beside the upstream asked directly.

The upstream (`upstream.py`) takes 200 ms for every answer. Each request of a miss is new. "exact" rows are asked with
`x-cache-mode: exact`, so that nothing is embedded; in "semantic" rows the embedding is part of the miss. Times are of
one run, direct and through the proxy in turns; the overhead is the difference of the percentiles.

    python benchmarks/proxy.py [--clients 1,8,32] [--calls 200] [--json FILE]
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lookup import SERVICE, start
from setting import Times, own_database, table, write_json

UPSTREAM = (str(Path(__file__).with_name("upstream.py")),)
HEADERS = ("what", "clients", "first byte p50", "p99", "whole p50", "p99", "requests/s")


@dataclass
class Asked:
    """Seconds to the first byte of the body and to its end."""

    first: Times = field(default_factory=Times)
    whole: Times = field(default_factory=Times)

    def row(self, what: str, clients: int) -> list[Any]:
        first, whole = self.first, self.whole
        return [what, clients, first.p50, first.percentile(0.99), whole.p50, whole.percentile(0.99), whole.rate]


def prompts(tag: str, count: int) -> list[str]:
    return [
        f"{tag}: what is the {number}th thing to know about boat number {number * 7919 % 10007}?"
        for number in range(count)
    ]


def ask(port: int, clients: int, texts: list[str], *, stream: bool, mode: str | None) -> Asked:
    """Ask all texts over so many kept-alive connections."""
    asked, lock, queue = Asked(), threading.Lock(), iter(texts)
    headers = {"content-type": "application/json"} | ({"x-cache-mode": mode} if mode else {})

    def work() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for text in _drain(queue, lock):
            body = {
                "model": "small",
                "temperature": 0,
                "stream": stream,
                "messages": [{"role": "user", "content": text}],
            }
            begun = time.perf_counter()
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            response = connection.getresponse()
            data = response.read(1)
            first = time.perf_counter() - begun
            data += response.read()
            whole = time.perf_counter() - begun
            assert response.status == 200, data[:300]
            with lock:
                asked.first.seconds.append(first)
                asked.whole.seconds.append(whole)
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(clients)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asked.first.wall = asked.whole.wall = time.perf_counter() - begun
    return asked


def _drain(queue: Iterator[str], lock: threading.Lock) -> Iterator[str]:
    while True:
        with lock:
            text = next(queue, None)
        if text is None:
            return
        yield text


def main(args: argparse.Namespace) -> None:
    rows: list[list[Any]] = []

    def note(what: str, clients: int, asked: Asked) -> Asked:
        rows.append(asked.row(what, clients))
        print(table(HEADERS, [rows[-1]]).splitlines()[-1], flush=True)
        return asked

    with own_database() as url:
        upstream, upstream_port = start(url, UPSTREAM, "/v1/models")
        os.environ["SEMCACHE_UPSTREAM"] = f"http://127.0.0.1:{upstream_port}/v1"
        service, port = start(url, SERVICE, "/readyz")
        try:
            ask(port, 4, prompts("warm", 40), stream=False, mode=None)
            for stream in (False, True):
                form = "stream" if stream else "body"
                for clients in args.clients:
                    tag = f"{form} {clients}"
                    calls = max(args.calls, 4 * clients)
                    direct = note(
                        f"direct, {form}",
                        clients,
                        ask(upstream_port, clients, prompts(f"d {tag}", calls), stream=stream, mode=None),
                    )
                    for mode in ("exact", "semantic"):
                        texts = prompts(f"{mode} {tag}", calls)
                        missed = note(
                            f"{mode} miss, {form}", clients, ask(port, clients, texts, stream=stream, mode=mode)
                        )
                        note_overhead(missed, direct)
                        hits = ask(port, clients, texts, stream=stream, mode=mode)
                        note(f"{mode} repeated, {form}", clients, hits)
        finally:
            for process in (service, upstream):
                process.terminate()
                process.wait()
    print()
    print(table(HEADERS, rows))
    write_json(
        args.json,
        [
            dict(zip(("what", "clients", "first_p50", "first_p99", "p50", "p99", "rate"), row, strict=True))
            for row in rows
        ],
    )


def note_overhead(missed: Asked, direct: Asked) -> None:
    pairs = {"first byte": (missed.first, direct.first), "whole": (missed.whole, direct.whole)}
    shown = [
        f"{name} p50 {a.p50 - b.p50:+.2f} ms, p99 {a.percentile(0.99) - b.percentile(0.99):+.2f} ms"
        for name, (a, b) in pairs.items()
    ]
    print(f"  overhead: {'; '.join(shown)}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=lambda text: [int(part) for part in text.split(",")], default=[1, 8, 32])
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--json")
    main(parser.parse_args())
