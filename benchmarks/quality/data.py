"""The labelled files and their vectors, which are made once per list of texts and kept under `benchmarks/results`."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.embed.local import open_local
from service.embed.models import find_model
from service.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("SEMCACHE_BENCH_DATA", ROOT.parent / "shared" / "data"))
VECTORS = ROOT / "benchmarks" / "results" / "vectors"

_DRAWN, _ZIPF = 8_000, 0.9
_BATCH, _TOLD = 32, 2_048  # texts that are embedded together, and after which progress is told

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts; `same` says whether one answer serves both."""

    a: str
    b: str
    same: bool
    category: str


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a stream. Two requests have the same answer when `answer` is equal."""

    text: str
    answer: str
    source: str


@cache
def rows(name: str) -> list[dict[str, Any]]:
    if not DATA.is_dir():
        sys.exit(f"There is no folder {DATA}: name that of the labelled files in SEMCACHE_BENCH_DATA.")
    with (DATA / f"{name}.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def pairs(name: str) -> list[Pair]:
    return [Pair(r["a"], r["b"], bool(r["same"]), r.get("cat") or "") for r in rows(name)]


def stream(name: str = "stream_open") -> list[Request]:
    """A stream as it stands in its file, or one that is drawn from a file of intents."""
    if name.startswith("intents_"):
        return _drawn(name)
    return [Request(r["text"], r["answer_id"], r["source"]) for r in rows(name)]


def _drawn(name: str) -> list[Request]:
    """Texts in the order of Zipf's law; an intent is one answer, and what is out of scope has an answer of its own."""
    draw = random.Random(0)
    table = draw.sample(rows(name), len(rows(name)))
    popularity = [rank**-_ZIPF for rank in range(1, len(table) + 1)]
    return [
        Request(r["text"], r["text"] if r["intent"] == "oos" else r["intent"], name)
        for r in draw.choices(table, popularity, k=_DRAWN)
    ]


def embed(texts: list[str], *, name: str) -> Floats:
    """Unit vectors of `texts` from the bundled embedder as the service runs it, in order; zeros for a text that it
    does not read as a whole, which no other one is near to. `name` is the file they are kept in."""
    key = hashlib.sha256("\0".join([_revision(), *texts]).encode()).hexdigest()[:16]
    kept = VECTORS / f"{name}-{key}.npy"
    if kept.exists():
        return np.asarray(np.load(kept), dtype=np.float32)
    vectors = asyncio.run(_embed(texts, name))
    VECTORS.mkdir(parents=True, exist_ok=True)
    np.save(kept, vectors)
    return vectors


@cache
def _revision() -> str:
    return find_model(None).revision


async def _embed(texts: list[str], name: str) -> Floats:
    model = await open_local(None, Settings().models_dir)
    vectors = np.zeros((len(texts), model.exported.dimensions), dtype=np.float32)
    by_length = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    for start in range(0, len(texts), _BATCH):
        if start % _TOLD == 0:
            print(f"embedding {name}: {start} of {len(texts)} texts", file=sys.stderr)
        batch = by_length[start : start + _BATCH]
        for i, vector in zip(batch, await model.embed([texts[i] for i in batch]), strict=True):
            if isinstance(vector, np.ndarray):
                vectors[i] = vector
    await model.close()
    return vectors


def pair_similarity(name: str) -> Floats:
    """The cosine of every pair of a file."""
    table = pairs(name)
    texts = sorted({t for p in table for t in (p.a, p.b)})
    at = {text: i for i, text in enumerate(texts)}
    vectors = embed(texts, name=name)
    left, right = (vectors[[at[t] for t in side]] for side in ([p.a for p in table], [p.b for p in table]))
    return np.asarray(np.einsum("ij,ij->i", left, right), dtype=np.float32)
