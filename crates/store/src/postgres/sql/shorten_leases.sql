-- A remote side may be silent for as long as it was granted, which may be longer than the lease of an instance.
update everbell.active_runs
set lease_until = $1::timestamptz + case when runner_id = '00000000-0000-0000-0000-000000000000'
                            then coalesce(remote_lease, 0) * interval '1 millisecond' else interval '0' end
where status = 'running' and lease_until > $1::timestamptz + case when runner_id = '00000000-0000-0000-0000-000000000000'
                            then coalesce(remote_lease, 0) * interval '1 millisecond' else interval '0' end
