select status, schedule_type, count(*) as jobs, count(error) as errored from everbell_jobs group by status, schedule_type
