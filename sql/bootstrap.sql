-- Roles, schema and extension: run before the first revision, by whoever runs `pgsemcache db upgrade`.
-- Safe to repeat. Needs the right to create roles and schemas; the extension is only created where it is absent.

do $$
declare
    v_role text;
    v_extension text;
begin
    if current_setting('server_version_num')::int < 160000 then
        raise exception 'pgsemcache needs Postgres 16 or later, this is %', current_setting('server_version')
            using hint = 'Upgrade the server.';
    end if;

    if not exists (select from pg_catalog.pg_extension where extname = 'vector') then
        begin
            create extension vector;
        exception when insufficient_privilege or undefined_file or feature_not_supported then
            raise exception 'the extension "vector" (pgvector) is not in this database, and could not be created: %', sqlerrm
                using hint = 'Install pgvector 0.8.4 or later and run, as a superuser: create extension vector;';
        end;
    end if;

    select extversion
    into v_extension
    from pg_catalog.pg_extension
    where extname = 'vector';

    if string_to_array(regexp_replace(v_extension, '[^0-9.].*$', ''), '.')::int[] < array[0, 8, 4] then
        raise exception 'pgsemcache needs pgvector 0.8.4 or later (earlier ones corrupt indexes under churn), this is %', v_extension
            using hint = 'Install a newer pgvector and run, as a superuser: alter extension vector update;';
    end if;

    foreach v_role in array array['semcache_owner', 'semcache_app', 'semcache_worker'] loop
        if to_regrole(v_role) is null then
            begin
                execute format('create role %I nologin', v_role);
            exception
                when insufficient_privilege then
                    raise exception '% may not create the role %', current_user, v_role
                        using hint = format('Run, as a superuser: alter role %I createrole;', current_user);
                when duplicate_object or unique_violation then
                    null; -- another database of this cluster was upgraded at the same moment
            end;
        end if;
        if not pg_has_role(current_user, v_role, 'set') then
            begin
                execute format('grant %I to current_user', v_role);
            exception when insufficient_privilege then
                raise exception '% may not act as %', current_user, v_role
                    using hint = format('Run, as a superuser: grant semcache_owner, semcache_app, semcache_worker to %I with admin option;', current_user);
            end;
        end if;
    end loop;

    if not exists (
        select
        from pg_catalog.pg_auth_members m
        where m.roleid = 'semcache_owner'::regrole
          and m.member = 'semcache_worker'::regrole
    ) then
        begin
            -- the worker builds indexes, which only an owner may; it takes the role for that statement alone
            grant semcache_owner to semcache_worker with inherit false, set true;
        exception when unique_violation then
            null; -- granted at the same moment from another database of this cluster
        end;
    end if;

    if to_regnamespace('semcache') is null then
        create schema semcache authorization semcache_owner;
    end if;
end
$$;

comment on schema semcache is 'pgsemcache: a semantic cache for model answers. Start with the view overview; every object has a comment.';
