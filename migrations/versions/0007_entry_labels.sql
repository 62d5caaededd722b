-- Beside an entry's fit: how often its answer was found right and wrong.

alter table entry_fit
    add column confirmed integer not null default 0,
    add column refuted integer not null default 0,
    alter column slope drop not null,
    alter column middle drop not null,
    alter column variance drop not null,
    alter column n drop not null;

comment on table entry_fit is 'What labels say of single entries, and for the policy verified: P(correct | s) = sigmoid(slope (s - middle)). The fit is null where there are too few.';
comment on column entry_fit.confirmed is 'How many labelled requests near the entry its answer was right for.';
comment on column entry_fit.refuted is 'How many it was wrong for.';
