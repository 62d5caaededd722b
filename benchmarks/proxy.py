"""What the proxy adds to a miss, and how many hits it serves in a second, beside the upstream asked directly.

The upstream (`upstream.py`) takes 200 ms for every answer. Each request of a miss is new; "again" asks the same ones.
Clients of a miss begin evenly over those 200 ms, as they would by chance, and not in step. CPU is the service's share
of a core.
"exact" rows are of a cache whose policy embeds nothing; in "semantic" rows the embedding is part of the miss. The ways
take turns, round by round, and what one takes on top of "direct" is the median of the rounds' differences.

    python benchmarks/proxy.py [--clients 1,8,32] [--calls 200] [--json FILE]

On a machine with other work put `chrt -r 1` before it, so that the scheduler's share of these times stays small.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from lookup import SERVICE, cpu_seconds, start
from setting import Times, own_database, table, write_json

UPSTREAM = (str(Path(__file__).with_name("upstream.py")),)
NAMES = ("what", "clients", "first_p50", "p50", "p99", "rate", "cpu_percent", "first_p50_cost", "p50_cost", "p99_cost")
HEADERS = ("what", "clients", "first byte p50", "p50", "p99", "requests/s", "CPU %", "on top: first byte", "p50", "p99")
ROUNDS = 5
PERIOD = 0.2  # seconds that the upstream takes
EXACT, OFF = {"x-cache-namespace": "exact"}, {"x-cache-mode": "off"}
WAYS = {
    "passed by": OFF,
    "exact miss": EXACT,
    "exact miss again": EXACT,
    "semantic miss": {},
    "semantic miss again": {},
}


@dataclass
class Asked:
    """Seconds to the first byte of the body and to its end, and of CPU that the service took."""

    first: Times = field(default_factory=Times)
    whole: Times = field(default_factory=Times)
    cpu: float = 0.0

    @classmethod
    def of(cls, rounds: list[Asked]) -> Asked:
        all_of = cls()
        for one in rounds:
            all_of.cpu += one.cpu
            for total, part in ((all_of.first, one.first), (all_of.whole, one.whole)):
                total.seconds += part.seconds
                total.wall += part.wall
        return all_of

    def row(self, what: str, clients: int, rounds: list[Asked], direct: list[Asked]) -> list[Any]:
        """Of all `rounds` together, beside the same rounds of `direct`."""
        pairs = list(zip(rounds, direct, strict=True))
        first = statistics.median(own.first.p50 - bare.first.p50 for own, bare in pairs)
        whole = statistics.median(own.whole.p50 - bare.whole.p50 for own, bare in pairs)
        last = self.whole.percentile(0.99)
        tail = last - Asked.of(direct).whole.percentile(0.99)
        cpu = 100 * self.cpu / self.whole.wall
        return [what, clients, self.first.p50, self.whole.p50, last, self.whole.rate, cpu, first, whole, tail]


def prompts(tag: str, count: int) -> list[str]:
    return [
        f"{tag}: what is the {number}th thing to know about boat number {number * 7919 % 10007}?"
        for number in range(count)
    ]


def ask(
    port: int, clients: int, texts: list[str], *, stream: bool, headers: dict[str, str], within: float = 0.0
) -> Asked:
    """Ask all texts over so many kept-alive connections. within: seconds in which the clients begin, evenly."""
    asked, lock, queue = Asked(), threading.Lock(), iter(texts)
    sent = {"content-type": "application/json"} | headers

    def work(number: int) -> None:
        time.sleep(number * within / clients)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for text in _drain(queue, lock):
            body = {
                "model": "small",
                "temperature": 0,
                "stream": stream,
                "messages": [{"role": "user", "content": text}],
            }
            begun = time.perf_counter()
            connection.request("POST", "/v1/chat/completions", json.dumps(body), sent)
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

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
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
    with own_database() as url:
        upstream, upstream_port = start(url, UPSTREAM, "/v1/models")
        os.environ["SEMCACHE_UPSTREAM"] = f"http://127.0.0.1:{upstream_port}/v1"
        service, port = start(url, SERVICE, "/readyz")
        try:
            exact = {"name": "exact", "policy": {"mode": "exact"}}
            httpx.post(f"http://127.0.0.1:{port}/v1/caches", json=exact).raise_for_status()
            ask(port, 4, prompts("warm", 40), stream=False, headers={})
            for stream in (False, True):
                for clients in args.clients:
                    calls = max(args.calls // ROUNDS, 2 * clients)
                    rows += compare(upstream_port, (port, service.pid), clients, calls, stream=stream)
        finally:
            for process in (service, upstream):
                process.terminate()
                process.wait()
    print(table(HEADERS, rows))
    write_json(args.json, [dict(zip(NAMES, row, strict=True)) for row in rows])


def compare(upstream_port: int, service: tuple[int, int], clients: int, calls: int, *, stream: bool) -> list[list[Any]]:
    """service: its port and its process."""
    port, pid = service
    ports = {"direct": upstream_port} | dict.fromkeys(WAYS, port)
    rounds: dict[str, list[Asked]] = {name: [] for name in ports}
    for number in range(ROUNDS):
        for name, where in ports.items():
            texts = prompts(f"{name.removesuffix(' again')} {stream} {clients} {number}", calls)
            before = cpu_seconds(pid)
            within = 0.0 if name.endswith("again") else PERIOD
            asked = ask(where, clients, texts, stream=stream, headers=WAYS.get(name, {}), within=within)
            asked.cpu = cpu_seconds(pid) - before
            rounds[name].append(asked)
    form = "stream" if stream else "body"
    rows = [Asked.of(own).row(f"{name}, {form}", clients, own, rounds["direct"]) for name, own in rounds.items()]
    print(table(HEADERS, rows), flush=True)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=lambda text: [int(part) for part in text.split(",")], default=[1, 8, 32])
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--json")
    main(parser.parse_args())
