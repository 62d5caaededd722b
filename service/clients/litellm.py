"""A cache for LiteLLM: `litellm.cache = PgSemcache("http://127.0.0.1:8080")`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from litellm.caching.base_cache import BaseCache
from litellm.caching.caching import Cache
from litellm.types.utils import is_litellm_owned_kwarg
from pydantic import BaseModel

from service.clients.http import CacheClient, failing_open
from service.clients.question import Message, Question, ask
from service.json_text import dumps

# Entries hold LiteLLM's own record of an answer: nobody else may find them, nor an adapter of another format.
_FORMAT = "litellm-1"

# Arguments that do not change the answer.
_IGNORED = {
    *("stream", "stream_options", "timeout", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention"),
    *("parent_otel_span", "litellm_params"),
}
# Arguments that LiteLLM keeps to itself, though they change the prompt or who is asked.
_TELLING = {
    *("custom_llm_provider", "api_version", "allowed_openai_params", "hf_model_name", "litellm_system_prompt"),
    *("prompt_id", "prompt_label", "prompt_version", "prompt_environment", "prompt_variables", "custom_prompt_dict"),
    *("roles", "initial_prompt_value", "final_prompt_value", "bos_token", "eos_token", "ensure_alternating_roles"),
    *("user_continue_message", "assistant_continue_message", "supports_system_message", "guardrails"),
    "merge_reasoning_content_in_choices",
}
_SERVER = {"api_base", "base_url", "headers", "extra_headers"}
_TENANT = ("user_api_key", "user_api_key_team_id", "user_api_key_org_id", "redis_namespace")
_SCOPE_FIELDS = {"tools": "tools", "response_format": "responseFormat", "user": "user"}
_COMPLETE = {"stop", "tool_calls", "function_call"}


class PgSemcache(Cache):
    """Answers of `completion` and `acompletion`, streamed or not, found by the last user message in other words too.

    All else must be the same: the messages before it, the model, every argument that LiteLLM sends on (`top_k` and
    all of `extra_body` included, which LiteLLM's own keys lack), the server, and in LiteLLM's proxy the caller's key
    and team. Deployments of one group of a Router are one model. LiteLLM's controls work as ever: `cache={"ttl": 60}`,
    `s-maxage`, `no-cache`, `no-store`, `namespace`. Incomplete answers (`length`, `content_filter`) are not stored. A
    failing cache is logged and never breaks a call.

    The first arguments are those of CacheClient; options are those of `litellm.Cache` (`ttl` in seconds, `mode`,
    `namespace`), but a conversation may have any number of messages unless `max_messages` says otherwise.
    """

    def __init__(
        self,
        base_url: str,
        cache: str = "default",
        *,
        api_key: str | None = None,
        threshold: float | None = None,
        timeout: float = 1.0,
        max_messages: int | None = None,
        **options: Any,
    ) -> None:
        client = CacheClient(base_url, cache, api_key=api_key, threshold=threshold, timeout=timeout)
        self.backend = Backend(client, options.get("namespace"))
        super().__init__(
            supported_call_types=["completion", "acompletion"],
            max_messages=max_messages,
            _backend=self.backend,
            **options,
        )

    def get_cache(self, dynamic_cache_object: BaseCache | None = None, **kwargs: Any) -> Any:
        """LiteLLM's, which alone among its four does not tell the backend the arguments of the call."""
        return super().get_cache(self.backend.of_call(kwargs), **kwargs)


class Backend(BaseCache):
    """What `PgSemcache` plugs into LiteLLM. A value is LiteLLM's `{"timestamp", "response"}`.

    `kwargs` are the arguments of the call that is answered, and make the question; LiteLLM's key is not looked at.
    Without model and messages nothing is found and nothing is stored.
    """

    def __init__(
        self, client: CacheClient, namespace: str | None = None, arguments: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__()
        self.client = client
        self._namespace = namespace
        self._arguments = arguments or {}

    def of_call(self, arguments: Mapping[str, Any]) -> Backend:
        """The same for one call, whose arguments it knows already."""
        return Backend(self.client, self._namespace, arguments)

    def get_cache(self, key: str, **kwargs: Any) -> Any:
        with failing_open("A lookup"):
            question = self._question(kwargs)
            return _restored(self.client.search(question)) if question else None
        return None

    async def async_get_cache(self, key: str, **kwargs: Any) -> Any:
        with failing_open("A lookup"):
            question = self._question(kwargs)
            return _restored(await self.client.asearch(question)) if question else None
        return None

    def set_cache(self, key: str, value: Mapping[str, Any], **kwargs: Any) -> None:
        with failing_open("A store"):
            question, ttl = self._question(kwargs), kwargs.get("ttl")
            if question and _is_kept(value, ttl):
                self.client.store(question, dumps(value), ttl=ttl)

    async def async_set_cache(self, key: str, value: Mapping[str, Any], **kwargs: Any) -> None:
        with failing_open("A store"):
            question, ttl = self._question(kwargs), kwargs.get("ttl")
            if question and _is_kept(value, ttl):
                await self.client.astore(question, dumps(value), ttl=ttl)

    async def async_set_cache_pipeline(
        self, cache_list: Iterable[tuple[str, Mapping[str, Any]]], **kwargs: Any
    ) -> None:
        for key, value in cache_list:
            await self.async_set_cache(key, value, **kwargs)

    async def batch_cache_write(self, key: str, value: Mapping[str, Any], **kwargs: Any) -> None:
        await self.async_set_cache(key, value, **kwargs)

    def flush_cache(self) -> None:
        """Flush the whole cache, what others stored in it included. Raises httpx.HTTPError."""
        self.client.flush()

    async def disconnect(self) -> None:
        await self.client.aclose()

    async def test_connection(self) -> dict[str, str]:
        try:
            await self.client.astats()
        except Exception as error:  # told in the answer, as LiteLLM's own backends do
            return {"status": "failed", "message": "The cache does not answer", "error": type(error).__name__}
        return {"status": "success", "message": "The cache answers"}

    def _question(self, arguments: Mapping[str, Any]) -> Question | None:
        arguments = {**self._arguments, **arguments}
        if not arguments.get("model") or not arguments.get("messages"):
            return None
        metadata = _metadata(arguments)
        group = metadata.get("model_group")
        body = _sent(arguments)
        messages, model = body.pop("messages"), body.pop("model")
        told = {name: body.pop(name) for name in (_TELLING | _SERVER) & body.keys()}
        body |= body.pop("extra_body", None) or {}
        salt = {
            "format": _FORMAT,
            "told": {name: value for name, value in told.items() if value and not (group and name in _SERVER)},
            "tenant": {name: str(metadata[name]) for name in _TENANT if metadata.get(name) is not None},
            "namespace": (arguments.get("cache") or {}).get("namespace") or self._namespace,
            "cache_salt": body.pop("cache_salt", None),
        }
        scope = {own: body.pop(name) for name, own in _SCOPE_FIELDS.items() if name in body}
        return ask(
            [_without_nulls(message) for message in messages],
            scope={**scope, "model": group or model, "sampling": body},
            salt=salt,
        )


def _sent(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that make the answer, as JSON. Raises TypeError for what is not JSON and no pydantic model."""
    telling = _TELLING | _SERVER
    made = {
        name: value
        for name, value in arguments.items()
        if value is not None and (name in telling or not (name in _IGNORED or is_litellm_owned_kwarg(name)))
    }
    return dict(json.loads(json.dumps(made, default=_as_json)))


def _as_json(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump()
    if isinstance(value, type) and issubclass(value, BaseModel):
        return value.model_json_schema()
    raise TypeError(f"an argument holds a {type(value).__name__}, which is not JSON")


def _metadata(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What LiteLLM's Router and proxy note of the call."""
    return {**(arguments.get("metadata") or {}), **(arguments.get("litellm_metadata") or {})}


def _without_nulls(message: Mapping[str, Any]) -> Message:
    return {name: value for name, value in message.items() if value is not None}


def _restored(response: str | None) -> Any:
    return None if response is None else json.loads(response)


def _is_kept(value: Mapping[str, Any], ttl: float | None) -> bool:
    """Complete answers that may live at all."""
    if ttl is not None and ttl <= 0:
        return False
    choices = json.loads(value["response"])["choices"]
    return bool(choices) and all(choice["finish_reason"] in _COMPLETE for choice in choices)


__all__ = ["Backend", "PgSemcache"]
