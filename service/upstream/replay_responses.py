"""The typed events of a stored answer of the Responses API, in the order of OpenAI and vLLM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_Event = tuple[str, dict[str, Any]]


def response_events(body: dict[str, Any], piece: int) -> Iterator[dict[str, Any]]:
    """The events from `response.created` to `response.completed`, numbered from 0; deltas of `piece`
    characters.
    """
    for number, (kind, data) in enumerate(_events(body, piece)):
        yield {"type": f"response.{kind}", "sequence_number": number} | data


def _events(body: dict[str, Any], piece: int) -> Iterator[_Event]:
    later = {name: None for name in ("usage", "completed_at") if name in body}
    begun = {"response": body | {"status": "in_progress", "output": []} | later}
    yield "created", begun
    yield "in_progress", begun
    for index, item in enumerate(body["output"]):
        where = {"output_index": index}
        yield "output_item.added", where | {"item": _opening(item)}
        for kind, data in _item_events(item, piece):
            yield kind, {"item_id": item.get("id") or ""} | where | data
        yield "output_item.done", where | {"item": item}
    yield "completed", {"response": body}


def _opening(item: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {"content": [], "summary": [], "arguments": "", "input": ""}
    opened = {name: value for name, value in empty.items() if item.get(name) is not None}
    return item | opened | ({"status": "in_progress"} if item.get("status") else {})


def _item_events(item: dict[str, Any], piece: int) -> Iterator[_Event]:
    if item.get("type") == "function_call":
        yield from _growing("function_call_arguments", {}, "arguments", item.get("arguments") or "", piece)
    elif item.get("type") == "custom_tool_call":
        yield from _growing("custom_tool_call_input", {}, "input", item.get("input") or "", piece)
    for index, part in enumerate(item.get("summary") or ()):
        at = {"summary_index": index}
        yield "reasoning_summary_part.added", at | {"part": part | {"text": ""}}
        yield from _growing("reasoning_summary_text", at, "text", part.get("text") or "", piece)
        yield "reasoning_summary_part.done", at | {"part": part}
    for index, part in enumerate(item.get("content") or ()):
        yield from _part_events(part, {"content_index": index}, piece)


def _part_events(part: dict[str, Any], at: dict[str, Any], piece: int) -> Iterator[_Event]:
    kind = part.get("type") or "output_text"
    name = "refusal" if kind == "refusal" else "text"
    begun: dict[str, Any] = {name: ""}
    begun |= {listed: [] for listed in ("annotations", "logprobs") if part.get(listed) is not None}
    yield "content_part.added", at | {"part": part | begun}
    # One delta carries all log probabilities: cut texts would need them cut at the same tokens.
    probs = part.get("logprobs") or []
    extra = {"logprobs": probs} if kind == "output_text" else {}
    size = len(part.get(name) or "") if probs else piece
    yield from _growing(kind, at | extra, name, part.get(name) or "", size)
    for index, annotation in enumerate(part.get("annotations") or ()):
        yield "output_text.annotation.added", at | {"annotation_index": index, "annotation": annotation}
    yield "content_part.done", at | {"part": part}


def _growing(kind: str, at: dict[str, Any], name: str, text: str, piece: int) -> Iterator[_Event]:
    for start in range(0, len(text), piece or 1):
        yield f"{kind}.delta", at | {"delta": text[start : start + piece]}
    yield f"{kind}.done", at | {name: text}


__all__ = ["response_events"]
