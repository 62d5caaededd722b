"""Make a small cross-encoder with random weights: `tiny_cross_encoder.py FOLDER OUTPUTS`, with FOLDER/pairs.json given.

FOLDER/probabilities.npy is what sentence-transformers itself gives for the pairs. A process of its own, so that the
tests' process stays without torch.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import CrossEncoder
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    normalizer, splitter = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    words = {word for text in texts for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text))}
    # A vocabulary that is trained has another order each time, and random weights give other probabilities for it.
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *sorted(words)])}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizer, splitter
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=64, **names)


def main(folder: Path, outputs: int) -> None:
    torch.manual_seed(7)
    pairs = json.loads((folder / "pairs.json").read_text())
    words = tokenizer([text for pair in pairs for text in pair])
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.5,
        num_labels=outputs,
    )
    BertForSequenceClassification(config).save_pretrained(folder / "model")
    words.save_pretrained(folder / "model")
    if outputs == 1:
        model = CrossEncoder(str(folder / "model"), device="cpu")
        np.save(folder / "probabilities.npy", model.predict(pairs, activation_fn=torch.nn.Sigmoid()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
