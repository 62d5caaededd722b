"""Settings, read once from `SEMCACHE_*` variables and overridden by command-line flags.

Times are seconds and sizes bytes unless the name says otherwise. Every limit on input stands here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from platformdirs import user_cache_path, user_data_path
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

DEFAULT_TENANT = "default"
DEFAULT_CACHE = "default"


def _from_json(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("must be JSON") from None


def _web_address(value: str) -> str:
    try:
        parts = urlsplit(value)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("must be an address as http://host:8000/v1")
    return value


WebAddress = Annotated[str, AfterValidator(_web_address)]


class UpstreamTarget(BaseModel):
    """One model server: its base URL, which ends in /v1, and its bearer token."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: WebAddress
    key: SecretStr | None = None


class DeclaredModel(BaseModel):
    """What an operator says of a served model that no probe can show. Any text that changes with the model will do."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    revision: str | None = None
    tokenizer: str | None = None
    chat_template: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    kv_cache_dtype: str | None = None
    engine_version: str | None = None


class Successor(UpstreamTarget, DeclaredModel):
    """A model server that is to take over, with what is declared of the model there."""


class Settings(BaseSettings):
    """What an operator can set. A field `x_y` is the variable `SEMCACHE_X_Y`; an empty one is not set."""

    model_config = SettingsConfigDict(env_prefix="SEMCACHE_", env_ignore_empty=True, extra="ignore", frozen=True)

    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8080, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    data_dir: Path = Field(
        default_factory=lambda: user_data_path("pgsemcache"),
        description="where the embedded Postgres keeps its data",
    )
    models_dir: Path = Field(
        default_factory=lambda: user_cache_path("pgsemcache") / "models",
        description="where exported models are kept; they can be made again at any time",
    )
    database_url: SecretStr | None = Field(
        None, description="postgresql://… of an own Postgres; unset: the embedded one in the data directory"
    )
    with_worker: bool | None = Field(
        None, description="run the worker in a child process; unset: only with the embedded database"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least level logged")
    log_format: Literal["text", "json"] = Field(
        "text", description="lines for people, or one JSON object each, with request and trace ids"
    )
    traces: bool = Field(
        False,
        description="send OpenTelemetry spans by OTLP to where OTEL_EXPORTER_OTLP_ENDPOINT says; wants the extra otel",
    )
    trace_prompts: bool = Field(False, description="put the texts of prompts into spans")

    upstream: WebAddress | None = Field(None, description="base URL of the model server, as http://host:8000/v1")
    upstream_key: SecretStr | None = Field(None, description="bearer token for the model server")
    upstreams: Annotated[dict[str, UpstreamTarget], NoDecode, BeforeValidator(_from_json)] = Field(
        default_factory=dict,
        description='model servers by model name, as {"name": {"url": "http://host:8001/v1", "key": "…"}}; '
        "other models go to the upstream",
    )
    upstream_forward_authorization: bool = Field(
        False, description="hand the caller's Authorization to a model server that has no key of its own here"
    )
    upstream_connect_timeout: float = Field(5.0, gt=0, description="longest wait for a connection to a model server")
    upstream_first_byte_timeout: float = Field(600.0, gt=0, description="longest wait for an answer's headers")
    upstream_read_timeout: float = Field(600.0, gt=0, description="longest silence inside an answer")
    upstream_pool_timeout: float = Field(10.0, gt=0, description="longest wait for a free connection")
    upstream_max_connections: int = Field(1_000, ge=1, description="most connections to all model servers")

    models: dict[str, DeclaredModel] = Field(
        default_factory=dict,
        description='what is declared of served models, as {"name": {"revision": "v2", "quantization": "fp8"}}; '
        "stored answers are shared only where all of it agrees",
    )
    successors: Annotated[dict[str, Successor], NoDecode, BeforeValidator(_from_json)] = Field(
        default_factory=dict,
        description="model servers that are to take over, by model name, with what upstreams and models will say of "
        'them, as {"name": {"url": "http://new:8000/v1", "revision": "v3"}}',
    )
    probe_interval: float = Field(30.0, gt=0, description="how often served models are looked at for a change")
    probe_patience: float = Field(
        1.0, ge=0, description="how long a request waits for the first look at its model before it passes the cache by"
    )
    probe_canary: bool = Field(
        False,
        description="let each look generate 16 tokens, the only way to see changed weights; for servers whose "
        "greedy answers are always the same",
    )

    lookup_deadline: float = Field(
        0.05, gt=0, description="how much longer than usual a lookup may take before the model is asked without it"
    )
    key_grace: float = Field(
        3600.0,
        ge=0,
        description="how long a key that was checked may reach the model, but no stored answer, while "
        "the database does not answer",
    )
    stream_silence: float = Field(
        10.0,
        gt=0,
        description="longest wait of a stream for the first byte of the same call of another replica; then it makes "
        "its own",
    )
    flight_lease: float = Field(
        2.0, gt=0, le=60, description="how long other replicas wait for one that died while it asked the model"
    )
    max_answer_bytes: int = Field(
        16 * 2**20, ge=1024, description="largest answer of a model that is stored; longer ones pass through"
    )

    resolver_url: WebAddress | None = Field(
        None,
        description="OpenAI-compatible base of the model that rewrites questions of a conversation to stand alone, for "
        "caches whose context is rewritten; ends in /v1",
    )
    resolver_model: str | None = Field(None, validate_default=True, description="name of that model")
    resolver_key: SecretStr | None = Field(None, description="bearer token for it")
    resolver_timeout: float = Field(
        2.0, gt=0, description="longest wait for it; a question that is not rewritten by then is matched exactly"
    )

    judge_url: WebAddress | None = Field(
        None,
        description="OpenAI-compatible base of a model that judges stored answers, for caches whose policy asks it; "
        "ends in /v1",
    )
    judge_model: str | None = Field(None, validate_default=True, description="name of the judge")
    judge_key: SecretStr | None = Field(None, description="bearer token for the judge")
    judge_timeout: float = Field(10.0, gt=0, description="longest wait for the judge")
    cross_encoder: str | None = Field(
        None,
        description="a sentence-transformers CrossEncoder with one output, by name or path, for caches whose second "
        "stage it is",
    )
    second_stage_deadline: float = Field(
        0.5, gt=0, description="longest wait of a lookup for its second stage; what is not accepted by then is a miss"
    )

    embedder: Literal["local", "remote"] = Field("local", description="where texts become vectors")
    embedder_model: str | None = Field(
        None,
        validate_default=True,
        description="a sentence-transformers name or path, or the remote model's name; unset: the bundled MiniLM",
    )
    embedder_url: WebAddress | None = Field(
        None, validate_default=True, description="OpenAI-compatible base of a remote embedder, ends in /v1"
    )
    embedder_key: SecretStr | None = Field(None, description="bearer token for the remote embedder")
    embedder_dimensions: int | None = Field(
        None, ge=1, le=4000, description="length of the remote embedder's vectors; unset: asked once"
    )
    embedder_max_tokens: int | None = Field(
        None, ge=1, description="how many tokens the remote embedder reads; unset: asked from /v1/models"
    )
    embedder_timeout: float = Field(5.0, gt=0, description="longest wait for the remote embedder")
    embedder_languages: tuple[str, ...] | None = Field(
        None,
        description='languages that the embedder was made for, as ISO 639-1 codes: ["en", "zh"], or ["mul"] for any; '
        "unset: English for the bundled one, any for others",
    )
    embedder_threads: int = Field(0, ge=0, description="threads of one local embedding; 0 lets ONNX Runtime choose")
    embedder_batch: int = Field(32, ge=1, le=1024, description="most texts embedded in one batch")
    embedder_memory: int = Field(10_000, ge=0, description="texts whose vectors are remembered")

    pool_min: int = Field(2, ge=0, description="database connections kept open")
    pool_max: int = Field(
        10, ge=1, validate_default=True, description="most database connections, at least SEMCACHE_POOL_MIN"
    )
    database_timeout: float = Field(2.0, gt=0, description="longest wait for one database operation")
    bulk_timeout: float = Field(120.0, gt=0, description="longest wait for a bulk delete, statistics or explain")
    breaker_failures: int = Field(3, ge=1, description="database failures in a row that open the circuit breaker")
    breaker_retry: float = Field(0.5, gt=0, description="how often an open breaker tries the database again")

    l1_entries: int = Field(10_000, ge=0, description="answers kept in process memory; 0 switches L1 off")
    l1_bytes: int = Field(64 * 2**20, ge=0, description="bytes of answers kept in process memory")
    lease_duration: float = Field(1.0, gt=0, le=60, description="how long a replica may trust its memory unasked")
    usage_interval: float = Field(1.0, gt=0, description="how often hit counts are written")

    figures_interval: float = Field(60.0, gt=0, description="how often the worker takes the figures that metrics show")
    purge_interval: float = Field(60.0, gt=0, description="how often the worker removes what is dead")
    log_days: float = Field(30.0, gt=0, description="how long the log of requests is kept, in days")
    eviction_interval: float = Field(
        0.5, gt=0, description="how often the worker looks for caches that are over their limits"
    )
    eviction_low: float = Field(
        0.98, gt=0, le=1, description="share of its limit to which a cache that is over it is brought down"
    )
    jobs_interval: float = Field(1.0, gt=0, description="how often the worker looks for jobs")
    half_life_interval: float = Field(
        600.0, gt=0, description="how often the worker learns from the log how fast uses should fade in limited caches"
    )
    lifetime_interval: float = Field(
        600.0, gt=0, description="how often the worker moves lifetimes by the hit rate since, where a policy wants it"
    )
    index_interval: float = Field(30.0, gt=0, description="how often the worker looks for scopes that want an index")
    graph_interval: float = Field(60.0, gt=0, description="how often the request graph is added to and scored")
    graph_nodes: int = Field(10_000, ge=1, description="most requests that the graph of one cache keeps")
    graph_edges: int = Field(50_000, ge=1, description="most transitions that the graph of one cache keeps")
    calibrate_interval: float = Field(30.0, gt=0, description="how often the worker looks for labels to learn from")
    calibrate_window_days: float = Field(30.0, gt=0, description="how long a label is learned from, in days")
    calibrate_observations: int = Field(
        20_000, ge=100, description="most labelled candidates that one fit takes, the newest; some four a request"
    )
    prefetch_interval: float = Field(
        30.0, gt=0, description="how often answers are asked for ahead, for caches whose policy has prefetch on"
    )
    prefetch_measure: Literal["popularity", "pagerank", "betweenness", "markov"] = Field(
        "markov", description="the centrality that says which requests are likely to come"
    )
    prefetch_horizon: float = Field(
        3600.0, gt=0, description="how far ahead requests are foreseen, at most for the life of the answer"
    )
    prefetch_gain: float = Field(
        2.0,
        gt=1,
        description="what an answer that is there when it is wanted is worth, in times what it costs to ask for it: "
        "2 asks where it is likelier than not to be wanted",
    )
    prefetch_tokens: int = Field(100_000, ge=0, description="most tokens spent ahead in an hour")
    prefetch_tenant_tokens: int = Field(50_000, ge=0, description="most tokens spent ahead in an hour for one tenant")
    prefetch_max_waiting: int = Field(
        0, ge=0, description="requests waiting in vLLM above which nothing is asked ahead"
    )
    prefetch_max_kv_usage: float = Field(
        0.7, ge=0, le=1, description="use of vLLM's key-value cache above which nothing is asked ahead"
    )
    prefetch_priority: int | None = Field(
        None,
        description="the field priority of what is asked ahead, for vLLM with --scheduling-policy priority, where "
        "a higher number waits longer; unset: none is sent",
    )
    prefetch_body_bytes: int = Field(65_536, ge=0, description="longest request that is kept to be asked ahead")
    drift_interval: float = Field(
        300.0, gt=0, description="how often the worker looks whether wrong answers have become more frequent"
    )
    index_max_rate: float = Field(
        500.0, ge=0, description="requests a second above which no index is built, unless its scope is very large"
    )
    recall_interval: float = Field(3600.0, gt=0, description="how often the worker tries what an index finds")
    recall_floor: float = Field(
        0.95, ge=0, le=1, description="share of nearest neighbours below which an index is built anew"
    )
    exact_scan_limit: int = Field(2_000, ge=1, description="rows of a scope up to which neighbours are found exactly")
    ivfflat_probes: int = Field(10, ge=1, description="lists of an IVFFlat index that a lookup reads first")
    hnsw_ef_search: int = Field(40, ge=1, le=1000, description="candidates that a lookup in an HNSW index keeps")

    max_body_bytes: int = Field(16 * 2**20, ge=1024, description="largest request body")
    max_json_depth: int = Field(64, ge=4, description="deepest nesting of a JSON body")
    max_prompt_chars: int = Field(1_000_000, ge=1, description="longest prompt in the data API")
    max_response_chars: int = Field(4_000_000, ge=1, description="longest response in the data API")
    max_batch: int = Field(256, ge=1, description="most items of one batch call")
    max_page: int = Field(500, ge=1, description="most rows of one page")
    max_attributes: int = Field(16, ge=0, description="most attributes of an entry")
    max_tags: int = Field(32, ge=0, description="most tags of an entry")

    def after_switch(self) -> Settings:
        """These settings once the successors have taken over."""
        targets, declared = dict(self.upstreams), dict(self.models)
        for name, successor in self.successors.items():
            said = dict(successor)
            targets[name] = UpstreamTarget(**{field: said[field] for field in UpstreamTarget.model_fields})
            declared[name] = DeclaredModel(**{field: said[field] for field in DeclaredModel.model_fields})
        return self.model_copy(update={"upstreams": targets, "models": declared, "successors": {}})

    @field_validator("embedder_model", "embedder_url")
    @classmethod
    def _remote_embedder_is_named(cls, value: str | None, info: ValidationInfo) -> str | None:
        if not value and info.data.get("embedder") == "remote":
            raise ValueError("must be set for a remote embedder (SEMCACHE_EMBEDDER=remote)")
        return value

    @field_validator("resolver_model", "judge_model")
    @classmethod
    def _asked_model_is_named(cls, value: str | None, info: ValidationInfo) -> str | None:
        url = str(info.field_name).replace("_model", "_url")
        if not value and info.data.get(url):
            raise ValueError(f"must be set where SEMCACHE_{url.upper()} is")
        return value

    @field_validator("pool_max")
    @classmethod
    def _pool_holds_its_least(cls, value: int, info: ValidationInfo) -> int:
        if value < info.data.get("pool_min", 0):
            raise ValueError("must be at least SEMCACHE_POOL_MIN")
        return value


__all__ = ["DEFAULT_CACHE", "DEFAULT_TENANT", "DeclaredModel", "Settings", "Successor", "UpstreamTarget"]
