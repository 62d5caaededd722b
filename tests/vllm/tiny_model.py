"""A tiny random Llama, made offline in seconds: `python tiny_model.py FOLDER`, in the environment that has vLLM.

FOLDER gets one folder for each variant. All have the same sizes and names, and each but `base` differs from it in one
thing: what an operator may change behind a path that stays. Answers are noise of a dozen tokens that depends on the
whole prompt and, where it is sampled, on the seed.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

POSITIONS = 2048
VOCABULARY = 320
END, THOUGHT = "<|im_end|>", "</think>"
SPECIAL = ["<|endoftext|>", "<|im_start|>", END, "<pad>"]
# A random model says any token once in some hundred; longer rows let answers and thoughts come to an end.
ENDING = {END: 2.5, THOUGHT: 2.0}

TEXT = "The ferry leaves the harbour at noon, or when the tide allows it. "
OTHER_TEXT = "A lighthouse keeper writes every evening which ships have passed by. "

TEMPLATE = """\
{%- if tools %}<|im_start|>system
{{ tools | tojson }}<|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content or '' }}{{ message.tool_calls | tojson if message.tool_calls else '' }}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{{ '<think>' if thinking else '' }}{% endif %}"""
OTHER_TEMPLATE = "<|im_start|>system\nBe brief.<|im_end|>\n" + TEMPLATE

DEFAULTS = {"temperature": 1.0}
OTHER_DEFAULTS = {"temperature": 0.5, "top_p": 0.5}


def make_model(folder: Path, *, text: str = TEXT, template: str = TEMPLATE, seed: int = 0) -> None:
    tokenizer = make_tokenizer(text, template)
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in (*SPECIAL, THOUGHT)}
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=POSITIONS,
        initializer_range=0.2,
        bos_token_id=ids["<|endoftext|>"],
        eos_token_id=ids[END],
        pad_token_id=ids["<pad>"],
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for name, length in ENDING.items():
            model.lm_head.weight[ids[name]] *= length
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write_defaults(folder, DEFAULTS)


def make_tokenizer(text: str, template: str) -> PreTrainedTokenizerFast:
    """A byte-level BPE of 256 bytes and some fifty merges and names."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=311 - 2,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([text] * 64, trainer)
    made.add_tokens(["<think>", THOUGHT])
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=made,
        bos_token="<|endoftext|>",
        eos_token=END,
        pad_token="<pad>",
        model_max_length=POSITIONS,
    )
    wrapped.chat_template = template
    return wrapped


def write_defaults(folder: Path, defaults: dict[str, float]) -> None:
    path = folder / "generation_config.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(known | {"do_sample": True} | defaults))


def make_defaults(folder: Path) -> None:
    make_model(folder)
    write_defaults(folder, OTHER_DEFAULTS)


VARIANTS: dict[str, Callable[[Path], None]] = {
    "base": make_model,
    "tokenizer": lambda folder: make_model(folder, text=OTHER_TEXT),
    "template": lambda folder: make_model(folder, template=OTHER_TEMPLATE),
    "defaults": make_defaults,
    "weights": lambda folder: make_model(folder, seed=1),
}


if __name__ == "__main__":
    for name, make in VARIANTS.items():
        target = Path(sys.argv[1]) / name
        shutil.rmtree(target, ignore_errors=True)
        make(target)
