-- Current jobs with a priority: due timers of their targets are planned in large batches, so that the most urgent can start.
create index jobs_ranked on jobs (target) where status <> 'retired' and position('"priority":' in policies) > 0;
