"""What a model server shows of the model that it serves, so that a change of it is noticed.

A server shows no hash of weights, tokenizer or chat template; it shows what they do to fixed texts.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import asdict, dataclass
from typing import Any

from service.errors import Code
from service.json_text import dump, parse
from service.upstream.client import UpstreamClient, UpstreamError

_ABSENT = {400, 403, 404, 405, 422, 501}
_CARD = ("id", "root", "parent", "max_model_len")
_CACHE = ("cache_dtype", "block_size")
_METRIC = re.compile(r"^(process_start_time_seconds|vllm:cache_config_info)(\{.*\})? (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')

_TEXTS = (
    "The quick brown fox, 0123456789: naïve café — don't\u00a0stop!",
    "  def f(x):\n\treturn {'a': x**2, \"b\": [1.5e-3]}  # 中文 日本語 العربية \U0001f469\u200d\U0001f52c",
    "<s></s><|im_start|><|im_end|><|endoftext|><think></think>[INST][/INST]",
)
_USER = {"role": "user", "content": "Which knot?"}
_TURNS = [_USER, {"role": "assistant", "content": "A bowline."}, {"role": "user", "content": "  And then? "}]
_TOOL = {
    "type": "function",
    "function": {
        "name": "knot",
        "description": "Look up",
        "parameters": {"type": "object", "properties": {}},
    },
}
_TALKS: tuple[dict[str, Any], ...] = (
    {"messages": [_USER]},
    {"messages": [{"role": "system", "content": "Be brief."}, _USER]},
    {"messages": _TURNS},
    {"messages": [_USER], "tools": [_TOOL]},
)
# Templates that print today's date take it from here, else the model would be another one each day.
_FIXED_DATE = {"date_string": "01 Jan 2025"}
_CANARIES = ("The first three primes are", "def main():\n")


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """One look at a served model; None is "not shown by this server".

    card: the model's entry of /v1/models without what changes at every call. tokenizer, template: SHA-256 of
    the token ids of fixed texts and conversations. kv_cache: its dtype and block size. defaults: SHA-256 of the
    sampling parameters of a request that names none, which vLLM shows under --enable-scale-out. canary: SHA-256
    of a few greedy tokens with rounded log probabilities, the only look at the weights. fingerprint: vLLM's, for
    the record, as scheduler settings change it too. started: the server's start in Unix seconds; another one
    means look again.
    """

    card: dict[str, Any] | None = None
    engine_version: str | None = None
    tokenizer: str | None = None
    template: str | None = None
    kv_cache: dict[str, str] | None = None
    defaults: str | None = None
    canary: str | None = None
    fingerprint: str | None = None
    started: float | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of all that makes another model, equal for equal servers across restarts."""
        shown = asdict(self)
        del shown["fingerprint"], shown["started"]
        return _sha256(shown)


async def probe(client: UpstreamClient, model: str, *, canary: bool = False) -> ProbeResult:
    """Look at `model` through the routes that vLLM has; a route that a server lacks leaves its field None.

    `canary` generates two times 8 tokens. Raises UpstreamError where the server fails to answer, so that a
    hiccup is never taken for another model.
    """
    routes = asyncio.gather(_card(client, model), _version(client, model), _metrics(client, model))
    effects = asyncio.gather(
        _tokens(client, model, tuple({"prompt": text} for text in _TEXTS)),
        _tokens(client, model, tuple(talk | {"chat_template_kwargs": _FIXED_DATE} for talk in _TALKS)),
        _defaults(client, model),
        _canaries(client, model) if canary else _nothing(),
    )
    (card, version, metrics), (texts, talks, defaults, greedy) = await asyncio.gather(routes, effects)
    started, kv_cache = metrics
    said, fingerprint = greedy
    return ProbeResult(card, version, texts, talks, kv_cache, defaults, said, fingerprint, started)


async def _card(client: UpstreamClient, model: str) -> dict[str, Any] | None:
    shown = await _json(client, "GET", "/v1/models", model)
    data = shown.get("data") if isinstance(shown, dict) else None
    cards = [card for card in data if isinstance(card, dict)] if isinstance(data, list) else []
    found = next((card for card in cards if card.get("id") == model), None)
    return None if found is None else {name: found.get(name) for name in _CARD}


async def _version(client: UpstreamClient, model: str) -> str | None:
    shown = await _json(client, "GET", "/version", model)
    version = shown.get("version") if isinstance(shown, dict) else None
    return version if isinstance(version, str) else None


async def _tokens(client: UpstreamClient, model: str, asked: tuple[dict[str, Any], ...]) -> str | None:
    calls = (_json(client, "POST", "/tokenize", model, {"model": model} | body) for body in asked)
    shown = await asyncio.gather(*calls)
    ids = [answer.get("tokens") if isinstance(answer, dict) else None for answer in shown]
    return _sha256(ids) if any(one is not None for one in ids) else None


async def _metrics(client: UpstreamClient, model: str) -> tuple[float | None, dict[str, str] | None]:
    text = await _text(client, "GET", "/metrics", model)
    found = {name: (labels, value) for name, labels, value in _METRIC.findall(text or "")}
    start = found.get("process_start_time_seconds")
    config = found.get("vllm:cache_config_info")
    labels = dict(_LABEL.findall(config[0])) if config else {}
    cache = {name: labels[name] for name in _CACHE if name in labels}
    return (float(start[1]) if start else None), cache or None


async def _defaults(client: UpstreamClient, model: str) -> str | None:
    asked = {"model": model, "messages": [_USER], "chat_template_kwargs": _FIXED_DATE}
    shown = await _json(client, "POST", "/v1/chat/completions/render", model, asked)
    params = shown.get("sampling_params") if isinstance(shown, dict) else None
    return None if params is None else _sha256(params)


async def _canaries(client: UpstreamClient, model: str) -> tuple[str | None, str | None]:
    body = {"model": model, "temperature": 0, "max_tokens": 8, "logprobs": 1}
    calls = (_json(client, "POST", "/v1/completions", model, body | {"prompt": text}) for text in _CANARIES)
    shown = [answer for answer in await asyncio.gather(*calls) if isinstance(answer, dict)]
    said = [_rounded(choice) for answer in shown for choice in answer.get("choices") or ()]
    fingerprint = next((answer.get("system_fingerprint") for answer in shown), None)
    return (_sha256(said) if said else None), fingerprint


def _rounded(choice: dict[str, Any]) -> list[Any]:
    probs = (choice.get("logprobs") or {}).get("token_logprobs") or ()
    return [choice.get("text"), [None if p is None else round(p, 1) for p in probs]]


async def _nothing() -> tuple[None, None]:
    return None, None


async def _json(client: UpstreamClient, method: str, path: str, model: str, body: Any = None) -> Any:
    text = await _text(client, method, path, model, body)
    try:
        return None if text is None else parse(text)
    except ValueError:
        return None  # a page of some front end, not the route


async def _text(client: UpstreamClient, method: str, path: str, model: str, body: Any = None) -> str | None:
    content = None if body is None else dump(body)
    response = await client.ask(method, path, content=content, model=model)
    text = (await response.read()).decode("utf-8", "replace")
    if response.status in _ABSENT or (response.status == 401 and client.forwards_authorization(model)):
        return None
    if response.status != 200:
        detail = f"The model server answered {response.status} to the probe {path}."
        raise UpstreamError(Code.UPSTREAM_UNREACHABLE, detail)
    return text


def _sha256(value: Any) -> str:
    return hashlib.sha256(dump(value)).hexdigest()


__all__ = ["ProbeResult", "probe"]
