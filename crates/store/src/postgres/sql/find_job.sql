-- The living version, of which there is one at the most, or else the newest.
select id from everbell.jobs where job_key = $1 order by (status <> 'retired') desc, version desc limit 1
