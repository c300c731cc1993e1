delete from everbell_backfills where job_key = ?1
