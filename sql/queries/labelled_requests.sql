-- What policies can be compared on: the requests of a window that were drawn at random, with all their labelled
-- candidates, oldest first; of the embedder that saw the newest of them. A request whose verdict is stale says nothing
-- of likeness.
select
    o.at,
    o.request_id,
    o.entry_id,
    o.similarity,
    o.signals,
    o.verdict = 'correct' as correct,
    o.answer_key,
    o.inclusion
from (
    select w.*
    from semcache.observation w
    where w.tenant_id = %(tenant_id)s
      and w.cache_id = %(cache_id)s
      and w.at > %(since)s
      and w.signals_version = %(signals_version)s
      and w.request_id is not null
      and w.inclusion is not null
      and w.verdict <> 'stale'
      and w.embedder_id = (
          select n.embedder_id
          from semcache.observation n
          where n.tenant_id = %(tenant_id)s
            and n.cache_id = %(cache_id)s
            and n.embedder_id is not null
          order by n.at desc
          limit 1
      )
    order by w.at desc, w.observation_id desc
    limit %(limit)s
) o
order by o.at, o.request_id, o.rank
