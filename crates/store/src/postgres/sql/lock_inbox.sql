-- And no long wait for the key of its job, which an application may have locked: others would wait for this request.
select id from everbell.inbox, set_config('lock_timeout', '200ms', true)
where id = $1 and answered_at is null for update of inbox skip locked
