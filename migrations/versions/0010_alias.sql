-- Aliases: entries of requests that were found to be answered by another request's entry.

alter table entry add column alias_of uuid references entry on delete set null;

create index entry_alias on entry (alias_of) where alias_of is not null;

comment on column entry.alias_of is 'The entry whose answer a judge found right for this request too; both share the output. Null: an entry of its own.';
