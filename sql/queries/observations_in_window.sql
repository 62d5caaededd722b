-- What a model learns from: the newest requests of a window with all their candidates that were seen with signals of
-- this version, oldest first. A verdict of stale is about time, not about likeness, so nothing is learned from it.
select
    o.observation_id,
    o.at,
    o.request_id,
    o.entry_id,
    o.similarity,
    o.signals,
    o.verdict = 'correct' as correct,
    o.answer_key,
    o.source,
    o.served,
    o.inclusion
from (
    select w.*
    from semcache.observation w
    where w.tenant_id = %(tenant_id)s
      and w.cache_id = %(cache_id)s
      and w.embedder_id = %(embedder_id)s
      and w.at > %(since)s
      and w.signals_version = %(signals_version)s
      and w.signals is not null
      and w.request_id is not null
      and w.verdict <> 'stale'
    order by w.at desc, w.observation_id desc
    limit %(limit)s
) o
order by o.at, o.request_id, o.rank
