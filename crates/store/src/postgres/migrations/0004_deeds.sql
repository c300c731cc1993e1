-- What a request with an Idempotency-Key did, written by the transaction that did it.
alter table requests add column deed text;

-- A run that waits until its job is resumed.
alter table active_runs add column paused boolean not null default false;
