"""A cache for LangChain: `set_llm_cache(PgSemcache("http://127.0.0.1:8080"))`, or a model's `cache=`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.caches import BaseCache
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
from langchain_core.outputs import ChatGeneration, Generation

from service.clients.http import CacheClient, failing_open
from service.clients.question import Message, Question, ask, digest
from service.json_text import dumps

# Entries hold generations, not plain answers: nobody else may find them, nor an adapter of another format.
_FORMAT = "langchain-1"

_ROLES = {"human": "user", "ai": "assistant", "HumanMessageChunk": "user", "AIMessageChunk": "assistant"}
_NOT_SAID = {"id", "type", "role", "response_metadata", "usage_metadata"}
_COMPLETE = {"stop", "end_turn", "stop_sequence", "tool_calls", "tool_use", "function_call"}
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")


class PgSemcache(BaseCache):
    """Answers of chat models and LLMs, found by the last human message in another wording too.

    All before that message (system prompt, earlier turns, tool calls) must be the same, and so must the model with
    all its parameters, which is LangChain's `llm_string`. Where the last message is a tool's result or more than
    text, only the same conversation hits. Incomplete answers (`length`, `content_filter`) are not stored. A failing
    cache is logged and never breaks a call; only `clear` raises, httpx.HTTPError.

    LangChain asks a cache in `invoke`, `generate`, `batch` and their async twins: `stream` neither reads nor writes.

    Arguments are those of CacheClient. ttl: seconds; None leaves it to the cache's policy.
    """

    def __init__(
        self,
        base_url: str,
        cache: str = "default",
        *,
        api_key: str | None = None,
        threshold: float | None = None,
        ttl: float | None = None,
        timeout: float = 1.0,
    ) -> None:
        self.client = CacheClient(base_url, cache, api_key=api_key, threshold=threshold, timeout=timeout)
        self._ttl = ttl

    def lookup(self, prompt: str, llm_string: str) -> list[Generation] | None:
        with failing_open("A lookup"):
            return _restored(self.client.search(_question(prompt, llm_string)))
        return None

    async def alookup(self, prompt: str, llm_string: str) -> list[Generation] | None:
        with failing_open("A lookup"):
            return _restored(await self.client.asearch(_question(prompt, llm_string)))
        return None

    def update(self, prompt: str, llm_string: str, return_val: Sequence[Generation]) -> None:
        with failing_open("A store"):
            if _are_complete(return_val):
                self.client.store(_question(prompt, llm_string), _dumped(return_val), ttl=self._ttl)

    async def aupdate(self, prompt: str, llm_string: str, return_val: Sequence[Generation]) -> None:
        with failing_open("A store"):
            if _are_complete(return_val):
                await self.client.astore(_question(prompt, llm_string), _dumped(return_val), ttl=self._ttl)

    def clear(self, **kwargs: Any) -> None:
        """Flush the whole cache, what others stored in it included."""
        self.client.flush()

    async def aclear(self, **kwargs: Any) -> None:
        """Flush the whole cache, what others stored in it included."""
        await self.client.aflush()


def _question(prompt: str, llm_string: str) -> Question:
    if _ADDRESS.search(llm_string):
        raise TypeError("the model's parameters hold an object that only its address names")
    return ask(_messages(prompt), scope=_named(llm_string), salt=[_FORMAT, digest(llm_string)])


def _messages(prompt: str) -> list[Message]:
    """A chat model's prompt is its dumped messages, an LLM's a text."""
    try:
        items = json.loads(prompt)
    except ValueError:
        items = None
    if not (isinstance(items, list) and items and all(isinstance(item, dict) and "lc" in item for item in items)):
        return [{"role": "user", "content": prompt}]
    json.loads(prompt, object_hook=_refuse_undumped)
    return [_message(item["kwargs"]) for item in items]


def _refuse_undumped(item: dict[str, Any]) -> None:
    if item.get("lc") and item.get("type") == "not_implemented":
        raise TypeError("the messages hold what LangChain cannot serialize")


def _message(said: dict[str, Any]) -> Message:
    kind = str(said["type"])
    rest = {name: value for name, value in said.items() if value and name not in _NOT_SAID}
    return {"content": "", **rest, "role": said.get("role") or _ROLES.get(kind, kind)}


def _named(llm_string: str) -> dict[str, Any]:
    """Model and temperature, where LangChain's serialized model names them; all of it is in the salt anyway."""
    try:
        serialized, _ = json.JSONDecoder().raw_decode(llm_string)
        options = serialized["kwargs"]
    except (ValueError, TypeError, KeyError):
        return {}
    model, temperature = options.get("model_name") or options.get("model"), options.get("temperature")
    sampling = {} if temperature is None else {"sampling": {"temperature": temperature}}
    return sampling | ({"model": model} if isinstance(model, str) else {})


def _dumped(generations: Sequence[Generation]) -> str:
    return dumps([_dumped_one(generation) for generation in generations])


def _dumped_one(generation: Generation) -> dict[str, Any]:
    if not isinstance(generation, ChatGeneration):
        return {"text": generation.text, "info": generation.generation_info}
    # A message's id names one run; two messages of one id overwrite each other in LangGraph's state.
    message = generation.message.model_copy(update={"id": None})
    return {"message": message_to_dict(message), "info": generation.generation_info}


def _restored(response: str | None) -> list[Generation] | None:
    return None if response is None else [_restored_one(stored) for stored in json.loads(response)]


def _restored_one(stored: dict[str, Any]) -> Generation:
    if "message" not in stored:
        return Generation(text=stored["text"], generation_info=stored["info"])
    message: BaseMessage
    (message,) = messages_from_dict([stored["message"]])
    return ChatGeneration(message=message, generation_info=stored["info"])


def _are_complete(generations: Sequence[Generation]) -> bool:
    return bool(generations) and all(map(_is_complete, generations))


def _is_complete(generation: Generation) -> bool:
    said = generation.message.response_metadata if isinstance(generation, ChatGeneration) else {}
    told = {**said, **(generation.generation_info or {})}
    reason = told.get("finish_reason") or told.get("stop_reason")
    return reason is None or str(reason).lower() in _COMPLETE


__all__ = ["PgSemcache"]
