"""GPTCache's own server with faiss and SQLite, for `hits.py`. Argument: a folder with model.onnx and tokenizer.json.

Its default embedder is another model from a hub; here it embeds with ours, in ONNX Runtime too.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import faiss  # noqa: F401 - GPTCache would install what is missing by itself
import numpy as np
import onnxruntime
import openai  # noqa: F401
import sqlalchemy  # noqa: F401
import uvicorn
from gptcache import cache
from gptcache.manager import CacheBase, VectorBase, get_data_manager
from gptcache.processor.pre import get_prompt
from gptcache.similarity_evaluation import SearchDistanceEvaluation
from gptcache_server.server import app
from tokenizers import Tokenizer


def main(folder: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def embed(prompt: str, **_: Any) -> Any:
        got = tokenizer.encode(prompt)
        known = {"input_ids": got.ids, "attention_mask": got.attention_mask, "token_type_ids": got.type_ids}
        inputs = {i.name: np.array([known[i.name]], dtype=np.int64) for i in session.get_inputs()}
        return session.run(None, inputs)[0][0].astype("float32")

    cache.init(
        pre_embedding_func=get_prompt,
        embedding_func=embed,
        data_manager=get_data_manager(
            CacheBase("sqlite", sql_url="sqlite:///./answers.db"),
            VectorBase("faiss", dimension=len(embed("any")), index_path="faiss.index"),
        ),
        similarity_evaluation=SearchDistanceEvaluation(),
    )
    uvicorn.run(app, port=int(os.environ["SEMCACHE_PORT"]), log_level="warning", access_log=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
