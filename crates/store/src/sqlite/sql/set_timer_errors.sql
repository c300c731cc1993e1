update everbell_timers set error = g.error
from (select unhex(value ->> 0) as job_id, value ->> 1 as org_id, value ->> 2 as error from json_each(?1)) g
where everbell_timers.job_id = g.job_id and everbell_timers.org_id = g.org_id
