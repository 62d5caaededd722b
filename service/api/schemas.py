"""The data API's bodies. Field names are LangCache's where it has one; camelCase on the wire."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict

from service.api.problems import Problem
from service.identity.scope import PartName
from service.policy.cache_policy import MAX_TTL_MS, MOST_VARIANTS, CachePolicy, lifetime, unit_interval
from service.policy.decision import Policy
from service.store.rows import JobKind, JobState

_ATTRIBUTE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_DATED = re.compile(r"\d{4}-\d\d-\d\d")
MAX_WORD = 500

SEARCH: JsonDict = {"prompt": "How can I renew my library card?", "attributes": {"language": "en"}}
ENTRY: JsonDict = {
    "prompt": "How do I renew my library card?",
    "response": "Online, under My account, or at any desk.",
    "attributes": {"language": "en"},
    "ttlMillis": 86_400_000,
}


class Body(BaseModel):
    """What a caller sends: only fields that there are, of the types that they have."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True, allow_inf_nan=False)


def example(body: JsonDict) -> ConfigDict:
    """Configuration of a body that shows this one in the OpenAPI document."""
    return ConfigDict(json_schema_extra={"examples": [body]})


class View(BaseModel):
    """What a caller gets."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, ser_json_inf_nan="null")


def _a_date(value: Any) -> Any:
    """Without this a number would count as seconds or milliseconds since 1970."""
    if not isinstance(value, str) or not _DATED.match(value):
        raise ValueError("must be a time with its zone, such as 2026-01-31T12:00:00Z")
    return value


def _some_text(value: str) -> str:
    if not value:
        raise ValueError("must have at least one character")
    return value


def _no_dots_alone(value: str) -> str:
    if value in {".", ".."}:
        raise ValueError("must not be . or .., which clients take out of a path")
    return value


def _words(values: list[str]) -> list[str]:
    for value in values:
        if not value or len(value) > MAX_WORD or _UNPRINTABLE.search(value):
            raise ValueError(f"each must have 1 to {MAX_WORD} characters and no control characters")
    return values


def _attributes(values: dict[str, str]) -> dict[str, str]:
    for name, value in values.items():
        if not _ATTRIBUTE_NAME.fullmatch(name):
            raise ValueError("a name has 1 to 64 of A-Z a-z 0-9 _ . -")
        if len(value) > MAX_WORD or _UNPRINTABLE.search(value):
            raise ValueError(f"a value has at most {MAX_WORD} characters and no control characters")
    return values


Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Text = Annotated[str, AfterValidator(_some_text)]
Tags = Annotated[list[str], AfterValidator(_words)]
Attributes = Annotated[dict[str, str], AfterValidator(_attributes)]
TtlMillis = Annotated[int, BeforeValidator(lifetime), Field(description=f"lifetime in milliseconds, 1 to {MAX_TTL_MS}")]
Threshold = Annotated[
    float,
    BeforeValidator(unit_interval),
    Field(description="cosine similarity, 0 to 1; can only raise the cache's own"),
]
Decision = Annotated[
    Policy, Field(description="a policy that must accept the answer too, beside the cache's own: it can only tighten")
]
Instant = Annotated[AwareDatetime, BeforeValidator(_a_date), Field(strict=False, examples=["2026-01-31T12:00:00Z"])]
ScopeBody = Annotated[
    dict[str, Any],
    Field(
        description="what must match exactly: model, revision, tokenizer, chatTemplate, dtype, quantization, "
        "kvCacheDtype, engineVersion, sampling, system, history, tools, responseFormat, user, salt",
        examples=[{"model": "llama-3.1-8b", "sampling": {"temperature": 0}, "system": "Answer briefly."}],
    ),
]


class NewCache(Body):
    model_config = example({"name": "faq", "policy": {"similarityThreshold": 0.95, "ttlMillis": 86_400_000}})

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,128}$"), AfterValidator(_no_dots_alone)]
    policy: dict[str, Any] = Field(default_factory=dict)


class CacheChange(Body):
    model_config = example({"policy": {"similarityThreshold": 0.95, "ttlMillis": None}})

    policy: dict[str, Any] = Field(description="keys to change; null goes back to the default")


class CacheView(View):
    cache_id: str
    name: str
    policy: CachePolicy
    created_at: datetime
    updated_at: datetime


class CachePage(View):
    data: list[CacheView]
    next_cursor: str | None = Field(None, description="pass as `cursor` for the next page; null on the last one")


class Search(Body):
    model_config = example(SEARCH)

    prompt: Text
    similarity_threshold: Threshold | None = None
    decision: Decision | None = None
    attributes: Attributes = Field(default_factory=dict, description="only entries that have these")
    search_strategies: list[Literal["exact", "semantic"]] = Field(["exact", "semantic"], min_length=1)
    scope: ScopeBody = Field(default_factory=dict)
    explain: bool = Field(False, description="say why, with what was near")


class SearchHit(View):
    id: str
    prompt: str
    response: str
    attributes: dict[str, str]
    similarity: float
    search_strategy: Literal["exact", "semantic"]
    tags: list[str]
    provenance: str
    created_at: datetime
    age_millis: int
    ttl_millis: int | None = Field(description="what is left of its lifetime; null: it does not expire")


class GuardView(View):
    guard: str
    outcome: Literal["pass", "gray", "block"]
    evidence: str


class NeighbourView(View):
    id: str
    prompt: str
    similarity: float
    obstacles: list[str] = Field(description="why it does not serve this prompt; empty where nothing stands in the way")
    scope_differs_in: list[str]
    guards: list[GuardView] = Field(description="every guard's verdict on the two texts")
    probability: float | None = Field(
        description="that its answer is right (calibrated) or that it is served (verified); null where not judged"
    )
    would_change: list[str] = Field(description="what would turn the policy's verdict on it; empty where it gave none")


class ExplanationView(View):
    outcome: Literal["hit", "semantic_hit", "stale", "miss", "bypass", "refresh"]
    reason: str
    decision: Policy = Field(description="the policy that judged")
    threshold: float
    cut: float | None = Field(description="the least probability that is served; null where the policy has none")
    entry_id: str | None
    similarity: float | None
    neighbours: list[NeighbourView]
    would_change: str


class SearchResult(View):
    data: list[SearchHit] = Field(description="the entry that may be served; empty on a miss")
    reason: str
    threshold: float = Field(description="the threshold that counted")
    explanation: ExplanationView | None = None


class ProxiedRequest(Body):
    """A request as the proxy gets it. `x-cache-namespace` says nothing here: the cache is that of the path."""

    path: Literal["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings"]
    query: str = Field("", description="of its URL, without the question mark")
    headers: dict[str, str] = Field(default_factory=dict, description="those that control the cache count")
    body: dict[str, Any]


class Explain(Body):
    """A prompt as it would be searched for; or a request as the proxy would get it, which says all by itself."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"prompt": "How can I renew my library card?", "limit": 4},
                {
                    "request": {
                        "path": "/v1/chat/completions",
                        "headers": {"x-cache-threshold": "0.9"},
                        "body": {"model": "m", "messages": [{"role": "user", "content": "How do I renew my card?"}]},
                    }
                },
            ]
        }
    )

    prompt: Text | None = None
    request: ProxiedRequest | None = None
    similarity_threshold: Threshold | None = None
    decision: Decision | None = None
    attributes: Attributes = Field(default_factory=dict)
    scope: ScopeBody = Field(default_factory=dict)
    limit: int = Field(8, ge=1, le=64)


