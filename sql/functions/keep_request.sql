-- Keep a request so that it can be asked again, at its node of the request graph, which is made where it is not there.
-- Caller: the service, after it has stored the answer of a cache whose policy has prefetch on.
-- Locks: the node, then its body. Bound: two rows. Idempotent.

create or replace function semcache.keep_request(
    p_tenant_id bigint,
    p_cache_id bigint,
    p_request_key bytea,
    p_exact_key bytea,
    p_endpoint text,
    p_model text,
    p_model_key bytea,
    p_body json,
    p_tags text[],
    p_ttl_ms bigint,
    p_tokens integer,
    p_cost_ms real
)
returns void
language plpgsql
set search_path from current
as $$
declare
    v_node_id bigint;
begin
    insert into node (tenant_id, cache_id, request_key, exact_key)
    values (p_tenant_id, p_cache_id, p_request_key, p_exact_key)
    on conflict (cache_id, request_key) do update
    set exact_key = excluded.exact_key
    returning node_id into v_node_id;

    insert into request_body (
        node_id, tenant_id, cache_id, endpoint, model, model_key, body, tags, ttl_ms, tokens, cost_ms
    )
    values (
        v_node_id, p_tenant_id, p_cache_id, p_endpoint, p_model, p_model_key, p_body, p_tags, p_ttl_ms,
        p_tokens, p_cost_ms
    )
    on conflict (node_id) do update
    set model_key = excluded.model_key,
        tags = excluded.tags,
        ttl_ms = excluded.ttl_ms,
        tokens = excluded.tokens,
        cost_ms = excluded.cost_ms,
        kept_at = now();
end
$$;

comment on function semcache.keep_request(bigint, bigint, bytea, bytea, text, text, bytea, json, text[], bigint, integer, real) is
    'Keeps a request so that it can be asked again.';
revoke all on function semcache.keep_request(bigint, bigint, bytea, bytea, text, text, bytea, json, text[], bigint, integer, real) from public;
grant execute on function semcache.keep_request(bigint, bigint, bytea, bytea, text, text, bytea, json, text[], bigint, integer, real)
    to semcache_app, semcache_worker;
