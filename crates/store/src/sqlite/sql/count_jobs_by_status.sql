select status, schedule_type, count(*) as jobs, count(error) as errored from jobs group by status, schedule_type