class LoggedRequest(View):
    """A row of semcache.request_log."""

    at: datetime
    outcome: str
    reason: str
    entry_id: str | None = Field(description="the entry that was served, or stored")
    similarity: float | None = Field(description="of the nearest entry that was looked at")
    latency_ms: float
    stages: dict[str, float] = Field(description="milliseconds of each stage of the lookup")
    tokens_saved: int
    tokens_spent: int


class LoggedRequests(View):
    data: list[LoggedRequest] = Field(description="the newest first; empty where the log has none, or none yet")


class NewEntry(Body):
    model_config = example(ENTRY)

    prompt: Text
    response: str
    attributes: Attributes = Field(default_factory=dict)
    ttl_millis: TtlMillis | None = None
    scope: ScopeBody = Field(default_factory=dict)
    tags: Tags = Field(default_factory=list)


class Exported(BaseModel):
    """What Postgres has bounds for in the `stored` object of an exported line."""

    model_config = ConfigDict(alias_generator=to_camel, strict=True, allow_inf_nan=False)

    cost_ms: float | None = Field(ge=0, le=1e12)
    exact_key: Sha256
    parts: dict[PartName, Sha256]
    variants: int = Field(1, ge=1, le=MOST_VARIANTS)


class ImportedEntry(NewEntry):
    stored: Exported | None = None


