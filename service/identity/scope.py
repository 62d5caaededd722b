"""What must match exactly before similarity may speak."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from service.identity.canonical import CANONICAL_VERSION, canonical_json, digest
from service.identity.model import ModelIdentity

PartName = Literal[
    "endpoint",
    "context",
    "system",
    "history",
    "last_turn",
    "layout",
    "tools",
    "format",
    "template",
    "user",
    "salt",
    "other",
]
PART_NAMES: tuple[PartName, ...] = get_args(PartName)


@dataclass(frozen=True, slots=True)
class Namespace:
    """The names of tenant and cache. They are in every key, so that nothing crosses them."""

    tenant: str
    cache: str


@dataclass(frozen=True, slots=True)
class Scope:
    """Everything of a request but the text of its last user message.

    `sampling` is the canonical JSON of the fields that change the output distribution. `parts` gives the
    SHA-256 (hexadecimal) of the canonical form of each of `PART_NAMES` that the request has: where two scopes
    differ, the parts say in what. `key` (32 bytes) covers the namespace, the model, sampling and parts.
    """

    model: ModelIdentity
    sampling: str
    parts: Mapping[str, str]
    key: bytes

    @property
    def sampling_key(self) -> bytes:
        """SHA-256 of the sampling config alone, 32 bytes."""
        return digest([CANONICAL_VERSION, "sampling", self.sampling])


def build_scope(
    namespace: Namespace, model: ModelIdentity, sampling: Mapping[str, Any], parts: Mapping[str, str]
) -> Scope:
    """The scope of these normalised sampling fields and digested parts."""
    config = canonical_json(sampling).decode()
    digests = dict(parts)
    key = digest([CANONICAL_VERSION, "scope", namespace.tenant, namespace.cache, model.key.hex(), config, digests])
    return Scope(model, config, digests, key)


__all__ = ["PART_NAMES", "Namespace", "PartName", "Scope", "build_scope"]
