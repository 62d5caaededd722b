"""What turning one text into a vector costs: sentence-transformers, bare ONNX Runtime, and the service's embedder.

All in one run and in turns, so that the ratios hold on a busy machine. Then the embedder under 1, 4 and 16
clients, with its batches of like length and with batches of one. Nothing is answered from memory.

    python benchmarks/embedding.py [--texts 200] [--rounds 5] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # ships no types
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

from service.embed.embedder import Embedder, open_embedder
from service.embed.models import find_model
from service.settings import Settings

OPENINGS = ("How do I", "Why can't I", "What is the best way to", "Explain in plain words how to", "Where may one")
ACTIONS = ("mend", "moor", "insure", "repaint", "launch", "clean the hull of", "find spare parts for", "sell")
THINGS = ("a wooden boat", "an old ferry", "a canoe", "the harbour crane", "two kayaks", "a sailing dinghy")
ENDINGS = ("?", " in winter?", " without a licence?", " when the tide is out and the slip is closed for repairs?")

BLOCK = 10

Embed = Callable[[str], Awaitable[Any]]


def questions(count: int) -> list[str]:
    draw = random.Random(0)
    kinds = (OPENINGS, ACTIONS, THINGS, ENDINGS)
    words = [[draw.choice(kind) for kind in kinds] for _ in range(count)]
    return [f"{opening} {action} {thing}{ending}" for opening, action, thing, ending in words]


def torch_embed(folder: Path) -> Embed:
    model = SentenceTransformer(str(folder), device="cpu")

    async def embed(text: str) -> Any:
        return model.encode(text)

    return embed


def bare_embed(kept: Path, spinning: str) -> Embed:
    """Tokenizer and session, nothing else."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spinning", spinning)
    session = onnxruntime.InferenceSession(kept / "model.onnx", options, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(kept / "tokenizer.json"))

    async def embed(text: str) -> Any:
        ids = np.array([tokenizer.encode(text).ids])
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        return session.run(None, inputs)[0][0]

    return embed


async def in_turns(ways: dict[str, Embed], texts: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each text each way; the ways take turns every few texts, and the first turns warm up."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    blocks = [texts[at : at + BLOCK] for at in range(0, len(texts), BLOCK)]
    for number, block in enumerate([blocks[0], *blocks * rounds]):
        for name, embed in ways.items():
            for text in block:
                start = time.perf_counter()
                await embed(text)
                if number:
                    times[name].append(1e3 * (time.perf_counter() - start))
    return times


async def under_load(embedder: Embedder, texts: Sequence[str], clients: int) -> dict[str, Any]:
    """Clients that each ask for the next text as soon as they have one."""
    waiting, times = iter(texts), list[float]()
    before = embedder.stats

    async def client(texts: Iterator[str]) -> None:
        for text in texts:
            start = time.perf_counter()
            await embedder.embed(text)
            times.append(1e3 * (time.perf_counter() - start))

    start = time.perf_counter()
    await asyncio.gather(*(client(waiting) for _ in range(clients)))
    seconds = time.perf_counter() - start
    batches = embedder.stats.batches - before.batches
    return {
        "clients": clients,
        "texts_per_second": round(len(texts) / seconds, 1),
        **percentiles(times),
        "texts_per_batch": round((embedder.stats.texts - before.texts) / batches, 2),
    }


def percentiles(times: Sequence[float]) -> dict[str, float]:
    p50, p99 = np.percentile(times, (50, 99))
    return {"p50_ms": round(float(p50), 2), "p99_ms": round(float(p99), 2)}


async def measure(texts: Sequence[str], rounds: int) -> dict[str, Any]:
    settings = Settings(embedder_memory=0)
    batching, single = [
        await open_embedder(settings.model_copy(update=change)) for change in ({}, {"embedder_batch": 1})
    ]
    files = find_model(None)
    kept = settings.models_dir / files.revision
    ways = {
        "sentence-transformers on torch": torch_embed(files.folder),
        "bare ONNX Runtime": bare_embed(kept, "1"),
        "bare ONNX Runtime, no spinning": bare_embed(kept, "0"),
        "the embedder": batching.embed,
    }
    one = {name: percentiles(times) for name, times in (await in_turns(ways, texts, rounds)).items()}
    load = []
    for clients in (1, 4, 16):
        for name, embedder in {"like length": batching, "one": single}.items():
            runs = [await under_load(embedder, texts, clients) for _ in range(rounds)]
            load.append({"batches": name, **min(runs, key=lambda run: run["p50_ms"])})
    for embedder in (batching, single):
        await embedder.close()
    return {"texts": len(texts), "rounds": rounds, "one_text": one, "under_load": load}


def show(figures: dict[str, Any]) -> None:
    floor = min(row["p50_ms"] for name, row in figures["one_text"].items() if name.startswith("bare"))
    print(f"{'one text':34}{'p50 ms':>9}{'p99 ms':>9}{'ratio':>8}")
    for name, row in figures["one_text"].items():
        print(f"{name:34}{row['p50_ms']:9.2f}{row['p99_ms']:9.2f}{row['p50_ms'] / floor:8.2f}")
    print(f"\n{'clients':>7}  {'batches of':12}{'texts/s':>9}{'p50 ms':>9}{'p99 ms':>9}{'texts/batch':>13}")
    for row in figures["under_load"]:
        print(
            f"{row['clients']:7}  {row['batches']:12}{row['texts_per_second']:9.1f}"
            f"{row['p50_ms']:9.2f}{row['p99_ms']:9.2f}{row['texts_per_batch']:13.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="what turning one text into a vector costs")
    parser.add_argument("--texts", type=int, default=200, help="different texts in a round")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    figures = asyncio.run(measure(list(dict.fromkeys(questions(options.texts))), options.rounds))
    show(figures)
    text = json.dumps(figures)
    print(f"\n{text}")
    if options.json:
        options.json.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
