"""What the operator of a cache decides: shown back whole, with its defaults."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from service.errors import Code, SemcacheError
from service.identity.request import Context, KeyPolicy
from service.policy.boundary import Budget
from service.policy.decision import FLOOR, Policy

DEFAULT_THRESHOLD = 0.95
MAX_TTL_MS = 31_556_952_000  # a year, as in LangCache's API
DAY_MS = 86_400_000
MOST_VARIANTS = 20
MOST_KEPT = 2**53  # exact in JSON, and well within a bigint of Postgres
LONGEST_STALE_MS = 3_600_000  # dead entries are removed an hour after their end

_VARIANTS = re.compile(r"variants\(([0-9]{1,2})\)")
_LAST_TURNS = re.compile(r"last_turns\(([1-9])\)")


def unit_interval(value: Any) -> Any:
    """A similarity or threshold: a number from 0 to 1, both ends included."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError("must be a number from 0 to 1")
    return value


def lifetime(value: Any) -> Any:
    """Milliseconds; an entry that is expired from the start is refused."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_TTL_MS:
        raise ValueError(f"must be 1 to {MAX_TTL_MS} milliseconds; 0 would mean that it is expired already")
    return value


def _share(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
        raise ValueError("must be a number between 0 and 1")
    return value


def _sampled(value: str) -> str:
    found = _VARIANTS.fullmatch(value)
    if value in ("never", "exact", "semantic") or (found and 1 <= int(found[1]) <= MOST_VARIANTS):
        return value
    raise ValueError(f"must be never, exact, semantic, or variants(k) with k from 1 to {MOST_VARIANTS}")


def _context(value: str) -> str:
    if value in ("conversation", "rewritten") or _LAST_TURNS.fullmatch(value):
        return value
    raise ValueError("must be conversation, rewritten, or last_turns(k) with k from 1 to 9")


Ttl = Annotated[int, BeforeValidator(lifetime)]
Similarity = Annotated[float, BeforeValidator(unit_interval)]
Rate = Similarity
Compare = Literal["equality", "embedding", "judge"]


class CachePolicy(BaseModel):
    """The policy of one cache. Names on the wire are camelCase."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    decision: Policy = Field(
        "threshold",
        description="how a near entry is judged: threshold (by its similarity), calibrated (by the probability that it "
        "is right, so that the budget is kept) or verified (by what was seen of the entry)",
    )
    similarity_threshold: Similarity = Field(
        DEFAULT_THRESHOLD,
        description="least cosine similarity of a semantic hit, for the decision threshold; callers may only raise "
        f"it, and whatever it is nothing below {FLOOR} is served",
    )
    budget: Budget = Field(Budget(), description="most false hits, for the decision calibrated")
    wrong_per_request: Annotated[float, BeforeValidator(_share)] = Field(
        0.01,
        description="most wrong answers per request, for the decision verified: another promise than the budget, since "
        "requests that ask the model count as right",
    )
    pooled: bool = Field(
        False, description="whether the decision verified learns from all entries together or from each alone"
    )
    guards: bool = Field(
        True,
        description="whether differences that vectors do not see (numbers, names, negation, …) keep an entry back, for "
        "the decision threshold; the others never go without",
    )
    neighbours: int = Field(4, ge=1, le=64, description="how many near entries are looked at")
    second_stage: Literal["none", "cross_encoder", "judge"] = Field(
        "none", description="who looks at a near entry in doubt before it is a miss"
    )
    doubt_threshold: Similarity = Field(
        0.85, description="least cosine similarity of an entry in doubt; nearer ones that no guard blocks are looked at"
    )
    second_stage_threshold: Similarity = Field(
        0.9, description="least probability from the cross-encoder of an entry that it accepts"
    )
    judge_doubts: bool = Field(
        False,
        description="let the judge look in the background at entries in doubt of searches that missed: a request for "
        "which it finds one right is an exact hit from then on",
    )
    compare: Compare = Field(
        "embedding",
        description="how a stored and a fresh answer are found to say the same: by their normalised words, or else by "
        "their vectors and guards, or else by the judge",
    )
    observation_rate: Rate = Field(
        1.0, description="share of misses whose fresh answer is compared with the near stored ones"
    )
    exploration_rate: Rate = Field(
        0.0,
        description="share of semantic hits that the model is asked for instead, to compare both answers; 0.02 to 0.05 "
        "lets a calibrated cache see what it serves",
    )
    audit_rate: Rate = Field(
        0.0,
        description="share of hits that the model is asked for again in the background, to find wrong and old answers",
    )
    mode: Literal["exact", "semantic", "off"] = Field("semantic", description="the widest tier that is tried")
    ttl_millis: Ttl | None = Field(None, description="lifetime of an entry that names none; null: for ever")
    max_ttl_millis: Ttl | None = Field(None, description="longest lifetime; longer ones are cut to it")
    min_ttl_millis: Ttl = Field(300_000, description="shortest lifetime that adaptiveTtl comes to")
    adaptive_ttl: Literal["off", "recheck", "hit_rate"] = Field(
        "off",
        description="whether lifetimes that nobody asked for adapt, from ttlMillis or minTtlMillis on, up to "
        "maxTtlMillis or a day: recheck lengthens those of answers that the model gives again, and shortens others; "
        "hit_rate lengthens those of what is served often",
    )
    sampled: Annotated[str, AfterValidator(_sampled)] = Field(
        "semantic",
        description="what requests with a temperature above 0, or none, get: never a stored answer, an exact or a "
        "semantic one, or variants(k): one of k answers kept for each prompt, chosen by seed or user",
    )
    context: Annotated[str, AfterValidator(_context)] = Field(
        "conversation",
        description="how much of the talk before the last user message must be the same for a semantic hit: all of the "
        "conversation, the last_turns(k) with that message counted, or none, where it is rewritten to stand alone",
    )
    share: Literal["tenant", "user"] = Field("tenant", description="whether users share answers")
    client_answers: bool = Field(True, description="whether the proxy serves answers that clients stored")
    trust_image_urls: bool = Field(False, description="whether a URL of an image stands for its content")
    shadow: bool = Field(False, description="decide and record, but always ask the model")
    stale_while_revalidate_millis: Annotated[int, Field(ge=0, le=LONGEST_STALE_MS)] = Field(
        0,
        description="how long after its end an answer is still given to the same request, while the model is asked "
        "in the background",
    )
    stale_if_error_millis: Annotated[int, Field(ge=0, le=LONGEST_STALE_MS)] = Field(
        0, description="how long after its end an answer may stand in for a model that fails"
    )
    max_entries: Annotated[int, Field(ge=1, le=MOST_KEPT)] | None = Field(
        None, description="most entries, beyond which the worker evicts; null: no limit"
    )
    max_bytes: Annotated[int, Field(ge=1, le=MOST_KEPT)] | None = Field(
        None,
        description="most bytes of answers, prompts, vectors and a kilobyte for the rest of each entry; null: no limit",
    )
    eviction: Literal["lfu-decay-cost", "lru", "s3-fifo"] = Field(
        "lfu-decay-cost",
        description="what gives way in a full cache: what was used least lately, weighed by its cost for each byte; "
        "what was used longest ago; or what S3-FIFO says",
    )
    prefetch: bool = Field(
        False,
        description="whether answers that are likely to be wanted are asked for ahead; requests are kept for that",
    )
    index: Literal["ivfflat", "hnsw"] = Field(
        "ivfflat", description="kind of the approximate index that a large scope gets"
    )

    @property
    def variants(self) -> int:
        """How many answers are kept for one prompt of a sampled request."""
        found = _VARIANTS.fullmatch(self.sampled)
        return int(found[1]) if found else 1

    @property
    def labels_hits(self) -> bool:
        """Whether of what similarity serves a share is labelled too, not only of what it leaves."""
        drawn = self.audit_rate > 0 or self.exploration_rate > 0
        return drawn or self.shadow or self.decision == "verified"

    def keys(self, *, question: str | None = None, salt: tuple[tuple[str, str], ...] = ()) -> KeyPolicy:
        """What it says about identity. question: the stand-alone form of the last user message, once it is known."""
        found = _LAST_TURNS.fullmatch(self.context)
        return KeyPolicy(
            share=self.share,
            trust_image_urls=self.trust_image_urls,
            seed_chooses=self.variants > 1,
            context=Context(int(found[1]) if found else None, self.context == "rewritten", question),
            salt=salt,
        )

    def ttl(self, asked: int | None) -> int | None:
        """The lifetime in milliseconds of an entry for which this one was asked; None: for ever."""
        return self.cut_ttl(asked if asked is not None else self.ttl_millis)

    def cut_ttl(self, wanted: int | None) -> int | None:
        """A lifetime in milliseconds, None for ever, cut to the longest one."""
        limits = [ttl for ttl in (wanted, self.max_ttl_millis) if ttl is not None]
        return min(limits, default=None)

    def bounded_ttl(self, ttl_ms: float) -> int:
        """A lifetime that adapts, within its bounds."""
        return int(min(max(ttl_ms, self.min_ttl_millis), self.max_ttl_millis or DAY_MS))

    def adapted_ttl(self, ttl_ms: float, *, same: bool, uses: int, part: float = 1.0) -> int:
        """The lifetime after an answer that had this one, by whether the model gave it again.

        uses: how often it was served meanwhile; part: how much of its lifetime had passed, 0 to 1. Calls come at the
        rate 1 / ttl and stale answers at uses * changes * ttl / 2, so both together are least at a ttl in proportion to
        1 / sqrt(uses * changes): there a half for a change, and 1 / uses more for none, come to rest.
        """
        return self.bounded_ttl(ttl_ms * (1 + part / (1 + uses) if same else 0.5))

    def threshold(self, asked: float | None, decision: Policy | None = None) -> float:
        """The least similarity for a decision, by default the cache's: a caller may only raise it."""
        least = self.similarity_threshold if (decision or self.decision) == "threshold" else FLOOR
        return max(least, asked or 0.0)


