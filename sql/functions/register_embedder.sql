-- Find or make an embedder and its partition of embedding.
-- Caller: the service at start, as the app role; runs as the owner, since it makes a table.
-- Locks: an advisory lock on embedders; a new partition locks embedding against other schema changes for a moment.
-- Bound: one row, one partition. Idempotent.

create or replace function semcache.register_embedder(
    p_kind text,
    p_name text,
    p_revision text,
    p_dimensions integer,
    p_max_tokens integer,
    p_probe real[]
)
returns integer
language plpgsql
security definer
set search_path from current
as $$
declare
    v_id integer;
    v_partition text;
begin
    perform pg_advisory_xact_lock(hashtextextended('semcache.embedder', 0));

    select e.embedder_id
    into v_id
    from embedder e
    where e.name = p_name
      and e.revision = p_revision
      and e.dimensions = p_dimensions;

    if found then
        return v_id;
    end if;

    insert into embedder (kind, name, revision, dimensions, max_tokens, probe)
    values (p_kind, p_name, p_revision, p_dimensions, p_max_tokens, p_probe)
    returning embedder_id into v_id;

    v_partition := format('embedding_%s', v_id);
    execute format(
        'create table %I partition of embedding (check (vector_dims(vector) = %s)) for values in (%s)',
        v_partition, p_dimensions, v_id
    );
    execute format('alter table %I enable row level security', v_partition);
    execute format('alter table %I force row level security', v_partition);
    execute format('comment on table %I is %L', v_partition, format('Vectors of %s, %s dimensions.', p_name, p_dimensions));
    return v_id;
end
$$;

comment on function semcache.register_embedder(text, text, text, integer, integer, real[]) is
    'Finds or makes an embedder with its partition of embedding, and returns its number.';
revoke all on function semcache.register_embedder(text, text, text, integer, integer, real[]) from public;
grant execute on function semcache.register_embedder(text, text, text, integer, integer, real[]) to semcache_app, semcache_worker;
