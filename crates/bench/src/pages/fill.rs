//! A long history, written as plain SQL, the same in both databases.

use jiff::{SignedDuration, Timestamp};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, SqliteConnection};

use super::Amount;
use crate::engine::Outcome;
use crate::population::Database;

/// The end of a history whose times do not matter: just before the next fires.
pub(super) const END: Timestamp = Timestamp::constant(1_794_700_800, 0);
/// The number of jobs with a tenth of all runs each, and of those with a five-hundredth.
pub(super) const BUSY: u32 = 2;
const LIVELY: u32 = 100;

/// Returns the start of the history.
pub(super) fn begin(amount: Amount) -> Timestamp {
    amount.end - SignedDuration::from_hours(24 * i64::from(amount.days))
}

/// How many runs a job of this number has, in SQL.
fn runs_of_job(number: &str, Amount { jobs, runs, .. }: Amount) -> String {
    let (most, many) = (runs / 10, runs / 500);
    let few = (runs - BUSY * most - LIVELY * many) / (jobs - BUSY - LIVELY);
    format!("case when {number} <= {BUSY} then {most} when {number} <= {BUSY} + {LIVELY} then {many} else {few} end")
}

/// Jobs of all kinds, and their runs: of a hundred one is skipped, two failed, one is canceled, two are by hand and two of
/// no job; a hundred are at work and a hundred wait.
pub(super) async fn history(place: Database<'_>, amount: Amount) -> Outcome<()> {
    match place {
        Database::Postgres(url) => {
            let mut connection = PgConnection::connect(url).await?;
            let number = "substr(job_key, 6)::integer";
            let later = format!("next_run_at + interval '1 hour' + interval '1 s' * ({number} * 7919 % 2592000)");
            let sql = jobs("lpad(substr(job_key, 6), 5, '0')", number, &later);
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
            sqlx::raw_sql(AssertSqlSafe(postgres(amount))).execute(&mut connection).await?;
            sqlx::raw_sql("vacuum analyze").execute(&mut connection).await?;
        }
        Database::Sqlite(path) => {
            let mut connection: SqliteConnection = SqliteConnectOptions::new().filename(path).connect().await?;
            let number = "cast(substr(job_key, 6) as integer)";
            let later = format!("next_run_at + 1000000 * (3600 + {number} * 7919 % 2592000)");
            let sql = jobs(&format!("printf('%05d', {number})"), number, &later);
            sqlx::raw_sql(AssertSqlSafe(sql.replace("everbell.", "everbell_"))).execute(&mut connection).await?;
            // What triggers write for each run is written below for all at once.
            let query = "select name, sql from sqlite_schema where type = 'trigger'";
            let triggers: Vec<(String, String)> = sqlx::query_as(query).fetch_all(&mut connection).await?;
            let drop = triggers.iter().map(|(name, _)| format!("drop trigger {name}"));
            let again = triggers.iter().map(|(_, sql)| sql.clone());
            let all = drop.chain([sqlite(amount)]).chain(again).chain(["analyze".to_owned()]);
            for sql in all {
                let sql = sql.replace("everbell.", "everbell_");
                sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
            }
        }
    }
    Ok(())
}

