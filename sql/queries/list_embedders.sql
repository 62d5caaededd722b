-- The generations of a model name and length, newest first.
select
    e.embedder_id,
    e.revision,
    e.probe
from semcache.embedder e
where e.name = %(name)s
  and e.kind = %(kind)s
  and e.dimensions = %(dimensions)s
order by e.embedder_id desc
