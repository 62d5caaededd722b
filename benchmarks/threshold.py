"""What the bundled embedder's similarity is worth: a labelled stream replayed over a sweep of thresholds.

The replay is exact: an equal text is served first, else the nearest stored text when its cosine reaches the
threshold (with `--guards` the nearest of four that every guard passes, as the service does by default), else the
question is a miss and is stored with its own answer. A hit is right when the answer ids
agree. Intervals are 95 %: Wilson's, which take hits for independent, and resampled by answer, which let all
repeats of one question be right or wrong together; state the wider.

    python benchmarks/threshold.py [--thresholds 0.86,0.9] [--guards] [--json FILE]

reads `stream_open.jsonl` in the folder that SEMCACHE_BENCH_DATA names.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.embed.embedder import open_embedder
from service.identity.conversation import semantic_text
from service.policy.guards.checks import Outcome as Guarded
from service.policy.guards.checks import check
from service.policy.guards.features import Features, extract
from service.settings import Settings

DATA = Path(os.environ.get("SEMCACHE_BENCH_DATA", Path(__file__).parents[2] / "shared" / "data"))
SWEEP = (None, *(round(0.8 + 0.005 * step, 3) for step in range(40)))
RESAMPLES = 2000
NEIGHBOURS = 4

Array = NDArray[Any]


@dataclass
class Stream:
    """Requests in order, as numbers of distinct texts and answers; the cosines between all texts, and these."""

    texts: Array
    answers: Array
    cosines: NDArray[np.float32]
    words: Array

    @cached_property
    def features(self) -> list[Features]:
        return [extract(semantic_text(str(text)) or "") for text in self.words]


@dataclass(frozen=True)
class Outcome:
    """What each request came to, as one boolean a request."""

    exact: NDArray[np.bool_]
    semantic: NDArray[np.bool_]
    false: NDArray[np.bool_]


async def embed_all(texts: Sequence[str]) -> NDArray[np.float32]:
    """Unit vectors in rows, by the embedder that the environment names."""
    embedder = await open_embedder(Settings())
    try:
        results = await embedder.embed_many(texts)
    finally:
        await embedder.close()
    return np.stack([result for result in results if isinstance(result, np.ndarray)])


def stream_file() -> Path:
    """The labelled stream, or the end of the program with a word on where to find it."""
    path = DATA / "stream_open.jsonl"
    if not path.exists():
        sys.exit(f"{path} is not there; name the folder of labelled data in SEMCACHE_BENCH_DATA")
    return path


def load(path: Path) -> Stream:
    rows = [json.loads(line) for line in path.open(encoding="utf-8")]
    texts, text_of = np.unique([row["text"] for row in rows], return_inverse=True)
    _, answer_of = np.unique([row["answer_id"] for row in rows], return_inverse=True)
    vectors = asyncio.run(embed_all([str(text) for text in texts]))
    return Stream(text_of, answer_of, vectors @ vectors.T, texts)


def nearest(stream: Stream, text: int, stored: Array, threshold: float, *, guards: bool) -> int | None:
    """The stored text that is served for this one."""
    near = stream.cosines[text, stored]
    best = np.argsort(-near, kind="stable")[: NEIGHBOURS if guards else 1]
    for place in best[near[best] >= threshold]:
        candidate = int(stored[place])
        verdicts = check(stream.features[text], stream.features[candidate]) if guards else []
        if all(verdict.outcome is Guarded.PASS for verdict in verdicts):
            return candidate
    return None


def replay(stream: Stream, threshold: float | None, *, guards: bool = False) -> Outcome:
    """Serve the stream at one threshold; None serves equal texts only."""
    requests = len(stream.texts)
    exact, semantic, false = (np.zeros(requests, dtype=bool) for _ in range(3))
    stored, size, answer_of = np.zeros(requests, dtype=np.int64), 0, dict[int, int]()
    for request, (text, answer) in enumerate(zip(stream.texts, stream.answers, strict=True)):
        served = answer_of.get(text)
        exact[request] = served is not None
        if served is None and threshold is not None and size:
            found = nearest(stream, int(text), stored[:size], threshold, guards=guards)
            if found is not None:
                served, semantic[request] = answer_of[found], True
        if served is None:
            answer_of[text] = answer
            stored[size], size = text, size + 1
        else:
            false[request] = served != answer
    return Outcome(exact, semantic, false)


def wilson(part: int, whole: int) -> tuple[float, ...]:
    """The Wilson score interval of a proportion at 95 % (Wilson 1927)."""
    if whole == 0:
        return 0.0, 1.0
    z, p = 1.959964, part / whole
    middle, spread = p + z * z / (2 * whole), z * np.sqrt(p * (1 - p) / whole + z * z / (4 * whole * whole))
    return tuple(round(float(edge / (1 + z * z / whole)), 6) for edge in (middle - spread, middle + spread))


def rate(part: Array, whole: Array, weights: Array, answers: Array) -> dict[str, Any]:
    """A proportion over requests with both its intervals; `weights` are resampled counts of the answers."""
    share = [np.bincount(answers, weights=mask, minlength=weights.shape[1]) for mask in (part, whole)]
    parts, wholes = (weights @ counts for counts in share)
    resampled = np.divide(parts, wholes, out=np.zeros_like(parts), where=wholes > 0)
    number, of = int(part.sum()), int(whole.sum())
    return {
        "rate": round(number / of, 6) if of else 0.0,
        "of": of,
        "wilson": wilson(number, of),
        "by_answer": tuple(round(float(edge), 6) for edge in np.quantile(resampled, (0.025, 0.975))),
    }


def measure(stream: Stream, threshold: float | None, weights: Array, *, guards: bool = False) -> dict[str, Any]:
    """All four rates at one threshold."""
    return rates(stream, threshold, replay(stream, threshold, guards=guards), weights)


def rates(stream: Stream, threshold: float | None, outcome: Outcome, weights: Array) -> dict[str, Any]:
    served, everything = outcome.exact | outcome.semantic, np.ones(len(stream.texts), dtype=bool)
    pairs = {
        "hits": (served, everything),
        "false_per_semantic_hit": (outcome.false & outcome.semantic, outcome.semantic),
        "false_per_served_hit": (outcome.false, served),
        "false_per_request": (outcome.false, everything),
    }
    found = {name: rate(part, whole, weights, stream.answers) for name, (part, whole) in pairs.items()}
    return {"threshold": threshold, **found}


def show(row: dict[str, Any]) -> str:
    cells = [f"{row['threshold']:<9}" if row["threshold"] is not None else "exact    "]
    for name in ("hits", "false_per_semantic_hit", "false_per_served_hit", "false_per_request"):
        numbers = (row[name]["rate"], *row[name]["wilson"], *row[name]["by_answer"])
        cells.append("{:5.2f} [{:5.2f} {:5.2f}] [{:5.2f} {:5.2f}]".format(*(100 * part for part in numbers)))
    return " | ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description="replay the stream over a sweep of thresholds")
    parser.add_argument("--thresholds", help="comma-separated; unset: equal texts alone, then 0.8 to 0.995")
    parser.add_argument("--guards", action="store_true", help="as the service does by default")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    sweep = [float(word) for word in options.thresholds.split(",")] if options.thresholds else SWEEP
    stream = load(stream_file())
    answers = int(stream.answers.max()) + 1
    weights = np.random.default_rng(0).multinomial(answers, np.full(answers, 1 / answers), size=RESAMPLES)
    print("percent, each with 95 % intervals [Wilson] [resampled by answer]")
    headings = ("hits", "false per semantic hit", "false per served hit", "false per request")
    print("threshold | " + " | ".join(f"{heading:33}" for heading in headings))
    rows = []
    for threshold in sweep:
        rows.append(measure(stream, threshold, weights, guards=options.guards))
        print(show(rows[-1]), flush=True)
    text = json.dumps({"requests": len(stream.texts), "resamples": RESAMPLES, "rows": rows})
    print(text)
    if options.json:
        options.json.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