/// Some of each kind; the first are the busy ones.
fn jobs(padded: &str, number: &str, later: &str) -> String {
    format!(
        "delete from everbell.timers where job_id = (select id from everbell.jobs where job_key = 'template');
         delete from everbell.jobs where job_key = 'template';
         update everbell.timers set next_run_at = (select {later} from everbell.jobs where id = job_id),
             target = (select 'target-' || ({number} % 20) from everbell.jobs where id = job_id);
         update everbell.jobs set target = 'target-' || ({number} % 20),
             cron_expression = case {number} % 4 when 0 then '*/5 * * * *' when 1 then '30 2 * * *'
                               when 2 then '0 8 * * mon-fri' else '15 4 1 * *' end,
             timezone = case {number} % 3 when 0 then 'UTC' when 1 then 'America/New_York' else 'Europe/Berlin' end,
             labels = '{{\"team\":\"' || ({number} % 7) || '\"}}', description = 'The job of number ' || {number},
             status = case when {number} % 10 = 9 then 'retired' when {number} % 50 = 1 then 'paused' else 'active' end,
             error = case when {number} % 200 = 3 then 'the zone is gone' end,
             pause_reason = case when {number} % 50 = 1 then 'because' end,
             paused_by = case when {number} % 50 = 1 then 'bench' end,
             paused_at = case when {number} % 50 = 1 then created_at end,
             consecutive_failures = case when {number} % 50 = 7 then 1 else 0 end,
             job_key = 'job-' || {padded};
         update everbell.timers set next_run_at = null where job_id in (select id from everbell.jobs where status <> 'active');"
    )
}

/// The cause, status, failure code and output of a run, by its number.
const TRIGGER: &str = "case nonce % 50 when 7 then 'manual:ann' when 8 then 'ad_hoc:ann' else 'schedule:0 0 1 1 *' end";
const STATUS: &str = "case when kind in (10, 60) then 'failed' when kind = 30 then 'canceled' else 'succeeded' end";
const CODE: &str = "case kind when 10 then 'handler_error' when 60 then 'timeout' when 30 then 'canceled' end";
const OUTPUT: &str = "case when kind % 5 = 0 then 'begun, worked on what there was, and ended as it should' end";

/// Sets the last run of each timer.
const LAST_RUNS: &str = "update everbell.timers as timers set (last_run_at, last_run_id) = (
    select r.at, r.id from everbell.runs r where r.job_id = timers.job_id order by r.at desc, r.id desc limit 1)";

fn postgres(amount @ Amount { end, days, .. }: Amount) -> String {
    let runs = runs_of_job("number", amount);
    let instance = |number: &str| format!("lpad(({number})::text, 32, '0')::uuid");
    let (own, other) = (instance("1 + kind % 3"), instance("1"));
    format!(
        "create temp table planned as
         select j.id as job_id, j.target, n + j.number as nonce, date_trunc('milliseconds',
           timestamptz '{end}' - interval '{days} days' * (1 - (n + random()) / j.runs)) as at
         from (select id, target, number, {runs} as runs
               from (select id, target, substr(job_key, 5)::integer as number from everbell.jobs) named) j
         cross join lateral generate_series(0, j.runs - 1) n;
         insert into everbell.runs (id, job_id, at, nonce, scheduled_at, created_at, trigger, target, skip_reason, skip_detail,
           catch_up, folded)
         select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0')
                 || substr(md5(job_id::text || nonce), 1, 20))::uuid,
           case when nonce % 50 <> 8 then job_id end, at, nonce, at, at, {TRIGGER}, target,
           case when nonce % 100 = 50 then 'operator' end, case when nonce % 100 = 50 then 'bench' end, false, 0
         from planned order by at;
         insert into everbell.outcomes (run_id, status, attempt, runner_id, claimed_at, started_at, finished_at, failure_code,
           failure_message, output)
         select id, {STATUS}, 1, {own}, late, late, late + interval '1 s' * (kind % 17), {CODE},
           case when {STATUS} <> 'succeeded' then 'it failed' end, {OUTPUT}
         from (select id, nonce % 100 as kind, at + interval '1 ms' * (nonce * 37 % 900) as late from everbell.runs
               where skip_reason is null) r
         order by id;
         create temp table active as select id, job_id, target, at, row_number() over (order by id desc) as n
           from everbell.runs where skip_reason is null order by id desc limit 200;
         delete from everbell.outcomes where run_id in (select id from active);
         insert into everbell.active_runs (run_id, job_id, target, status, held, max_concurrent, attempt, available_at,
           runner_id, claimed_at, started_at, lease_until)
         select id, job_id, target, case when n <= 100 then 'pending' else 'running' end, false, 1, (n > 100)::int, at,
           case when n > 100 then {other} end, case when n > 100 then at end,
           case when n > 100 then at end, case when n > 100 then timestamptz '{end}' + interval '1 day' end
         from active;
         insert into everbell.gaps (id, job_id, first_slot_at, last_slot_at, slots, reason, created_at)
         select id, job_id, at, at, 1, 'missed', at from everbell.runs where nonce % 20 = 3 and job_id is not null;
         insert into everbell.audit (id, at, actor, action, object)
         select id, at, 'bench', 'job.change', 'job:' || nonce % 1000 from everbell.runs order by id desc limit 100000;
         {LAST_RUNS};"
    )
}

