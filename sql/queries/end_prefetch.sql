-- Note what came of a request that was asked ahead.
update semcache.prefetch
set outcome = %(outcome)s,
    entry_id = %(entry_id)s,
    tokens = %(tokens)s,
    cost_ms = %(cost_ms)s
where prefetch_id = %(prefetch_id)s
