-- Delete what was shown of a stream, once those who followed it have had it.
delete from semcache.flight_chunk
where tenant_id = %(tenant_id)s
  and holder = %(holder)s
