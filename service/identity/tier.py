"""Which tier a request may use, by the fields of its body, and why no wider one."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class Tier(StrEnum):
    """The widest tier that a request may use."""

    SEMANTIC = "semantic"
    EXACT = "exact"
    BYPASS = "bypass"


class Reason(StrEnum):
    """Why a request may not use the semantic tier."""

    MALFORMED = "malformed"
    KV_TRANSFER_PARAMS = "kv_transfer_params"
    EC_TRANSFER_PARAMS = "ec_transfer_params"
    PROMPT_EMBEDS = "prompt_embeds"
    PREVIOUS_RESPONSE_ID = "previous_response_id"
    SERVER_SIDE_STATE = "server_side_state"
    SERVER_TOOLS = "server_tools"
    IMAGE_BY_URL = "image_by_url"
    MEDIA_BY_URL = "media_by_url"

    EMBEDDING = "embedding"
    TOOL_RESULT_LAST = "tool_result_last"
    LAST_TURN_NOT_USER = "last_turn_not_user"
    NON_TEXT_LAST_TURN = "non_text_last_turn"
    NO_TEXT = "no_text"
    NOT_REWRITTEN = "not_rewritten"
    TOKEN_PROMPT = "token_prompt"  # noqa: S105 - a word for tokens of text, no secret
    SEVERAL_PROMPTS = "several_prompts"
    SEVERAL_CHOICES = "several_choices"
    LOGPROBS = "logprobs"
    PROMPT_LOGPROBS = "prompt_logprobs"
    ECHO = "echo"
    RETURN_EXTRAS = "return_extras"
    BEAM_SEARCH = "beam_search"


_BYPASSING = {
    "kv_transfer_params": Reason.KV_TRANSFER_PARAMS,
    "ec_transfer_params": Reason.EC_TRANSFER_PARAMS,
    "prompt_embeds": Reason.PROMPT_EMBEDS,
    "previous_response_id": Reason.PREVIOUS_RESPONSE_ID,
}
_OWN_TOOLS = ("function", "custom")


def bypass_reason(body: Mapping[str, Any]) -> Reason | None:
    """Why these fields forbid the cache: they may replace the prompt, or name what only the server holds."""
    return next((reason for name, reason in _BYPASSING.items() if body.get(name) is not None), None)


def response_bypass_reason(body: Mapping[str, Any]) -> Reason | None:
    """The same for the fields that only the Responses API has. An answer whose caller asks to `store` it must
    exist on the server, or a later `previous_response_id` would fail."""
    if body.get("background") or body.get("store") is True:
        return Reason.SERVER_SIDE_STATE
    if body.get("conversation") is not None or body.get("prompt") is not None:
        return Reason.SERVER_SIDE_STATE
    tools = body.get("tools")
    if isinstance(tools, list) and not all(isinstance(tool, dict) and tool.get("type") in _OWN_TOOLS for tool in tools):
        return Reason.SERVER_TOOLS
    return None


def exact_reason(body: Mapping[str, Any]) -> Reason | None:
    """Why these fields allow exact hits only: the answer holds more than one text, or repeats the prompt."""
    asked = {
        Reason.SEVERAL_CHOICES: body.get("n") not in (None, 1),
        Reason.LOGPROBS: _asks_logprobs(body),
        Reason.PROMPT_LOGPROBS: _is_asked(body.get("prompt_logprobs")),
        Reason.ECHO: bool(body.get("echo")),
        Reason.BEAM_SEARCH: bool(body.get("use_beam_search")),
        Reason.RETURN_EXTRAS: _asks_extras(body),
    }
    return next((reason for reason, yes in asked.items() if yes), None)


def _asks_logprobs(body: Mapping[str, Any]) -> bool:
    include = body.get("include")
    included = isinstance(include, list) and any(isinstance(i, str) and "logprobs" in i for i in include)
    return included or _is_asked(body.get("logprobs")) or bool(body.get("top_logprobs"))


def _asks_extras(body: Mapping[str, Any]) -> bool:
    named = _is_asked(body.get("logprob_token_ids")) or _is_asked(body.get("routed_experts_prompt_start"))
    return named or any(value and name.startswith("return_") for name, value in body.items())


def _is_asked(value: Any) -> bool:
    """0 logprobs are asked for: those of the chosen token alone."""
    return value is not None and value is not False


__all__ = ["Reason", "Tier", "bypass_reason", "exact_reason", "response_bypass_reason"]
