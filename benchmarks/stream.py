"""The labelled stream through the REST API, with real embeddings, beside the exact nearest-neighbour replay.

Each request is a search; on a miss its own answer is stored. What was served is judged by the answer ids and must
agree, request by request, with the replay of `threshold.py` at the same threshold: the service finds what an exact
scan finds.

    python benchmarks/stream.py [--thresholds 0.95] [--no-guards] [--requests 12031] [--json FILE]

reads `stream_open.jsonl` in the folder that SEMCACHE_BENCH_DATA names.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
from lookup import SERVICE, start
from setting import HttpClient, own_database, post, write_json
from threshold import RESAMPLES, Outcome, Stream, load, rates, replay, show, stream_file


def serve_stream(
    port: int, rows: list[dict[str, Any]], threshold: float, *, guards: bool
) -> tuple[Outcome, list[float]]:
    """Every request through REST; what became of each, and the seconds that each search took."""
    client = HttpClient("127.0.0.1", port)
    cache = f"/v1/caches/stream-{threshold}"
    policy = {"similarityThreshold": threshold, "guards": guards}
    client.send(post("/v1/caches", {"name": f"stream-{threshold}", "policy": policy}))
    exact, semantic, false = (np.zeros(len(rows), dtype=bool) for _ in range(3))
    seconds = []
    for number, row in enumerate(rows):
        begun = time.perf_counter()
        found = json.loads(client.send(post(f"{cache}/entries/search", {"prompt": row["text"]})))["data"]
        seconds.append(time.perf_counter() - begun)
        if found:
            exact[number] = found[0]["searchStrategy"] == "exact"
            semantic[number] = not exact[number]
            false[number] = found[0]["response"] != row["answer_id"]
        else:
            client.send(post(f"{cache}/entries", {"prompt": row["text"], "response": row["answer_id"]}))
    client.close()
    return Outcome(exact, semantic, false), seconds


def disagreements(through_rest: Outcome, replayed: Outcome) -> int:
    """Requests that were served otherwise than in the replay."""
    same = (through_rest.exact == replayed.exact) & (through_rest.semantic == replayed.semantic)
    return int((~(same & (through_rest.false == replayed.false))).sum())


def main(args: argparse.Namespace) -> None:
    path = stream_file()
    rows = [json.loads(line) for line in path.read_text().splitlines()][: args.requests]
    stream = load(path)
    stream = Stream(stream.texts[: len(rows)], stream.answers[: len(rows)], stream.cosines, stream.words)
    answers = int(stream.answers.max()) + 1
    weights = np.random.default_rng(0).multinomial(answers, np.full(answers, 1 / answers), size=RESAMPLES)
    report = []
    print("percent, each with 95 % intervals [Wilson] [resampled by answer]")
    print("threshold | hits | false per semantic hit | false per served hit | false per request")
    with own_database() as url:
        process, port = start(url, SERVICE, "/readyz", SEMCACHE_EMBEDDER_MEMORY="100000")
        try:
            for threshold in args.thresholds:
                outcome, seconds = serve_stream(port, rows, threshold, guards=args.guards)
                replayed = replay(stream, threshold, guards=args.guards)
                apart = disagreements(outcome, replayed)
                report.append(rates(stream, threshold, outcome, weights) | {"disagreements": apart})
                print("REST   ", show(report[-1]))
                print("replay ", show(rates(stream, threshold, replayed, weights)))
                print(
                    f"{apart} of {len(rows)} requests differ; search p50 {1000 * np.median(seconds):.2f} ms", flush=True
                )
        finally:
            process.terminate()
            process.wait()
    write_json(args.json, report)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thresholds", type=lambda text: [float(part) for part in text.split(",")], default=[0.95])
    parser.add_argument("--requests", type=int, default=12_031)
    parser.add_argument("--guards", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--json")
    main(parser.parse_args())