fn sqlite(amount @ Amount { end, days, .. }: Amount) -> String {
    let (begin, length) = (begin(amount).as_millisecond(), i64::from(days) * 86_400_000);
    let (runs, most, tomorrow) =
        (runs_of_job("number", amount), amount.runs / 10, end.as_microsecond() + 86_400_000_000);
    let instance = |number: &str| format!("unhex(printf('%032d', {number}))");
    let (own, other) = (instance("1 + kind % 3"), instance("1"));
    format!(
        "pragma temp_store = file;
         create temp table numbers (n integer primary key);
         insert into numbers with recursive n (n) as (select 0 union all select n + 1 from n where n < {most} - 1)
         select n from n;
         create temp table planned as
         select id as job_id, target, n + number as nonce,
           {begin} + cast({length} * ((n + abs(random() % 1000000) / 1000000.0) / runs) as integer) as ms
         from (select id, target, number, {runs} as runs
               from (select id, target, cast(substr(job_key, 5) as integer) as number from everbell.jobs) named) j
         cross join numbers on n < j.runs;
         insert into everbell.runs (id, job_id, at, nonce, scheduled_at, created_at, trigger, target, skip_reason, skip_detail,
           catch_up, folded)
         select unhex(printf('%012x', ms) || hex(randomblob(10))), case when nonce % 50 <> 8 then job_id end, ms * 1000,
           nonce, ms * 1000, ms * 1000, {TRIGGER}, target, case when nonce % 100 = 50 then 'operator' end,
           case when nonce % 100 = 50 then 'bench' end, 0, 0
         from planned order by ms;
         insert into everbell.outcomes (run_id, status, attempt, runner_id, claimed_at, started_at, finished_at, failure_code,
           failure_message, output)
         select id, {STATUS}, 1, {own}, late, late, late + 1000000 * (kind % 17), {CODE},
           case when {STATUS} <> 'succeeded' then 'it failed' end, {OUTPUT}
         from (select id, nonce % 100 as kind, at + 1000 * (nonce * 37 % 900) as late from everbell.runs
               where skip_reason is null order by id);
         create temp table active as select id, job_id, target, at, row_number() over (order by id desc) as n
           from everbell.runs where skip_reason is null order by id desc limit 200;
         delete from everbell.outcomes where run_id in (select id from active);
         insert into everbell.active_runs (run_id, job_id, org_id, target, status, held, max_concurrent, attempt, available_at,
           runner_id, claimed_at, started_at, lease_until)
         select id, job_id, '', target, case when n <= 100 then 'pending' else 'running' end, 0, 1, n > 100, at,
           case when n > 100 then {other} end, case when n > 100 then at end,
           case when n > 100 then at end, case when n > 100 then {tomorrow} end
         from active;
         insert into everbell.gaps (id, job_id, first_slot_at, last_slot_at, slots, reason, created_at)
         select id, job_id, at, at, 1, 'missed', at from everbell.runs where nonce % 20 = 3 and job_id is not null;
         insert into everbell.audit (id, at, actor, action, object)
         select id, at, 'bench', 'job.change', 'job:' || nonce % 1000 from everbell.runs order by id desc limit 100000;
         {LAST_RUNS};"
    )
}
