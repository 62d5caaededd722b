"""Messages in their normal form: generated ids renumbered, media replaced by the hash of their bytes."""

from __future__ import annotations

import binascii
import hashlib
from typing import Any

from service.errors import Code, SemcacheError
from service.identity.tier import Reason

TEXT_PARTS = ("text", "input_text")
_VERBATIM_PARTS = (*TEXT_PARTS, "output_text", "refusal", "thinking", "reasoning_text", "summary_text")
_URL_FIELDS = ("url", "image_url", "video_url", "audio_url", "file_url")
_BASE64_FIELDS = ("data", "file_data")
_CALL_ID_FIELDS = ("tool_call_id", "call_id")


def malformed(what: str, rule: str) -> SemcacheError:
    """The error for a body that has not the form of its API."""
    return SemcacheError(Code.INVALID_DATA, f"{what} {rule}.")


class MessageReader:
    """Reads the messages of one request in order. `bypass` is why they forbid the cache, if they do.

    Two lists of messages that differ only in a one-to-one renaming of call ids, in the messages' own ids, or in members
    that are null or absent, read the same. Messages that have not the form of the API raise SemcacheError.
    """

    def __init__(self, *, trust_urls: bool) -> None:
        self.bypass: Reason | None = None
        self._trust_urls = trust_urls
        self._numbers: dict[str, int] = {}

    def read(self, message: Any) -> dict[str, Any]:
        """One chat message, or one input item of the Responses API."""
        if not isinstance(message, dict) or not isinstance(message.get("role", message.get("type")), str):
            raise malformed("A message", "must be an object with a role")
        content = message.get("content")
        if len(message) == 2 and isinstance(content, str):
            return message
        normal = {name: value for name, value in message.items() if name != "id" and value is not None}
        for name in _CALL_ID_FIELDS:
            if name in normal:
                normal[name] = self._number(normal[name])
        if "role" in message:
            normal["content"] = None if content is None else self._content(content)
        elif content is not None:
            normal["content"] = self._content(content)
        if message.get("tool_calls") is not None:
            normal["tool_calls"] = self._calls(message["tool_calls"])
        if "role" not in message:
            self._read_item(normal)
        return normal

    def _read_item(self, item: dict[str, Any]) -> None:
        opaque = item["type"] == "reasoning" and not item.get("content") and not item.get("encrypted_content")
        if item["type"] == "item_reference" or opaque:
            self.bypass = Reason.SERVER_SIDE_STATE
        if isinstance(item.get("output"), list):
            item["output"] = [self._part(part) for part in item["output"]]
        elif isinstance(item.get("output"), dict):
            item["output"] = self._part(item["output"])

    def _calls(self, calls: Any) -> list[dict[str, Any]]:
        if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
            raise malformed("The tool_calls of a message", "must be a list of objects")
        return [call | {"id": self._number(call["id"])} if "id" in call else call for call in calls]

    def _number(self, call_id: Any) -> int | None:
        if call_id is None:
            return None
        if not isinstance(call_id, str):
            raise malformed("A tool call's id", "must be a string")
        return self._numbers.setdefault(call_id, len(self._numbers))

    def _content(self, content: Any) -> Any:
        if isinstance(content, str):
            return content
        if not isinstance(content, list):
            raise malformed("The content of a message", "must be text or a list of parts")
        return [self._part(part) for part in content]

    def _part(self, part: Any) -> Any:
        if isinstance(part, str):
            return part
        if not isinstance(part, dict):
            raise malformed("A part of a message", "must be text or an object")
        kind = part.get("type")
        if kind in TEXT_PARTS and not isinstance(part.get("text"), str):
            raise malformed("A text part", "must hold a text")
        if kind in _VERBATIM_PARTS:
            return part
        if isinstance(kind, str) and kind in part and part[kind] is None:
            # vLLM finds such media in its own cache, by their uuid.
            self.bypass = Reason.SERVER_SIDE_STATE
        return {name: self._member(name, value) for name, value in part.items()}

    def _member(self, name: str, value: Any) -> Any:
        """A field of a media part, or its object of fields (`image_url: {url, detail}`)."""
        if not isinstance(value, dict):
            return self._media(name, name, value)
        return {inner: self._media(name, inner, item) for inner, item in value.items()}

    def _media(self, outer: str, name: str, value: Any) -> Any:
        if name == "file_id" and value is not None:
            self.bypass = Reason.SERVER_SIDE_STATE
        if not isinstance(value, str):
            return value
        if name in _BASE64_FIELDS:
            return _bytes_of(value) or value
        if name in _URL_FIELDS:
            if value[:5].lower() == "data:":
                return _bytes_of(value) or value
            if not self._trust_urls:
                self.bypass = Reason.IMAGE_BY_URL if "image" in outer else Reason.MEDIA_BY_URL
        return value


def _bytes_of(text: str) -> dict[str, str] | None:
    """The hash of what a base64 text or data URL holds; None where it is neither, and its letters count."""
    head, comma, payload = text.rpartition(",")
    if comma and not (head[:5].lower() == "data:" and head[-7:].lower() == ";base64"):
        return None
    try:
        data = binascii.a2b_base64(payload, strict_mode=True)
    except ValueError:
        return None
    return {"media": head[5:-7], "sha256": hashlib.sha256(data).hexdigest()}


__all__ = ["TEXT_PARTS", "MessageReader", "malformed"]
