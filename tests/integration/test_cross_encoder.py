"""A small cross-encoder: exported once, run in ONNX Runtime, compared with sentence-transformers on torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from service.embed.cross_encoder import open_cross_encoder
from service.errors import Code, SemcacheError

pytest.importorskip("onnxruntime")

MAKER = Path(__file__).parents[1] / "tiny_cross_encoder.py"
PAIRS = [
    ("When does the last ferry leave?", "When is the final ferry?"),
    ("When is the final ferry?", "When does the last ferry leave?"),
    ("May I take a bicycle?", "May I take a dog?"),
    ("?", "a"),
    ("How deep is the harbour at low tide, and who measures it?", "Who measures the harbour?"),
]


def make(folder: Path, outputs: int) -> Path:
    (folder / "pairs.json").write_text(json.dumps(PAIRS))
    subprocess.run([sys.executable, MAKER, folder, str(outputs)], check=True, capture_output=True)
    return folder / "model"


async def test_it_gives_the_probabilities_of_sentence_transformers(tmp_path: Path) -> None:
    encoder = await open_cross_encoder(str(make(tmp_path, 1)), tmp_path / "kept")
    try:
        wanted = np.load(tmp_path / "probabilities.npy")
        got = [await encoder.probability(*pair) for pair in PAIRS]
        assert np.allclose(got, wanted, atol=1e-5)
        assert len({round(p, 3) for p in got if p is not None}) == len(PAIRS)  # the order of a pair counts too
        assert await encoder.probability("ferry " * 80, "ferry") is None
        assert await encoder.probability("ferry", "x" * 30_000) is None
        assert await encoder.probability("\ud83d", "\x00") is not None
    finally:
        await encoder.close()


async def test_a_model_with_more_outputs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SemcacheError, match="3 outputs") as failure:
        await open_cross_encoder(str(make(tmp_path, 3)), tmp_path / "kept")
    assert failure.value.code is Code.EMBEDDER_UNAVAILABLE
