-- For how many more seconds an invalidation may be unknown to some replica; null when all that live have followed it.
select
    max(extract(epoch from l.expires_at - clock_timestamp()))::float8 as seconds
from semcache.lease l
where l.name like 'replica:%%'
  and l.holder <> %(holder)s
  and l.confirmed < %(invalidation_id)s
  and l.expires_at > clock_timestamp()
