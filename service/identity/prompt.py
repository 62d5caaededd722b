"""The identity of a prompt in the data API, whose `scope` object says what a chat body would hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.errors import Code, SemcacheError
from service.identity.model import ModelIdentity
from service.identity.request import Identity, KeyPolicy, strict_chat
from service.identity.scope import Namespace

_MODEL_FIELDS = {
    "revision": "revision",
    "tokenizer": "tokenizer",
    "chatTemplate": "chat_template",
    "dtype": "dtype",
    "quantization": "quantization",
    "kvCacheDtype": "kv_cache_dtype",
    "engineVersion": "engine_version",
}
_BODY_FIELDS = {"tools": "tools", "responseFormat": "response_format", "user": "user", "salt": "cache_salt"}
_TYPES: Mapping[str, type] = {
    **dict.fromkeys(("model", "system", "user", "salt", *_MODEL_FIELDS), str),
    **dict.fromkeys(("sampling", "responseFormat"), dict),
    **dict.fromkeys(("history", "tools"), list),
}
_NAMES: Mapping[type, str] = {str: "a string", dict: "an object", list: "a list"}
SCOPE_FIELDS = frozenset(_TYPES)


def identify_prompt(prompt: str, scope: Mapping[str, Any], *, namespace: Namespace, policy: KeyPolicy) -> Identity:
    """The identity of the chat request that asks `prompt` in this scope: the same as that of the body itself.

    `scope` may hold `SCOPE_FIELDS`; null equals absent. `history` is the list of chat messages before the
    prompt, `sampling` an object of request fields (temperature, max_tokens, …).

    Raises SemcacheError (`invalid_data`) for an unknown field, a wrong type, or messages of a wrong form.
    """
    given = {name: value for name, value in scope.items() if value is not None}
    _check(given)
    model = ModelIdentity(
        given.get("model", ""), **{own: given[name] for name, own in _MODEL_FIELDS.items() if name in given}
    )
    system = [{"role": "system", "content": given["system"]}] if "system" in given else []
    body = {
        **given.get("sampling", {}),
        **{own: given[name] for name, own in _BODY_FIELDS.items() if name in given},
        "messages": [*system, *given.get("history", ()), {"role": "user", "content": prompt}],
    }
    return strict_chat(body, namespace=namespace, model=model, policy=policy)


def _check(scope: Mapping[str, Any]) -> None:
    for name, value in scope.items():
        if name not in _TYPES:
            raise SemcacheError(
                Code.INVALID_DATA,
                f"The scope has no field {name!r}. It may hold {', '.join(sorted(SCOPE_FIELDS))}.",
            )
        if not isinstance(value, _TYPES[name]):
            raise SemcacheError(Code.INVALID_DATA, f"The scope's {name} must be {_NAMES[_TYPES[name]]}.")
    reserved = {"messages", "model", *_BODY_FIELDS.values()} & scope.get("sampling", {}).keys()
    if reserved:
        raise SemcacheError(
            Code.INVALID_DATA,
            f"The scope's sampling must not hold {', '.join(sorted(reserved))}. Name it in the scope itself.",
        )


__all__ = ["SCOPE_FIELDS", "identify_prompt"]
