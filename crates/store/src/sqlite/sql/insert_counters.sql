insert into everbell_run_counters
  (hour, job_key, target, succeeded, failed, canceled, skipped, took_runs, took_total, took_longest, delay_runs, delay_total,
  delay_longest, took_places, delay_places, failures)
select ?1, value ->> 0, value ->> 1, value ->> '$[2][0]', value ->> '$[2][1]', value ->> '$[2][2]', value ->> '$[2][3]', value ->> '$[2][4]',
       value ->> '$[2][5]', value ->> '$[2][6]', value ->> '$[2][7]', value ->> '$[2][8]', value ->> '$[2][9]',
       value ->> '$[3][0]', value ->> '$[3][1]', value ->> '$[3][2]'
from json_each(?2)
-- A job may have been purged since its runs were read.
where value ->> 0 = '' or exists (select 1 from everbell_jobs j where j.job_key = value ->> 0)
