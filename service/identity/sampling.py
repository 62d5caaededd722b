"""Sampling fields as vLLM normalises them; nothing else is merged, and nothing absent is filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_LEAST_TEMPERATURE = 0.01
_LARGEST_BIAS = 100
_IRRELEVANT_WHEN_GREEDY = ("top_p", "top_k", "min_p", "seed")


def normal_sampling(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The sampling fields after the normalisation of vLLM's `SamplingParams` (0.32)."""
    normal = {name: _NORMAL[name](value) if name in _NORMAL else value for name, value in fields.items()}
    if _is_greedy(normal):
        for name in _IRRELEVANT_WHEN_GREEDY:
            normal.pop(name, None)
    elif _is_number(normal.get("seed")) and normal["seed"] == -1:
        del normal["seed"]
    return normal


def is_sampled(fields: Mapping[str, Any]) -> bool:
    """Whether the answer is a draw: no beam search, and temperature above 0 or left to the server."""
    return not _is_greedy(fields) and not fields.get("use_beam_search")


def _is_greedy(fields: Mapping[str, Any]) -> bool:
    return _is_number(fields.get("temperature")) and fields["temperature"] == 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _normal_temperature(value: Any) -> Any:
    return _LEAST_TEMPERATURE if _is_number(value) and 0 < value < _LEAST_TEMPERATURE else value


def _normal_top_k(value: Any) -> Any:
    return 0 if _is_number(value) and value == -1 else value


def _listed(stop: Any) -> Any:
    return [stop] if isinstance(stop, str) else stop


def _without_repeats(items: Any) -> Any:
    if isinstance(items, list) and len({type(item) for item in items} | {int, str}) == 2:
        return list(dict.fromkeys(items))
    return items


def _normal_bias(bias: Any) -> Any:
    """Token ids as integers, biases within ±100; as it is where an id is no integer or two ids are one."""
    if not isinstance(bias, dict):
        return bias
    try:
        clamped = {str(int(token)): _clamped(value) for token, value in bias.items()}
    except ValueError:
        return bias
    return clamped if len(clamped) == len(bias) else bias


def _clamped(value: Any) -> Any:
    return min(max(value, -_LARGEST_BIAS), _LARGEST_BIAS) if _is_number(value) else value


_NORMAL: Mapping[str, Callable[[Any], Any]] = {
    "temperature": _normal_temperature,
    "top_k": _normal_top_k,
    "stop": _listed,
    "stop_token_ids": _without_repeats,
    "bad_words": _without_repeats,
    "logit_bias": _normal_bias,
}

__all__ = ["is_sampled", "normal_sampling"]
