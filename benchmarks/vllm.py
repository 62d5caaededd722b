"""A real vLLM behind the proxy with the cache off, exact only, and full: the same stream, the same clients, one run.

The model is the tiny random one of `tests/vllm`, on the CPU. What it says is noise, so nothing is said of answers here,
only of load; each answer has at least `--tokens` tokens and then ends by itself. The requests are drawn from the first
texts of `stream_open.jsonl` (SEMCACHE_BENCH_DATA), four for each text, with the popularity of Zipf's law (0.9). Wants
`make test-vllm` to have made its environment.

    python benchmarks/vllm.py [--requests 500] [--clients 16] [--tokens 32] [--json FILE]
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]

from lookup import SERVICE, start
from setting import HttpClient as Plain
from setting import Times, own_database, post, table, write_json
from threshold import stream_file

from tests.vllm.server import MODEL, PYTHON, Vllm

HEADERS = ("cache", "requests/s", "p50 ms", "p99 ms", "upstream requests", "upstream tokens", "cost per request")
MODES = ("off", "exact", "semantic")


def ask(port: int, clients: int, texts: list[str], mode: str, tokens: int) -> Times:
    """All requests over so many connections, in order as far as the clients keep up."""
    times, lock, queue = Times(), threading.Lock(), iter(texts)
    headers = {"content-type": "application/json", "x-cache-mode": mode, "x-cache-namespace": f"run-{mode}"}

    def work() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        for text in _drain(queue, lock):
            message = {"role": "user", "content": text}
            body = {
                "model": MODEL,
                "temperature": 0,
                "min_tokens": tokens,
                "max_tokens": 16 * tokens,
                "messages": [message],
            }
            begun = time.perf_counter()
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            response = connection.getresponse()
            data = response.read()
            spent = time.perf_counter() - begun
            assert response.status == 200, data[:300]
            with lock:
                times.seconds.append(spent)
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(clients)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times.wall = time.perf_counter() - begun
    return times


def _drain(queue: Iterator[str], lock: threading.Lock) -> Iterator[str]:
    while True:
        with lock:
            text = next(queue, None)
        if text is None:
            return
        yield text


def main(args: argparse.Namespace) -> None:
    texts = [json.loads(line)["text"] for line in stream_file().read_text().splitlines()]
    pool = list(dict.fromkeys(texts))[: args.requests // 4]
    popularity = [1 / (rank + 1) ** 0.9 for rank in range(len(pool))]
    texts = random.Random(0).choices(pool, popularity, k=args.requests)
    rows: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as folder, own_database() as url:
        models = Path(folder) / "models"
        maker = Path(__file__).parents[1] / "tests" / "vllm" / "tiny_model.py"
        subprocess.run([PYTHON, maker, models], check=True, timeout=300)
        server = Vllm(models, Path(folder), (f"--served-model-name={MODEL}",))
        server.serve()
        os.environ["SEMCACHE_UPSTREAM"] = server.url
        service, port = start(url, SERVICE, "/readyz")
        try:
            client = Plain("127.0.0.1", port)
            for mode in MODES:
                client.send(post("/v1/caches", {"name": f"run-{mode}"}))
            client.close()
            ask(port, 4, [f"warm up {n}" for n in range(16)], "off", args.tokens)
            for mode in MODES:
                before = _spent(server)
                times = ask(port, args.clients, texts, mode, args.tokens)
                requests, tokens = (after - at for after, at in zip(_spent(server), before, strict=True))
                cost = tokens / rows[0][5] if rows else 1.0
                rows.append([mode, times.rate, times.p50, times.percentile(0.99), requests, tokens, cost])
                print(table(HEADERS, [rows[-1]]).splitlines()[-1], flush=True)
        finally:
            service.terminate()
            service.wait()
            server.stop()
    print()
    print(table(HEADERS, rows))
    write_json(args.json, [dict(zip(HEADERS, row, strict=True)) for row in rows])


def _spent(server: Vllm) -> tuple[float, float]:
    """Requests that the server finished and tokens that it wrote."""
    return server.metric("vllm:request_success_total"), server.metric("vllm:generation_tokens_total")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--json")
    main(parser.parse_args())
