"""A client of a real vLLM cannot tell a stored answer from a new one, as body or as stream."""

from __future__ import annotations

from typing import Any

import pytest
from calls import Cache
from openai import AsyncOpenAI, OpenAI
from running import Service

from tests.vllm.said import Said, ask_chat
from tests.vllm.server import MODEL

TALK = [{"role": "user", "content": "When does the ferry leave?"}]
TIDE = {
    "type": "function",
    "function": {
        "name": "tide",
        "description": "Look up a tide",
        "parameters": {"type": "object", "properties": {"port": {"enum": ["Ostend", "Dover"]}}, "required": ["port"]},
    },
}
TURNS = [
    {"role": "user", "content": "Look it up."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "tide", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "high at noon"},
]

REQUESTS: dict[str, dict[str, Any]] = {
    "sampled": {"seed": 3},
    "greedy": {"temperature": 0, "structured_outputs": {"choice": ["at noon", "at dusk"]}},
    "regex": {"seed": 1, "structured_outputs": {"regex": "(noon|dusk) [0-9]{4}"}},
    "named tool": {"seed": 1, "tools": [TIDE], "tool_choice": {"type": "function", "function": {"name": "tide"}}},
    "required tool": {"seed": 1, "tools": [TIDE], "tool_choice": "required"},
    "reasoning": {"seed": 1, "chat_template_kwargs": {"thinking": True}},
    "several": {"seed": 3, "n": 3},
    "logprobs": {"seed": 3, "logprobs": True, "top_logprobs": 2},
    "tool result": {"seed": 3, "messages": TURNS},
}


async def ask(client: AsyncOpenAI, fields: dict[str, Any], *, stream: bool) -> Said:
    return await ask_chat(client, **({"messages": TALK} | fields), stream=stream)


@pytest.mark.parametrize("first", ["body", "stream"])
@pytest.mark.parametrize("kind", REQUESTS)
async def test_chat_is_the_same_however_it_comes(
    direct: AsyncOpenAI, cached: AsyncOpenAI, kind: str, first: str
) -> None:
    fields, stream = REQUESTS[kind], first == "stream"
    new = await ask(direct, fields, stream=stream)
    missed = await ask(cached, fields, stream=stream)
    other = await ask(cached, fields, stream=not stream)
    again = await ask(cached, fields, stream=stream)
    assert [said.cache for said in (new, missed, other, again)] == [None, "MISS", "HIT", "HIT"]
    assert new == missed == other == again
    assert other.headers["x-cache-entry-id"] == again.headers["x-cache-entry-id"]
    assert len({said.id for said in (new, missed, other, again)}) == 4