class EntryStored(View):
    entry_id: str
    exact_only: str | None = Field(None, description="why only the same request finds it; null where neighbours do too")


class EntryView(View):
    id: str
    prompt: str
    response: str
    model: str
    attributes: dict[str, str]
    tags: list[str]
    provenance: str
    alias_of: str | None = Field(description="the entry whose answer the judge found right for this prompt")
    pinned: bool
    quarantined: bool
    created_at: datetime
    expires_at: datetime | None
    prompt_tokens: int | None
    completion_tokens: int | None
    hits: int
    last_hit_at: datetime | None


class ScopeView(View):
    model: dict[str, str] = Field(description="what is known of the served model")
    sampling: dict[str, Any] = Field(description="every field that changes the output distribution")
    parts: dict[str, str] = Field(description="SHA-256 of each further part, as system prompt, history, tools")


class EntryDetail(EntryView):
    scope: ScopeView = Field(description="what must be the same in a request that it may serve")


class EntryPage(View):
    data: list[EntryView]
    next_cursor: str | None = Field(None, description="pass as `cursor` for the next page; null on the last one")


class EntryChange(Body):
    model_config = example({"pinned": True, "tags": ["reviewed"]})

    ttl_millis: TtlMillis | None = Field(
        None, description="counts from now; null: for ever; cut to the policy's maxTtlMillis"
    )
    tags: Tags | None = None
    pinned: bool | None = Field(None, description="not evicted; an answer that replaces it is pinned too")
    quarantined: bool | None = None


class EntryFilter(Body):
    model_config = example({"attributes": {"language": "en"}, "olderThan": "2026-01-31T12:00:00Z", "dryRun": True})

    attributes: Attributes = Field(default_factory=dict)
    tags: Tags = Field(default_factory=list, description="any one of these")
    model: Text | None = None
    older_than: Instant | None = Field(None, description="stored before this time")
    dry_run: bool = Field(False, description="only count")


class DeletedCount(View):
    deleted_entries_count: int


class SearchBatch(Body):
    model_config = example({"searches": [SEARCH]})

    searches: list[dict[str, Any]] = Field(min_length=1, description="bodies of entries/search")


class EntryBatch(Body):
    model_config = example({"entries": [ENTRY]})

    entries: list[dict[str, Any]] = Field(min_length=1, description="bodies of POST entries")


class BatchItem(View):
    status: int = Field(description="the status that the call alone would have had")
    result: SearchResult | EntryStored | None = None
    error: Problem | None = Field(None, description="a problem, where the item failed")


class BatchResult(View):
    data: list[BatchItem] = Field(description="one for each item, in order")


class NewJob(Body):
    model_config = example({"kind": "import", "entries": [ENTRY]})

    kind: JobKind
    entries: list[dict[str, Any]] | None = Field(
        None, min_length=1, description="for an import: bodies of POST entries, or lines that an export has written"
    )


class JobView(View):
    id: str
    kind: JobKind
    state: JobState
    done: int
    failed: int
    total: int
    changed: int = Field(description="answers that a revalidation found to be others by now")
    errors: list[dict[str, Any]] = Field(description="the first twenty that could not be done, each with its rule")
    created_at: datetime
    ended_at: datetime | None


class JobPage(View):
    data: list[JobView]


class Feedback(Body):
    model_config = example(
        {
            "entryId": "00000000000000000000000000000000",
            "verdict": "wrong",
            "prompt": "How do I cancel my card?",
        }
    )

    entry_id: str
    verdict: Literal["correct", "wrong", "stale"]
    prompt: Text | None = Field(None, description="the prompt that got the answer, where it was another one")


