delete from everbell.backfills where job_key = $1
