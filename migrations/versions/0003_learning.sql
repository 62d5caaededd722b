-- What the cache learns from: features of prompts, labelled observations, and what is fitted on them.

alter table output add column answer_key bytea check (octet_length(answer_key) = 32);

comment on column output.answer_key is 'SHA-256 of the normalised answer: entries with equal keys say the same. Null where it is not known.';

create table feature (
    entry_id uuid primary key references entry on delete cascade,
    tenant_id bigint not null references tenant,
    version smallint not null,
    content text[],
    frame text[],
    numbers text[],
    ordinals text[],
    dates text[],
    versions text[],
    identifiers text[],
    urls text[],
    quotes text[],
    code text[],
    negated text[],
    roles text[],
    degrees text[],
    aspects text[],
    question text[],
    names text[],
    languages text[],
    persons text[],
    cased text[],
    inner_words text[],
    accented text[],
    symbols text[],
    script text[]
);

comment on table feature is 'What the guards compare of each prompt that has a vector. A feature is null where the prompt has none.';
comment on column feature.entry_id is 'The entry whose prompt it is.';
comment on column feature.tenant_id is 'The tenant that owns the entry.';
comment on column feature.version is 'Version of the extraction.';
comment on column feature.content is 'Stems of the content words in order; a number begins with #, a date or time with @, an identifier or version with $.';
comment on column feature.frame is 'The words of relation in order, with _ for each content word.';
comment on column feature.numbers is 'Numbers in plain digits with their units.';
comment on column feature.ordinals is 'Ordinal numbers.';
comment on column feature.dates is 'Dates and times.';
comment on column feature.versions is 'Versions of software and the like.';
comment on column feature.identifiers is 'Identifiers: letters with digits or signs.';
comment on column feature.urls is 'Web addresses.';
comment on column feature.quotes is 'Quoted strings.';
comment on column feature.code is 'Pieces of code.';
comment on column feature.negated is 'What is negated, by a word or by a syllable.';
comment on column feature.roles is 'What follows an asymmetric relation, as from:oslo.';
comment on column feature.degrees is 'Comparatives and superlatives.';
comment on column feature.aspects is 'What was once, or begins to be.';
comment on column feature.question is 'What kind of thing is asked for.';
comment on column feature.names is 'Proper names.';
comment on column feature.languages is 'Languages that are named.';
comment on column feature.persons is 'Grammatical persons.';
comment on column feature.cased is 'All words as written.';
comment on column feature.inner_words is 'Words as written whose letter case is the writer''s choice.';
comment on column feature.accented is 'Words with accents.';
comment on column feature.symbols is 'Signs that carry a meaning.';
comment on column feature.script is 'The main script.';

alter table observation
    add column request_id uuid,
    add column embedder_id integer references embedder,
    add column rank smallint,
    add column signals real[],
    add column signals_version smallint,
    add column answer_key bytea check (octet_length(answer_key) = 32),
    add column probability real,
    add column served boolean not null default false,
    add column policy text check (policy in ('threshold', 'calibrated', 'verified')),
    add column inclusion real check (inclusion > 0 and inclusion <= 1),
    drop constraint observation_source_check,
    add constraint observation_source_check check (source in ('feedback', 'exploration', 'shadow', 'judge', 'audit'));

comment on column observation.source is 'Who says so: a caller, or a comparison with a fresh answer after an exploration, in shadow or in an audit, or a judge.';
comment on column observation.request_id is 'Groups the candidates of one request; null for a verdict on an entry alone.';
comment on column observation.embedder_id is 'The embedder that the similarity and the signals are of.';
comment on column observation.rank is 'Place of the candidate among those of its request, the nearest 0.';
comment on column observation.signals is 'What a model is shown of the candidate, as it was at the decision; null where a guard blocked it.';
comment on column observation.signals_version is 'Version of the signals: those of another are not learned from.';
comment on column observation.answer_key is 'SHA-256 of the candidate''s normalised answer: what is right or wrong together.';
comment on column observation.probability is 'Probability of being right that the policy gave it; null where it had none.';
comment on column observation.served is 'Whether the request got this candidate''s answer.';
comment on column observation.policy is 'The policy that decided.';
comment on column observation.inclusion is 'Probability with which a request as this one was drawn to be observed; its inverse is its weight. Null where it was not drawn at random, and then it carries no bound.';

create table calibration (
    tenant_id bigint not null references tenant,
    cache_id bigint not null references cache,
    embedder_id integer not null references embedder,
    model jsonb,
    frequencies jsonb not null,
    pooled jsonb,
    observations integer not null,
    learned bigint not null,
    fitted_at timestamptz not null default now(),
    tightened_at timestamptz,
    primary key (cache_id, embedder_id)
);

comment on table calibration is 'What a worker fitted for a cache, from its observations of the last window.';
comment on column calibration.tenant_id is 'The tenant that owns the cache.';
comment on column calibration.cache_id is 'The cache.';
comment on column calibration.embedder_id is 'The embedder whose similarities it is about.';
comment on column calibration.model is 'The policy calibrated: budget, boundary and model of the probability that an answer is right.';
comment on column calibration.frequencies is 'In how many of the cache''s entries a content word stands: {"total": n, "counts": {word: n}}, the most frequent only.';
comment on column calibration.pooled is 'The policy verified: the fit over all entries; null where there are too few observations.';
comment on column calibration.observations is 'How many labelled requests it rests on.';
comment on column calibration.learned is 'The last observation that was there when it was fitted: a later one wants another fit.';
comment on column calibration.fitted_at is 'When it was fitted.';
comment on column calibration.tightened_at is 'When an alarm of drift threw away what was learned: older observations are not learned from again. Null: never.';

create table entry_fit (
    entry_id uuid not null references entry on delete cascade,
    embedder_id integer not null references embedder,
    tenant_id bigint not null references tenant,
    slope double precision not null,
    middle double precision not null,
    variance double precision not null,
    n integer not null,
    primary key (entry_id, embedder_id)
);

comment on table entry_fit is 'The policy verified, per entry: P(correct | s) = sigmoid(slope (s - middle)).';
comment on column entry_fit.entry_id is 'The entry.';
comment on column entry_fit.embedder_id is 'The embedder whose similarity s is.';
comment on column entry_fit.tenant_id is 'The tenant that owns the entry.';
comment on column entry_fit.slope is 'Slope of the sigmoid.';
comment on column entry_fit.middle is 'Similarity at which right and wrong are equally probable.';
comment on column entry_fit.variance is 'Variance of the middle.';
comment on column entry_fit.n is 'How many observations it rests on, two seeds included.';

do $$
declare
    v_table text;
begin
    foreach v_table in array array['feature', 'calibration', 'entry_fit'] loop
        execute format('alter table %I enable row level security', v_table);
        execute format('alter table %I force row level security', v_table);
        execute format(
            'create policy own_tenant on %I using (tenant_id = (select current_tenant())) with check (tenant_id = (select current_tenant()))',
            v_table
        );
        execute format('create policy worker on %I to semcache_worker using (true) with check (true)', v_table);
        execute format('comment on policy own_tenant on %I is %L', v_table, 'Only rows of the tenant in semcache.tenant_id.');
        execute format('comment on policy worker on %I is %L', v_table, 'The worker cares for all tenants.');
    end loop;
end
$$;

grant select, insert, delete on feature to semcache_app, semcache_worker;
grant select on calibration, entry_fit to semcache_app;
grant select, insert, update, delete on calibration, entry_fit to semcache_worker;
