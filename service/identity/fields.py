"""Which part of the identity each field of a request body belongs to.

The names are those of the OpenAI API and of vLLM 0.32. A field that is not here is part of the key under
`other` too, since an engine may obey it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from service.identity.scope import PartName

Group = PartName | Literal["sampling", "stripped"]

_FIELDS: Mapping[Group, str] = {
    "stripped": """
        stream stream_options stream_interval request_id session_id priority metadata store service_tier
        prompt_cache_key cache skip_cache cache_similarity_threshold""",
    "sampling": """
        temperature top_p top_k min_p presence_penalty frequency_penalty repetition_penalty seed logit_bias
        allowed_token_ids bad_words vllm_xargs max_tokens max_completion_tokens max_output_tokens min_tokens
        ignore_eos stop stop_token_ids include_stop_str_in_output use_beam_search length_penalty best_of n
        thinking_token_budget skip_special_tokens spaces_between_special_tokens repetition_detection
        watermarking include_reasoning echo logprobs top_logprobs prompt_logprobs logprob_token_ids
        return_token_ids return_tokens_as_token_ids return_prompt_text routed_experts_prompt_start""",
    "tools": "tools tool_choice parallel_tool_calls max_tool_calls functions function_call",
    "format": "response_format structured_outputs text encoding_format embed_dtype endianness",
    "template": """
        chat_template chat_template_kwargs add_generation_prompt continue_final_message add_special_tokens
        documents truncate_prompt_tokens truncation_side truncation mm_processor_kwargs media_io_kwargs
        reasoning_effort reasoning suffix""",
    "user": "user safety_identifier",
    "salt": "cache_salt",
    "other": """
        audio background conversation dimensions include modalities prediction previous_response_id prompt
        verbosity web_search_options""",
}
STRIPPED = frozenset(_FIELDS["stripped"].split())
"""Fields that change no answer: they are no part of any key."""
_GROUP_OF: Mapping[str, Group] = {name: group for group, names in _FIELDS.items() for name in names.split()}


def split(
    body: Mapping[str, Any], *, spoken: Collection[str], model: str, by_user: bool
) -> tuple[dict[str, Any], dict[PartName, dict[str, Any]]]:
    """The sampling fields of a body, and its other fields by part, without the `spoken` ones (messages).

    `null` equals absent, but for unknown fields, and for `tool_choice` where there are tools: vLLM then chooses
    otherwise than without it. `model` is the name that the model's identity covers; a body that says another one is
    kept apart. Users count if `by_user`.
    """
    sampling: dict[str, Any] = {}
    parts: dict[PartName, dict[str, Any]] = {}
    for name, value in body.items():
        if name in spoken:
            continue
        group = _GROUP_OF.get(name, "other")
        if value is None and name in _GROUP_OF and not (name == "tool_choice" and body.get("tools")):
            continue
        if group == "stripped" or (name == "model" and value in (None, "", model)):
            continue
        if group == "sampling":
            sampling[name] = value
        elif group != "user" or by_user:
            parts.setdefault(group, {})[name] = value
    return sampling, parts


__all__ = ["STRIPPED", "split"]
