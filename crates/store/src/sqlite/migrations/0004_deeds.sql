-- What a request with an Idempotency-Key did, written by the transaction that did it.
alter table everbell_requests add column deed text;

-- A run that waits until its job is resumed.
alter table everbell_active_runs add column paused integer not null default 0;
