delete from everbell.gaps where id = any(array(select id from everbell.gaps where job_id = any($1) limit $2))
