"""The identity of a request: which stored answers may be right for it.

The functions for request bodies never fail: a body that has not the form of its API is passed by the cache
(`Tier.BYPASS`, reason `malformed`) and left to the model server to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from service.errors import SemcacheError
from service.identity.canonical import CANONICAL_VERSION, digest, hexdigest
from service.identity.conversation import WHOLE, Context, Dialogue, Spoken, Turn, layout, read_messages, semantic_text
from service.identity.fields import split
from service.identity.messages import malformed
from service.identity.model import ModelIdentity
from service.identity.sampling import is_sampled, normal_sampling
from service.identity.scope import Namespace, Scope, build_scope
from service.identity.tier import Reason, Tier, bypass_reason, exact_reason, response_bypass_reason

Endpoint = Literal["chat", "completion", "response", "embedding"]


@dataclass(frozen=True, slots=True)
class KeyPolicy:
    """What a cache's policy and its caller say about identity.

    share: who shares answers. trust_image_urls: whether URLs name their content. seed_chooses: a seed chooses among
    several answers kept for one prompt, so it is no part of the key. context: how much of the talk before the last
    user message must be the same. salt: names and values by which a caller keeps its requests apart from others.
    """

    share: Literal["tenant", "user"] = "tenant"
    trust_image_urls: bool = False
    seed_chooses: bool = False
    context: Context = WHOLE
    salt: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """What a request is.

    `text` is the text of the last user message, or its stand-alone form, with white space and Unicode normalised,
    None if there is none. `exact_key` (32 bytes) covers the scope, that message as sent and the talk before it. `tier`
    is the widest tier that the request may use, `reason` why it is not the semantic one. `sampled` says that the answer
    is a draw. `said`, `last` and `earlier` are those of Spoken. `dialogue` are roles and texts of the talk, where the
    stand-alone form counts. What no lookup needs is a property. A bypassed request's keys must not be looked up.
    """

    scope: Scope
    text: str | None
    exact_key: bytes
    tier: Tier
    reason: Reason | None
    sampled: bool
    namespace: Namespace
    said: str
    last: Turn | None = None
    earlier: Turn | None = None
    dialogue: Dialogue = ()

    @property
    def request_key(self) -> bytes:
        """As `exact_key`, but of the model only its name, so that it outlives a revision; 32 bytes."""
        scope, names = self.scope, (self.namespace.tenant, self.namespace.cache, self.scope.model.name)
        return digest([CANONICAL_VERSION, "request", *names, scope.sampling, dict(scope.parts), self.said])

    @property
    def turn(self) -> bytes | None:
        """This point of the conversation, whatever the model and sampling; 32 bytes."""
        return self.last.key(self.namespace) if self.last else None

    @property
    def conversation(self) -> bytes | None:
        """The `turn` of the request that came before it; None for a first one."""
        return self.earlier.key(self.namespace) if self.earlier else None


def identify_chat(
    body: Mapping[str, Any], *, namespace: Namespace, model: ModelIdentity, policy: KeyPolicy
) -> Identity:
    """The identity of a body of `/v1/chat/completions`."""
    return _lenient(_chat, "chat", body, namespace=namespace, model=model, policy=policy)


def identify_completion(
    body: Mapping[str, Any], *, namespace: Namespace, model: ModelIdentity, policy: KeyPolicy
) -> Identity:
    """The identity of a body of `/v1/completions`."""
    return _lenient(_completion, "completion", body, namespace=namespace, model=model, policy=policy)


def identify_response(
    body: Mapping[str, Any], *, namespace: Namespace, model: ModelIdentity, policy: KeyPolicy
) -> Identity:
    """The identity of a body of `/v1/responses`."""
    return _lenient(_response, "response", body, namespace=namespace, model=model, policy=policy)


def identify_embedding(
    body: Mapping[str, Any], *, namespace: Namespace, model: ModelIdentity, policy: KeyPolicy
) -> Identity:
    """The identity of a body of `/v1/embeddings`: exact only, and the same for floats as lists and in base64."""
    return _lenient(_embedding, "embedding", body, namespace=namespace, model=model, policy=policy)


def strict_chat(body: Mapping[str, Any], *, namespace: Namespace, model: ModelIdentity, policy: KeyPolicy) -> Identity:
    """As `identify_chat`, but raises SemcacheError (`invalid_data`) where that one would say `malformed`."""
    spoken, fields = _chat(body, policy)
    return _assemble("chat", body, spoken, fields, namespace=namespace, model=model, policy=policy)


# One stored vector gives both.
_SPELLINGS = (None, "float", "base64")

Reader = Callable[[Mapping[str, Any], KeyPolicy], tuple[Spoken, Collection[str]]]


def _lenient(
    read: Reader,
    endpoint: Endpoint,
    body: Mapping[str, Any],
    *,
    namespace: Namespace,
    model: ModelIdentity,
    policy: KeyPolicy,
) -> Identity:
    try:
        spoken, fields = read(body, policy)
        return _assemble(endpoint, body, spoken, fields, namespace=namespace, model=model, policy=policy)
    except SemcacheError:
        scope = build_scope(namespace, model, {}, {"endpoint": hexdigest(endpoint)})
        return Identity(scope, None, scope.key, Tier.BYPASS, Reason.MALFORMED, True, namespace, hexdigest(None))


def _chat(body: Mapping[str, Any], policy: KeyPolicy) -> tuple[Spoken, Collection[str]]:
    _require_object(body)
    messages = body.get("messages")
    return read_messages(messages, trust_urls=policy.trust_image_urls, context=policy.context), ("messages",)


def _completion(body: Mapping[str, Any], _: KeyPolicy) -> tuple[Spoken, Collection[str]]:
    _require_object(body)
    prompt = body.get("prompt")
    text = _only_text(prompt)
    if text is not None:
        parts: dict[str, str] = {"last_turn": hexdigest("list")} if isinstance(prompt, list) else {}
        normal = semantic_text(text)
        spoken = Spoken(hexdigest(prompt), normal, None if normal else Reason.NO_TEXT, parts=parts | layout(text))
    elif isinstance(prompt, list) and prompt:
        texts = all(isinstance(item, str) for item in prompt)
        spoken = Spoken(hexdigest(prompt), None, Reason.SEVERAL_PROMPTS if texts else Reason.TOKEN_PROMPT)
    elif prompt is None and body.get("prompt_embeds") is not None:
        spoken = Spoken(hexdigest(None), None)
    else:
        raise malformed("A prompt", "must be a text, a list of texts, or tokens")
    return spoken, ("prompt",)


def _response(body: Mapping[str, Any], policy: KeyPolicy) -> tuple[Spoken, Collection[str]]:
    _require_object(body)
    said, instructions = body.get("input"), body.get("instructions")
    spoken = read_messages(
        [{"role": "user", "content": said}] if isinstance(said, str) else said,
        trust_urls=policy.trust_image_urls,
        instructions=() if instructions is None else ({"instructions": instructions},),
        context=policy.context,
    )
    if isinstance(said, str):
        spoken = replace(spoken, parts={**spoken.parts, "last_turn": hexdigest("text")})
    return spoken, ("input", "instructions")


def _embedding(body: Mapping[str, Any], policy: KeyPolicy) -> tuple[Spoken, Collection[str]]:
    _require_object(body)
    spelling = ("encoding_format",) if body.get("encoding_format") in _SPELLINGS else ()
    if body.get("messages") is not None:
        talk = read_messages(body["messages"], trust_urls=policy.trust_image_urls)
        parts = {**talk.parts, "last_turn": hexdigest(["messages", talk.parts.get("last_turn")])}
        return Spoken(talk.said, None, Reason.EMBEDDING, talk.bypass, parts), ("messages", *spelling)
    if body.get("input") is None:
        raise malformed("An embedding request", "must have an input")
    return Spoken(hexdigest(body["input"]), None, Reason.EMBEDDING), ("input", *spelling)


def _assemble(
    endpoint: Endpoint,
    body: Mapping[str, Any],
    spoken: Spoken,
    fields: Collection[str],
    *,
    namespace: Namespace,
    model: ModelIdentity,
    policy: KeyPolicy,
) -> Identity:
    sampling, rest = split(body, spoken=fields, model=model.name, by_user=policy.share == "user")
    if policy.seed_chooses:
        sampling.pop("seed", None)
    if policy.salt:
        rest["salt"] = rest.get("salt", {}) | dict(policy.salt)
    parts: dict[str, str] = {"endpoint": hexdigest(endpoint), **spoken.parts}
    for name, members in rest.items():
        parts[name] = hexdigest(members)
    scope = build_scope(namespace, model, normal_sampling(sampling), parts)
    tier, reason = _tier(endpoint, body, spoken)
    return Identity(
        scope=scope,
        text=spoken.text,
        exact_key=digest([CANONICAL_VERSION, "exact", scope.key.hex(), spoken.said]),
        tier=tier,
        reason=reason,
        sampled=endpoint != "embedding" and is_sampled(sampling),
        namespace=namespace,
        said=spoken.said,
        last=spoken.last,
        earlier=spoken.earlier,
        dialogue=spoken.dialogue,
    )


def _tier(endpoint: Endpoint, body: Mapping[str, Any], spoken: Spoken) -> tuple[Tier, Reason | None]:
    bypass = bypass_reason(body) or spoken.bypass
    if endpoint == "response":
        bypass = bypass or response_bypass_reason(body)
    if bypass:
        return Tier.BYPASS, bypass
    exact = spoken.exact or exact_reason(body)
    return (Tier.EXACT, exact) if exact else (Tier.SEMANTIC, None)


def _require_object(body: Any) -> None:
    if not isinstance(body, Mapping):
        raise malformed("The body", "must be a JSON object")


def _only_text(prompt: Any) -> str | None:
    item = prompt[0] if isinstance(prompt, list) and len(prompt) == 1 else prompt
    return item if isinstance(item, str) else None


__all__ = [
    "Context",
    "Identity",
    "KeyPolicy",
    "Namespace",
    "Reason",
    "Scope",
    "Tier",
    "identify_chat",
    "identify_completion",
    "identify_embedding",
    "identify_response",
    "strict_chat",
]
