-- The key of the job whose runs start this one; null for jobs with a clock. Which outcomes count is in `cron_expression`, as
-- `@after <outcome> <key>`: a release that does not know chains takes that for a schedule that it cannot read, and never
-- fires it.
alter table jobs add column after_key text;
-- Almost empty, and asked at the end of each run.
create index jobs_after on jobs (after_key) where after_key is not null;
