-- Current jobs with a priority: due timers of their targets are planned in large batches, so that the most urgent can start.
-- With `is true`, no plan that was made while the table was empty takes the index of all current jobs instead.
create index jobs_ranked on jobs (target) where (status <> 'retired' and position('"priority":' in policies) > 0) is true;