class CalibrationView(View):
    embedder: str
    observations: int = Field(description="labelled requests that it rests on")
    budget: float | None = Field(description="the share of false hits that it was fitted for")
    per: str | None
    confidence: float | None
    cut: float | None = Field(
        description="least probability that is served; null: nothing is, by the policy calibrated"
    )
    false_hits: float | None = Field(description="share of false hits observed at the cut")
    false_hits_at_most: float | None = Field(description="its upper bound at the stated confidence")
    hits: int | None = Field(description="observed hits of the budget's kind at the cut")
    missing: str | None = Field(description="what it would take to serve")
    fitted_at: datetime
    tightened_at: datetime | None = Field(description="when an alarm of drift last threw away what was learned")


class Stats(View):
    cache_id: str
    since: datetime | None
    entries: int
    pinned: int
    quarantined: int
    answer_bytes: int
    max_entries: int | None = Field(description="by the policy, or what the tenant's quota leaves to its largest cache")
    max_bytes: int | None
    full_percent: float | None = Field(description="of the tighter limit; null where there is none")
    evicted: int = Field(description="entries that gave way so far")
    lookups: int = Field(description="hits, misses, bypasses, refreshes, shadowed and errors")
    hits: int = Field(description="of the four kinds that follow")
    exact_hits: int
    semantic_hits: int
    coalesced_hits: int = Field(description="answered by the call that an equal request had made")
    stale_hits: int
    misses: int
    bypasses: int
    refreshes: int = Field(description="fresh answers that callers asked for")
    shadowed: int = Field(description="decided in shadow, and never served")
    errors: int
    hit_rate: float | None = Field(description="hits per lookup; null where there was none")
    tokens_saved: int
    tokens_spent: int
    latency_p50_ms: float | None
    latency_p99_ms: float | None
    miss_reasons: dict[str, int] = Field(description="of misses, bypasses, refreshes and errors")
    calibrations: list[CalibrationView] = Field(description="what the cache has learned, by embedder")


class TrafficStep(View):
    step: datetime = Field(description="when the step began")
    requests: int
    p50_ms: float = Field(description="of the time that the cache took; the model's own comes on top")
    p95_ms: float


class TierView(View):
    tier: str = Field(description="memory, exact, semantic, coalesced, stale (these were served), or what came instead")
    requests: int
    p50_ms: float
    p95_ms: float
    steps: list[TrafficStep] = Field(description="those in which there was a request")


class TrafficView(View):
    cache_id: str
    since: datetime
    until: datetime
    step_millis: int
    tiers: list[TierView]
    miss_reasons: dict[str, int]


class NearView(View):
    similarity: float = Field(description="of the nearest entry: this or up to 0.005 more")
    requests: int
    semantic_hits: int
    below_threshold: int


class VerdictCounts(View):
    since: datetime
    drawn: int = Field(description="on requests that were drawn at random: rates rest on these")
    reported: int = Field(description="from callers, who report what they like")
    reported_wrong: int


class AtThresholdView(View):
    threshold: float
    semantic_hits: int = Field(description="at most: guards may keep back neighbours that were never compared")
    hit_rate: float | None
    drawn: int = Field(description="verdicts on neighbours at least this near")
    false_hits: float | None = Field(description="wrong ones per semantic hit; null where no verdict says")
    low: float = Field(description="with `high` an interval of 95 %")
    high: float


class SimilarityView(View):
    cache_id: str
    since: datetime
    until: datetime
    floor: float = Field(description="nothing below it is served at any threshold")
    requests: int
    exact_hits: int
    nearest: list[NearView]
    verdicts: VerdictCounts
    thresholds: list[AtThresholdView]


class NodeView(View):
    node_id: int
    entry_id: str | None = Field(description="the entry that answers it; null where none does")
    prompt: str | None = Field(description="its first 200 characters; null where no entry has it")
    answer: Literal["living", "dead", "quarantined", "none"]
    score: float = Field(description="share of the measure over the whole cache, 0 to 1")
    times_a_day: float = Field(description="how often it is asked; each time weighs half after a day")
    seen: int
    last_at: datetime | None


class EdgeView(View):
    from_node: int
    to_node: int
    share: float = Field(
        description="of the times that the first was asked, how many the second followed within half an hour"
    )
    times_a_day: float
    seen: int


class GraphView(View):
    cache_id: str
    nodes: list[NodeView] = Field(description="the most central first")
    edges: list[EdgeView] = Field(description="those between these nodes, the most frequent first")
