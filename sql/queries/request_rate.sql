-- Requests a second of all caches, of the last ten seconds.
select count(*) / 10.0::float8 as rate
from semcache.request_log r
where r.at > now() - interval '10 seconds'
