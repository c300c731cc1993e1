insert into everbell.run_counters
  (hour, job_key, target, succeeded, failed, canceled, skipped, took_runs, took_total, took_longest, delay_runs, delay_total,
  delay_longest, took_places, delay_places, failures)
select $1, job_key, target, succeeded, failed, canceled, skipped, took_runs, took_total, took_longest, delay_runs, delay_total,
  delay_longest, took_places, delay_places, failures
from unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[],
            $11::bigint[], $12::bigint[], $13::bigint[], $14::text[], $15::text[], $16::text[])
  as c (job_key, target, succeeded, failed, canceled, skipped, took_runs, took_total, took_longest, delay_runs, delay_total,
  delay_longest, took_places, delay_places, failures)
-- A job may have been purged since its runs were read.
where c.job_key = '' or exists (select from everbell.jobs j where j.job_key = c.job_key)
