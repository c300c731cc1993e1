-- What is still guarded by attempt and status enters outcomes, and the trigger outcomes_end takes it out of active_runs;
-- the rest is not mentioned. The job whose failures are counted is the one in active_runs: the newest of the versions that
-- replaced that of the run, found by the run, which no trigger touches. A version that replaced none is another job.
insert into everbell_outcomes (run_id, status, attempt, runner_id, claimed_at, started_at, finished_at, failure_code,
                      failure_message, failure_details, result, output, earlier)
select a.run_id, e.value ->> 3, a.attempt, a.runner_id, a.claimed_at, a.started_at, e.value ->> 4, e.value ->> 5,
       e.value ->> 6, e.value ->> 7, e.value ->> 8, coalesce(e.value ->> 9, a.output), a.earlier
from jsonb_each(?1) e cross join everbell_active_runs a
where a.run_id = unhex(e.value ->> 0) and a.attempt = e.value ->> 1 and a.status = e.value ->> 2
returning run_id, (select v.id from everbell_runs r cross join everbell_jobs j cross join everbell_jobs v
                   where r.id = run_id and j.id = r.job_id and v.job_key = j.job_key and v.version >= j.version
                     and not exists (select 1 from everbell_jobs w where w.job_key = v.job_key and w.version > j.version
                                     and w.version <= v.version and w.supersedes_job_id is null)
                   order by v.version desc limit 1) as job_id