def read_policy(changes: dict[str, Any], base: dict[str, Any] | None = None) -> CachePolicy:
    """The policy that these keys make, as a JSON Merge Patch (RFC 7396) over those of `base`: None goes back to the
    default.

    Raises: SemcacheError(INVALID_DATA), naming each key and its rule.
    """
    known = {to_camel(name) for name in CachePolicy.model_fields}
    unknown = {key: None for key in changes if key not in known}
    try:
        return CachePolicy.model_validate(unknown | _merge(base or {}, changes))
    except ValidationError as error:
        problems = [f"policy.{'.'.join(map(str, e['loc']))}: {_rule(e['type'], e['msg'])}" for e in error.errors()]
        raise SemcacheError(Code.INVALID_DATA, "; ".join(problems)) from None


def _merge(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    merged = {key: value for key, value in target.items() if patch.get(key, value) is not None}
    for key, value in patch.items():
        if isinstance(value, dict):
            held = merged.get(key)
            merged[key] = _merge(held if isinstance(held, dict) else {}, value)
        elif value is not None:
            merged[key] = value
    return merged


def _rule(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return f"no such policy key; there are {', '.join(sorted(to_camel(name) for name in CachePolicy.model_fields))}"
    return message.removeprefix("Value error, ").removeprefix("Input ")


__all__ = [
    "DEFAULT_THRESHOLD",
    "LONGEST_STALE_MS",
    "MAX_TTL_MS",
    "MOST_VARIANTS",
    "CachePolicy",
    "Compare",
    "read_policy",
]
