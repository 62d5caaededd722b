"""The tables as SQLAlchemy sees them: what `pgsemcache db check` compares the database with.

The DDL is in `migrations/versions`; these are never created from here.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from pgvector.sqlalchemy import HALFVEC
from sqlalchemy import (
    ARRAY,
    DOUBLE_PRECISION,
    REAL,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSON, JSONB

from service.policy.guards.features import Features

metadata = MetaData(schema="semcache")


def _column(name: str, type_: Any, *args: Any, null: bool = False) -> Column[Any]:
    return Column(name, type_, *args, nullable=null)


def _key(name: str, type_: Any = BigInteger) -> Column[Any]:
    return Column(name, type_, Identity(always=True), primary_key=True)


def _at(name: str, *, null: bool = False) -> Column[Any]:
    return Column(name, DateTime(timezone=True), nullable=null)


def _refers(name: str, type_: Any = BigInteger, *, to: str | None = None, **options: Any) -> Column[Any]:
    table = to or name.removesuffix("_id")
    return Column(name, type_, ForeignKey(f"semcache.{table}.{name}", **options), nullable=False)


def _tenant() -> Column[Any]:
    return _refers("tenant_id")


def _node(name: str) -> Column[Any]:
    return Column(name, BigInteger, ForeignKey("semcache.node.node_id", ondelete="CASCADE"), primary_key=True)


tenant = Table(
    "tenant",
    metadata,
    _key("tenant_id"),
    _column("name", Text),
    _at("created_at"),
    _column("max_entries", BigInteger, null=True),
    _column("max_bytes", BigInteger, null=True),
    UniqueConstraint("name"),
)

api_key = Table(
    "api_key",
    metadata,
    _key("api_key_id"),
    _tenant(),
    _column("key_hash", LargeBinary),
    _column("hint", Text),
    _at("created_at"),
    _at("revoked_at", null=True),
    UniqueConstraint("key_hash"),
)

cache = Table(
    "cache",
    metadata,
    _key("cache_id"),
    _tenant(),
    _column("name", Text),
    _column("policy", JSONB),
    _column("epoch", BigInteger),
    _column("changes", BigInteger),
    _at("created_at"),
    _at("updated_at"),
    _at("deleted_at", null=True),
    Index("cache_name", "tenant_id", "name", unique=True, postgresql_where=text("deleted_at is null")),
    Index("cache_deleted", "deleted_at", postgresql_where=text("deleted_at is not null")),
)

embedder = Table(
    "embedder",
    metadata,
    _key("embedder_id", Integer),
    _column("kind", Text),
    _column("name", Text),
    _column("revision", Text),
    _column("dimensions", Integer),
    _column("max_tokens", Integer, null=True),
    _column("probe", ARRAY(REAL), null=True),
    _at("created_at"),
    _column("index_builds", BigInteger),
    UniqueConstraint("name", "revision", "dimensions"),
)

model = Table(
    "model",
    metadata,
    _key("model_id"),
    _tenant(),
    _column("model_key", LargeBinary),
    _column("name", Text),
    _column("revision", Text, null=True),
    _column("tokenizer", Text, null=True),
    _column("chat_template", Text, null=True),
    _column("dtype", Text, null=True),
    _column("quantization", Text, null=True),
    _column("kv_cache_dtype", Text, null=True),
    _column("engine_version", Text, null=True),
    _at("created_at"),
    UniqueConstraint("tenant_id", "model_key"),
)

sampling_config = Table(
    "sampling_config",
    metadata,
    _key("sampling_config_id"),
    _tenant(),
    _column("config_key", LargeBinary),
    _column("config", JSON),
    _at("created_at"),
    UniqueConstraint("tenant_id", "config_key"),
)

scope = Table(
    "scope",
    metadata,
    _key("scope_id"),
    _tenant(),
    _refers("cache_id"),
    _column("scope_key", LargeBinary),
    _refers("model_id"),
    _refers("sampling_config_id"),
    _column("canonical_version", SmallInteger),
    _column("parts", JSONB),
    _column("ann_index", Text, null=True),
    _column("ann_rows", BigInteger, null=True),
    _column("ttl_ms", BigInteger, null=True),
    _at("created_at"),
    UniqueConstraint("cache_id", "scope_key"),
)

output = Table(
    "output",
    metadata,
    _key("output_id"),
    _tenant(),
    _column("payload", JSON),
    _column("bytes", Integer),
    _column("prompt_tokens", Integer, null=True),
    _column("completion_tokens", Integer, null=True),
    _column("cost_ms", REAL, null=True),
    _at("created_at"),
    _column("answer_key", LargeBinary, null=True),
)

entry = Table(
    "entry",
    metadata,
    Column("entry_id", Uuid, primary_key=True),
    _tenant(),
    _refers("cache_id"),
    _refers("scope_id"),
    _refers("output_id"),
    _column("epoch", BigInteger),
    _column("exact_key", LargeBinary),
    _column("attributes_key", LargeBinary),
    _column("variant", SmallInteger),
    _column("prompt", Text),
    _column("prompt_verbatim", JSON, null=True),
    _column("attributes", JSONB),
    _column("tags", ARRAY(Text)),
    _column("provenance", Text),
    _column("pinned", Boolean),
    _at("quarantined_at", null=True),
    _at("created_at"),
    _at("expires_at", null=True),
    Column("alias_of", Uuid, ForeignKey("semcache.entry.entry_id", ondelete="SET NULL")),
    UniqueConstraint("cache_id", "exact_key", "attributes_key", "variant"),
    Index("entry_listing", "cache_id", "epoch", "created_at", "entry_id"),
    Index("entry_expiry", "expires_at", postgresql_where=text("expires_at is not null")),
    Index("entry_output", "output_id"),
    Index("entry_scope", "scope_id"),
    Index("entry_alias", "alias_of", postgresql_where=text("alias_of is not null")),
    Index(
        "entry_marked",
        "cache_id",
        "epoch",
        "created_at",
        "entry_id",
        postgresql_where=text("pinned or quarantined_at is not null"),
    ),
    Index("entry_tags", "tags", postgresql_using="gin"),
    Index(
        "entry_attributes",
        "attributes",
        postgresql_using="gin",
        postgresql_ops={"attributes": "jsonb_path_ops"},
    ),
)

embedding = Table(
    "embedding",
    metadata,
    _tenant(),
    Column("embedder_id", Integer, ForeignKey("semcache.embedder.embedder_id"), primary_key=True),
    _column("scope_id", BigInteger),
    Column("entry_id", Uuid, ForeignKey("semcache.entry.entry_id", ondelete="CASCADE"), primary_key=True),
    _column("vector", HALFVEC()),
    Index("embedding_scope", "scope_id"),
    postgresql_partition_by="list (embedder_id)",
)

feature = Table(
    "feature",
    metadata,
    Column("entry_id", Uuid, ForeignKey("semcache.entry.entry_id", ondelete="CASCADE"), primary_key=True),
    _tenant(),
    _column("version", SmallInteger),
    *(_column(field.name, ARRAY(Text), null=True) for field in fields(Features)),
)

entry_usage = Table(
    "entry_usage",
    metadata,
    Column("entry_id", Uuid, ForeignKey("semcache.entry.entry_id", ondelete="CASCADE"), primary_key=True),
    _tenant(),
    _column("hits", BigInteger),
    _at("last_hit_at", null=True),
    _refers("cache_id"),
    _column("bytes", Integer),
    _column("weight", REAL),
    _column("score", Double),
    _column("uses", SmallInteger),
    _column("returned", Boolean),
    _column("rank", Double),
    Index("entry_usage_rank", "cache_id", "rank", "entry_id"),
)

cache_size = Table(
    "cache_size",
    metadata,
    Column("cache_id", BigInteger, ForeignKey("semcache.cache.cache_id"), primary_key=True, autoincrement=False),
    _tenant(),
    _column("entries", BigInteger),
    _column("bytes", BigInteger),
    _column("stored", BigInteger),
    _column("clocked", BigInteger),
    _column("clock", Double),
    _column("half_life", REAL),
    _column("ranked_by", Text, null=True),
    _column("evicted", BigInteger),
    _column("evicted_bytes", BigInteger),
    _at("evicted_at", null=True),
)

cache_change = Table(
    "cache_change",
    metadata,
    _column("cache_id", BigInteger),
    _tenant(),
    _column("entries", Integer),
    _column("bytes", BigInteger),
    _column("stored", Integer),
)

evicted = Table(
    "evicted",
    metadata,
    Column("cache_id", BigInteger, primary_key=True, autoincrement=False),
    Column("exact_key", LargeBinary, primary_key=True),
    _column("tenant_id", BigInteger),
    _column("score", Double),
    _column("tick", BigInteger),
    Index("evicted_tick", "cache_id", "tick"),
)

request_log = Table(
    "request_log",
    metadata,
    _key("request_log_id"),
    _at("at"),
    _tenant(),
    _refers("cache_id"),
    _column("scope_key", LargeBinary, null=True),
    _column("request_key", LargeBinary, null=True),
    _column("session", Text, null=True),
    _column("turn", LargeBinary, null=True),
    _column("entry_id", Uuid, null=True),
    _column("outcome", Text),
    _column("reason", Text),
    _column("similarity", REAL, null=True),
    _column("latency_ms", REAL),
    _column("stages", JSONB),
    _column("tokens_saved", Integer),
    _column("tokens_spent", Integer),
    _column("cost_ms", REAL, null=True),
    _column("request_id", Text, null=True),
    Index("request_log_cache", "cache_id", "at"),
    Index("request_log_turn", "turn", postgresql_where=text("turn is not null")),
    Index("request_log_session", "cache_id", "session", "at", postgresql_where=text("session is not null")),
    Index("request_log_request", "cache_id", "request_id", postgresql_where=text("request_id is not null")),
    Index("request_log_at", "at", postgresql_using="brin"),
)

log_reader = Table(
    "log_reader",
    metadata,
    Column("name", Text, primary_key=True),
    _column("position", BigInteger),
)

node = Table(
    "node",
    metadata,
    _key("node_id"),
    _tenant(),
    _refers("cache_id", ondelete="CASCADE"),
    _column("request_key", LargeBinary),
    _column("exact_key", LargeBinary, null=True),
    _column("visits", DOUBLE_PRECISION),
    _column("starts", DOUBLE_PRECISION),
    _column("seen", BigInteger),
    _at("last_at", null=True),
    UniqueConstraint("cache_id", "request_key"),
    Index("node_exact", "cache_id", "exact_key"),
)

transition = Table(
    "transition",
    metadata,
    _node("from_node"),
    _node("to_node"),
    _tenant(),
    _refers("cache_id", ondelete="CASCADE"),
    _column("weight", DOUBLE_PRECISION),
    _column("seen", BigInteger),
    _at("last_at"),
    Index("transition_to", "to_node"),
    Index("transition_cache", "cache_id"),
)

centrality = Table(
    "centrality",
    metadata,
    _node("node_id"),
    _tenant(),
    _refers("cache_id", ondelete="CASCADE"),
    _column("popularity", REAL),
    _column("pagerank", REAL),
    _column("betweenness", REAL),
    _column("markov", REAL),
    Index("centrality_cache", "cache_id"),
)

request_graph = Table(
    "request_graph",
    metadata,
    Column("cache_id", BigInteger, ForeignKey("semcache.cache.cache_id", ondelete="CASCADE"), primary_key=True),
    _tenant(),
    _at("began_at"),
    _at("grown_at"),
    _at("scored_at", null=True),
)

request_body = Table(
    "request_body",
    metadata,
    _node("node_id"),
    _tenant(),
    _refers("cache_id", ondelete="CASCADE"),
    _column("endpoint", Text),
    _column("model", Text),
    _column("model_key", LargeBinary),
    _column("body", JSON),
    _column("tags", ARRAY(Text)),
    _column("ttl_ms", BigInteger, null=True),
    _column("tokens", Integer),
    _column("cost_ms", REAL, null=True),
    _at("kept_at"),
    Index("request_body_model", "cache_id", "model"),
)

prefetch = Table(
    "prefetch",
    metadata,
    _key("prefetch_id"),
    _at("at"),
    _tenant(),
    _refers("cache_id", ondelete="CASCADE"),
    _column("node_id", BigInteger),
    _column("why", Text),
    _column("measure", Text),
    _column("chance", REAL),
    _column("score", REAL),
    _column("outcome", Text),
    _column("entry_id", Uuid, null=True),
    _column("tokens", Integer),
    _column("cost_ms", REAL, null=True),
    _column("hits", Integer),
    _at("first_hit_at", null=True),
    Index("prefetch_at", "at"),
    Index("prefetch_node", "node_id", "at"),
    Index("prefetch_entry", "entry_id"),
)

observation = Table(
    "observation",
    metadata,
    _key("observation_id"),
    _at("at"),
    _tenant(),
    _refers("cache_id"),
    _column("entry_id", Uuid),
    _column("similarity", REAL, null=True),
    _column("verdict", Text),
    _column("source", Text),
    _column("prompt", Text, null=True),
    _column("prompt_verbatim", JSON, null=True),
    _column("request_id", Uuid, null=True),
    Column("embedder_id", Integer, ForeignKey("semcache.embedder.embedder_id")),
    _column("rank", SmallInteger, null=True),
    _column("signals", ARRAY(REAL), null=True),
    _column("signals_version", SmallInteger, null=True),
    _column("answer_key", LargeBinary, null=True),
    _column("probability", REAL, null=True),
    _column("served", Boolean),
    _column("policy", Text, null=True),
    _column("inclusion", REAL, null=True),
    Index("observation_cache", "cache_id", "at"),
    Index("observation_entry", "entry_id"),
)

calibration = Table(
    "calibration",
    metadata,
    _tenant(),
    Column("cache_id", BigInteger, ForeignKey("semcache.cache.cache_id"), primary_key=True),
    Column("embedder_id", Integer, ForeignKey("semcache.embedder.embedder_id"), primary_key=True),
    _column("model", JSONB, null=True),
    _column("frequencies", JSONB),
    _column("pooled", JSONB, null=True),
    _column("observations", Integer),
    _column("learned", BigInteger),
    _at("fitted_at"),
    _at("tightened_at", null=True),
)

entry_fit = Table(
    "entry_fit",
    metadata,
    Column("entry_id", Uuid, ForeignKey("semcache.entry.entry_id", ondelete="CASCADE"), primary_key=True),
    Column("embedder_id", Integer, ForeignKey("semcache.embedder.embedder_id"), primary_key=True),
    _tenant(),
    _column("slope", Double, null=True),
    _column("middle", Double, null=True),
    _column("variance", Double, null=True),
    _column("n", Integer, null=True),
    _column("confirmed", Integer),
    _column("refuted", Integer),
)

lease = Table(
    "lease",
    metadata,
    Column("name", Text, primary_key=True),
    _column("holder", Uuid),
    _at("expires_at"),
    _column("confirmed", BigInteger),
)

flight_chunk = Table(
    "flight_chunk",
    metadata,
    Column("tenant_id", BigInteger, primary_key=True, autoincrement=False),
    Column("holder", Uuid, primary_key=True),
    Column("starts_at", BigInteger, primary_key=True, autoincrement=False),
    _column("form", Text, null=True),
    _column("head", JSONB, null=True),
    _column("piece", LargeBinary),
    _column("ends", Text, null=True),
    _at("at"),
)

vector_index = Table(
    "vector_index",
    metadata,
    Column("scope_id", BigInteger, ForeignKey("semcache.scope.scope_id"), primary_key=True, autoincrement=False),
    Column("embedder_id", Integer, ForeignKey("semcache.embedder.embedder_id"), primary_key=True, autoincrement=False),
    _tenant(),
    _column("kind", Text),
    _column("rows", BigInteger),
    _at("built_at"),
    _column("recall", REAL, null=True),
    _at("checked_at", null=True),
)

job = Table(
    "job",
    metadata,
    Column("job_id", Uuid, primary_key=True),
    _tenant(),
    _refers("cache_id"),
    _column("kind", Text),
    _column("state", Text),
    _column("position", JSONB, null=True),
    _column("done", BigInteger),
    _column("failed", BigInteger),
    _column("total", BigInteger),
    _column("errors", JSONB),
    _column("holder", Uuid, null=True),
    _at("leased_until", null=True),
    _at("created_at"),
    _at("touched_at"),
    _at("ended_at", null=True),
    Index("job_cache", "cache_id", "created_at"),
    Index("job_open", "touched_at", postgresql_where=text("state in ('queued', 'running')")),
)

job_line = Table(
    "job_line",
    metadata,
    Column("job_id", Uuid, ForeignKey("semcache.job.job_id", ondelete="CASCADE"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    _tenant(),
    _column("line", JSON),
)

task = Table(
    "task",
    metadata,
    Column("name", Text, primary_key=True),
    _column("holder", Uuid, null=True),
    _at("leased_until", null=True),
    _at("started_at", null=True),
    _at("ended_at", null=True),
    _column("outcome", Text, null=True),
    _column("detail", JSONB),
    _column("failures", Integer),
    _at("next_due"),
)

invalidation = Table(
    "invalidation",
    metadata,
    Column("invalidation_id", BigInteger, primary_key=True, autoincrement=False),
    _column("cache_id", BigInteger, null=True),
    _column("exact_key", LargeBinary, null=True),
    _at("at"),
    Index("invalidation_at", "at"),
)

audit_log = Table(
    "audit_log",
    metadata,
    _key("audit_log_id"),
    _at("at"),
    _tenant(),
    _column("cache_id", BigInteger, null=True),
    _column("action", Text),
    _column("detail", JSONB),
    Index("audit_log_tenant", "tenant_id", "at"),
)

sql_file = Table(
    "sql_file",
    metadata,
    Column("path", Text, primary_key=True),
    _column("checksum", LargeBinary),
    _at("applied_at"),
)

__all__ = ["metadata"]
