"""Export a sentence-transformers model to ONNX.

`python -m service.embed.export KIND FOLDER MODELS_DIR REVISION NAME` is a child process of the service, since only
here torch is needed. KIND `embedder`: the whole pipeline (transformer, pooling, dense layers, normalisation) becomes
one graph from token ids to the sentence's vector. KIND `cross_encoder`: from a pair's token ids to its probability.
Processes that export at the same time take turns, a crash leaves nothing that is taken for a model, and a graph whose
numbers are not sentence-transformers' own is refused.
"""

from __future__ import annotations

import fcntl
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer

from service.embed.cross_encoder import PairPipeline
from service.embed.local import FORMAT, Exported, Pipeline

Write = Callable[[Path, Path, str, str], None]

TOLERANCE = 1e-5
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
SAMPLES = (
    "?",
    "When does the last ferry leave?",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.",
    "港へ行く最後のバスは何時ですか。 Когда отходит паром? 🚢",
    "A list of harbours, with the depth of each and the light that marks it. " * 6,
)


class Graph(torch.nn.Module):
    """The model's modules as one function of tensors."""

    def __init__(self, model: SentenceTransformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        features: dict[str, Any] = dict(zip(INPUTS, tensors, strict=False))
        first, *others = self.model
        features = _static(first, features) if isinstance(first, StaticEmbedding) else first(features)
        for module in others:
            features = module(features)
        return cast("torch.Tensor", features["sentence_embedding"])


class PairGraph(torch.nn.Module):
    """A cross-encoder as a function of tensors: the sigmoid of its one output."""

    def __init__(self, model: CrossEncoder, inputs: list[str]) -> None:
        super().__init__()
        self.model, self.inputs = cast("torch.nn.Module", model.model), inputs

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.model(**dict(zip(self.inputs, tensors, strict=True))).logits)


def _static(module: StaticEmbedding, features: dict[str, Any]) -> dict[str, Any]:
    """A masked mean over padded ids: the same as the module's own forward, which wants ragged ids."""
    mask = features["attention_mask"].unsqueeze(-1).float()
    rows = torch.nn.functional.embedding(features["input_ids"], module.embedding.weight)
    return features | {"sentence_embedding": (rows * mask).sum(1) / mask.sum(1)}


def export(write: Write, folder: Path, models_dir: Path, revision: str, name: str) -> None:
    """Put what `write` makes of the model under `models_dir/revision`, unless another process just did."""
    models_dir.mkdir(parents=True, exist_ok=True)
    with (models_dir / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = models_dir / revision
        if Exported.read(kept) is not None:
            return
        for leftover in (kept, *models_dir.glob(".export-*")):
            shutil.rmtree(leftover, ignore_errors=True)
        making = Path(tempfile.mkdtemp(prefix=".export-", dir=models_dir))
        try:
            write(folder, making, revision, name)
            _sync(making)
            making.rename(kept)
        finally:
            shutil.rmtree(making, ignore_errors=True)


def write_embedder(folder: Path, into: Path, revision: str, name: str) -> None:
    model = SentenceTransformer(str(folder), device="cpu").float().eval()
    static = isinstance(model[0], StaticEmbedding)
    inputs = list(INPUTS[:2]) if static else _inputs(model.preprocess([SAMPLES[0]]))
    _tokenizer(model.tokenizer).save(str(into / "tokenizer.json"))
    _write_graph(Graph(model), inputs, into / "model.onnx")
    exported = Exported(
        format=FORMAT,
        name=name,
        revision=revision,
        dimensions=len(model.encode(SAMPLES[0])),
        max_tokens=_limit(model.max_seq_length),
        prompt=model.prompts.get(model.default_prompt_name or "") or "",
        pad_id=0 if static else int(model.tokenizer.pad_token_id or 0),
        special_tokens=not static,
        inputs=inputs,
    )
    _check(model, Pipeline(into, exported))
    exported.write(into)


def write_cross_encoder(folder: Path, into: Path, revision: str, name: str) -> None:
    model = CrossEncoder(str(folder), device="cpu").float().eval()
    if model.num_labels != 1:
        raise ValueError(f"the model has {model.num_labels} outputs; a cross-encoder with one is needed")
    inputs = _inputs(model.tokenizer("a", "b", return_tensors="pt"))
    _tokenizer(model.tokenizer).save(str(into / "tokenizer.json"))
    _write_graph(PairGraph(model, inputs), inputs, into / "model.onnx")
    exported = Exported(
        format=FORMAT,
        name=name,
        revision=revision,
        dimensions=1,
        max_tokens=_limit(model.max_length),
        prompt="",
        pad_id=int(model.tokenizer.pad_token_id or 0),
        special_tokens=True,
        inputs=inputs,
    )
    _check_pairs(model, PairPipeline(into, exported))
    exported.write(into)


def _check_pairs(model: CrossEncoder, pipeline: PairPipeline) -> None:
    pairs = list(pairwise(SAMPLES))
    wanted = model.predict(pairs, activation_fn=torch.nn.Sigmoid()).tolist()
    got = [pipeline.probability(*pair) for pair in pairs]
    off = [abs(p - w) for p, w in zip(got, wanted, strict=True) if p is not None]
    if not off or not max(off) <= TOLERANCE:
        raise ValueError("the exported graph gives other probabilities than sentence-transformers")


def _inputs(preprocessed: Mapping[str, Any]) -> list[str]:
    given = {key for key, value in preprocessed.items() if isinstance(value, torch.Tensor)}
    if not {"input_ids", "attention_mask"} <= given <= set(INPUTS):
        raise ValueError(f"the model wants {sorted(given)}; only text models over {INPUTS} are supported")
    return [name for name in INPUTS if name in given]


def _tokenizer(given: Any) -> Tokenizer:
    fast = given if isinstance(given, Tokenizer) else given.backend_tokenizer
    tokenizer = Tokenizer.from_str(fast.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _limit(limit: float | None) -> int | None:
    return int(limit) if limit is not None and math.isfinite(limit) and limit < 10**6 else None


def _write_graph(graph: torch.nn.Module, inputs: list[str], path: Path) -> None:
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length")
    ids = torch.ones(3, 7, dtype=torch.int64)
    torch.onnx.export(
        graph,
        (ids, torch.ones_like(ids), torch.zeros_like(ids))[: len(inputs)],
        path,
        input_names=inputs,
        output_names=["output"],
        dynamic_shapes=(tuple({0: batch, 1: length} for _ in inputs),),
        dynamo=True,
        verbose=False,
    )


def _check(model: SentenceTransformer, pipeline: Pipeline) -> None:
    """Compare with sentence-transformers, one by one and as a padded batch."""
    wanted = model.encode(list(SAMPLES), normalize_embeddings=True)
    for got in (pipeline.embed(SAMPLES, unread=True), [pipeline.embed([text], unread=True)[0] for text in SAMPLES]):
        off = [np.abs(a - b).max() for a, b in zip(wanted, got, strict=True) if isinstance(b, np.ndarray)]
        if not off or not max(off) <= TOLERANCE:
            raise ValueError("the exported graph gives other vectors than sentence-transformers")


def _sync(folder: Path) -> None:
    for path in (*folder.iterdir(), folder):
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


if __name__ == "__main__":
    os.environ["HF_HUB_OFFLINE"] = "1"
    kinds: dict[str, Write] = {"embedder": write_embedder, "cross_encoder": write_cross_encoder}
    export(kinds[sys.argv[1]], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], sys.argv[5])
