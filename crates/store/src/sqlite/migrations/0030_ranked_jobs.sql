-- Current jobs with a priority: due timers of their targets are planned in large batches, so that the most urgent can start.
create index everbell_jobs_ranked on everbell_jobs (target) where status <> 'retired' and instr(policies, '"priority":') > 0;
