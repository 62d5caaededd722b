"""A served model as an identity."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from service.identity.canonical import CANONICAL_VERSION, digest


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """What an operator declares of a served model. Answers are shared only where all of it agrees.

    `tokenizer` and `chat_template` are hashes or release names of these; None is "not declared" and differs
    from every declared value. `key` is the SHA-256 of the canonical form.
    """

    name: str
    revision: str | None = None
    tokenizer: str | None = None
    chat_template: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    kv_cache_dtype: str | None = None
    engine_version: str | None = None
    key: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        declared = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        object.__setattr__(self, "key", digest([CANONICAL_VERSION, "model", declared]))


MODEL_FIELDS = tuple(field.name for field in fields(ModelIdentity) if field.init)

__all__ = ["MODEL_FIELDS", "ModelIdentity"]
