-- Renew a replica's lease. Gives the newest invalidation, and whether no other replica lives.
select
    semcache.renew_lease(%(name)s, %(holder)s, %(seconds)s, %(confirmed)s) as head,
    not exists (
        select
        from semcache.lease l
        where l.name like 'replica:%%'
          and l.holder <> %(holder)s
          and l.expires_at > clock_timestamp()
    ) as alone
