-- How often an entry was served.
select u.hits
from semcache.entry_usage u
where u.tenant_id = %(tenant_id)s
  and u.entry_id = %(entry_id)s
