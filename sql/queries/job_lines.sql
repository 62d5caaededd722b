-- Lines of a job after this number, in order.
select
    l.number,
    l.line::text as line
from semcache.job_line l
where l.tenant_id = %(tenant_id)s
  and l.job_id = %(job_id)s
  and l.number > %(after)s
order by l.number
limit %(limit)s
