-- The schema semcache as lines of text, one an object, the same on every Postgres from 16 on.
with relation as (
    select c.oid, c.relname, c.relkind, c.relacl, c.relowner, c.relrowsecurity, c.relforcerowsecurity, c.reloptions
    from pg_catalog.pg_class c
    where c.relnamespace = 'semcache'::regnamespace
      and c.relkind in ('r', 'p', 'v', 'S')
      and not c.relispartition
),
line as (
    select 1 as section, r.rolname || '' as name, 0 as place, format(
        'role %s%s%s%s%s%s',
        r.rolname,
        case when r.rolcanlogin then ' login' end,
        case when r.rolsuper then ' superuser' end,
        case when r.rolcreaterole then ' createrole' end,
        case when r.rolcreatedb then ' createdb' end,
        case when r.rolbypassrls then ' bypassrls' end
    ) as text
    from pg_catalog.pg_roles r
    where r.rolname like 'semcache\_%'
    union all
    select 1, m.member::regrole::text, 1, format(
        'role %s may become %s%s', m.member::regrole, m.roleid::regrole, case when m.inherit_option then ' and inherits' end
    )
    from pg_catalog.pg_auth_members m
    where m.member::regrole::text like 'semcache\_%'
    union all
    select 2, n.nspname, 0, format('schema %s owner %s -- %s', n.nspname, n.nspowner::regrole, obj_description(n.oid))
    from pg_catalog.pg_namespace n
    where n.nspname = 'semcache'
    union all
    select 2, n.nspname, 1, format('grant %s on schema %s to %s', lower(a.privilege_type), n.nspname, coalesce(nullif(a.grantee, 0)::regrole::text, 'public'))
    from pg_catalog.pg_namespace n
    cross join lateral aclexplode(n.nspacl) a
    where n.nspname = 'semcache'
      and a.grantee <> n.nspowner
    union all
    select case r.relkind when 'v' then 5 else 3 end, r.relname, 0, format(
        '%s %s owner %s%s%s -- %s',
        case r.relkind when 'v' then 'view' when 'S' then 'sequence' when 'p' then 'partitioned table' else 'table' end,
        r.relname,
        r.relowner::regrole,
        case when r.relrowsecurity then ' row security' || case when r.relforcerowsecurity then ' forced' else '' end end,
        ' with (' || array_to_string(r.reloptions, ', ') || ')',
        obj_description(r.oid, 'pg_class')
    )
    from relation r
    where r.relkind <> 'S'
       or not exists (select from pg_catalog.pg_depend d where d.objid = r.oid and d.deptype = 'i')
    union all
    select case r.relkind when 'v' then 5 else 3 end, r.relname, a.attnum, format(
        '    %s %s%s%s%s%s',
        a.attname,
        (select t.typname from pg_catalog.pg_type t where t.oid = a.atttypid),
        case when a.attnotnull then ' not null' end,
        case when a.attidentity <> '' then ' identity' end,
        ' default ' || pg_get_expr(d.adbin, d.adrelid),
        ' -- ' || col_description(r.oid, a.attnum)
    )
    from relation r
    join pg_catalog.pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
    left join pg_catalog.pg_attrdef d on d.adrelid = r.oid and d.adnum = a.attnum
    where r.relkind in ('r', 'p', 'v')
    union all
    select 3, r.relname, 2000, format('    constraint %s %s', c.conname, pg_get_constraintdef(c.oid))
    from relation r
    join pg_catalog.pg_constraint c on c.conrelid = r.oid and c.contype <> 'n'
    union all
    select 3, r.relname, 2001, '    ' || pg_get_indexdef(i.indexrelid)
    from relation r
    join pg_catalog.pg_index i on i.indrelid = r.oid
    where not exists (select from pg_catalog.pg_constraint c where c.conindid = i.indexrelid)
    union all
    select 3, r.relname, 2002, format(
        '    policy %s for %s to %s using %s with check %s -- %s',
        p.polname,
        case p.polcmd when '*' then 'all' else p.polcmd::text end,
        (select string_agg(coalesce(nullif(x, 0)::regrole::text, 'public'), ', ') from unnest(p.polroles) x),
        pg_get_expr(p.polqual, p.polrelid),
        pg_get_expr(p.polwithcheck, p.polrelid),
        obj_description(p.oid, 'pg_policy')
    )
    from relation r
    join pg_catalog.pg_policy p on p.polrelid = r.oid
    union all
    select case r.relkind when 'v' then 5 else 3 end, r.relname, 3000, format(
        '    grant %s to %s', string_agg(lower(a.privilege_type), ', ' order by a.privilege_type), coalesce(nullif(a.grantee, 0)::regrole::text, 'public')
    )
    from relation r
    cross join lateral aclexplode(r.relacl) a
    where a.grantee <> r.relowner
    group by r.relkind, r.relname, a.grantee
    union all
    select 3, r.relname, 3001, format('    grant %s (%s) to %s', lower(x.privilege_type), a.attname, x.grantee::regrole)
    from relation r
    join pg_catalog.pg_attribute a on a.attrelid = r.oid
    cross join lateral aclexplode(a.attacl) x
    union all
    select 4, p.proname, 0, format(
        'function %s returns %s owner %s%s%s -- %s',
        p.oid::regprocedure,
        pg_get_function_result(p.oid),
        p.proowner::regrole,
        case when p.prosecdef then ' security definer' end,
        ' set ' || array_to_string(p.proconfig, ', '),
        obj_description(p.oid, 'pg_proc')
    )
    from pg_catalog.pg_proc p
    where p.pronamespace = 'semcache'::regnamespace
    union all
    select 4, p.proname, 1, format('    grant execute to %s', coalesce(nullif(a.grantee, 0)::regrole::text, 'public'))
    from pg_catalog.pg_proc p
    cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
    where p.pronamespace = 'semcache'::regnamespace
      and a.grantee <> p.proowner
)
select text
from line
order by section, name collate "C", place, text collate "C"
