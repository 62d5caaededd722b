-- Let a lifetime that was learned of one answer move that of new entries of its scope, by a fifth of the way.
update semcache.scope s
set ttl_ms = exp(0.8 * ln(coalesce(s.ttl_ms, %(ttl_ms)s)) + 0.2 * ln(%(ttl_ms)s::float8))
where s.tenant_id = %(tenant_id)s
  and s.scope_id = %(scope_id)s
