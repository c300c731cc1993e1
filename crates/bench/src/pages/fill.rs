//! A long history, written as plain SQL, the same in both databases.

use jiff::{SignedDuration, Timestamp};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, SqliteConnection};

use super::Amount;
use crate::engine::Outcome;
use crate::population::Place;

/// When the history ends: just before the next fires.
pub(super) const END: &str = "2026-11-15T00:00:00Z";

/// When it begins.
pub(super) fn begin(amount: Amount) -> Timestamp {
    let end: Timestamp = END.parse().unwrap_or(Timestamp::UNIX_EPOCH);
    end - SignedDuration::from_hours(24 * i64::from(amount.days))
}

/// Jobs of all kinds, and their runs: of a hundred one is skipped, two failed, one is canceled; a hundred are at work and
/// a hundred wait.
pub(super) async fn history(place: Place<'_>, amount: Amount) -> Outcome<()> {
    match place {
        Place::Postgres(url) => {
            let mut connection = PgConnection::connect(url).await?;
            sqlx::raw_sql(AssertSqlSafe(jobs("lpad(substr(job_key, 6), 5, '0')", "substr(job_key, 6)::integer")))
                .execute(&mut connection)
                .await?;
            sqlx::raw_sql(AssertSqlSafe(postgres(amount))).execute(&mut connection).await?;
            sqlx::raw_sql("vacuum analyze").execute(&mut connection).await?;
        }
        Place::Sqlite(path) => {
            let mut connection: SqliteConnection = SqliteConnectOptions::new().filename(path).connect().await?;
            let number = "cast(substr(job_key, 6) as integer)";
            sqlx::raw_sql(AssertSqlSafe(jobs(&format!("printf('%05d', {number})"), number)))
                .execute(&mut connection)
                .await?;
            // What triggers write for each run is written below for all at once.
            let query = "select name, sql from sqlite_schema where type = 'trigger'";
            let triggers: Vec<(String, String)> = sqlx::query_as(query).fetch_all(&mut connection).await?;
            let drop = triggers.iter().map(|(name, _)| format!("drop trigger {name}"));
            let again = triggers.iter().map(|(_, sql)| sql.clone());
            let all = drop.chain([sqlite(amount)]).chain(again).chain(["analyze".to_owned()]);
            for sql in all {
                sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
            }
        }
    }
    Ok(())
}

/// Some of each kind; the job 0 is the busy one.
fn jobs(padded: &str, number: &str) -> String {
    format!(
        "delete from timers where job_id = (select id from jobs where job_key = 'template');
         delete from jobs where job_key = 'template';
         update jobs set target = 'target-' || ({number} % 20),
             labels = '{{\"team\":\"' || ({number} % 7) || '\"}}', description = 'The job of number ' || {number},
             status = case when {number} % 10 = 9 then 'retired' when {number} % 50 = 1 then 'paused' else 'active' end,
             pause_reason = case when {number} % 50 = 1 then 'because' end,
             paused_by = case when {number} % 50 = 1 then 'bench' end,
             paused_at = case when {number} % 50 = 1 then created_at end,
             consecutive_failures = case when {number} % 50 = 7 then 1 else 0 end,
             job_key = 'job-' || {padded};
         update timers set next_run_at = null where job_id in (select id from jobs where status <> 'active');"
    )
}

fn postgres(Amount { runs, days, jobs }: Amount) -> String {
    let (busy, each) = (runs / 10, runs / 10 * 9 / (jobs - 1));
    format!(
        "create temp table planned as
         select j.id as job_id, j.target, n + j.number as nonce, date_trunc('milliseconds',
           timestamptz '{END}' - interval '{days} days' * (1 - (n + random()) / j.runs)) as at
         from (select id, target, substr(job_key, 5)::integer as number,
                 case when job_key = 'job-00001' then {busy} else {each} end as runs from jobs) j
         cross join lateral generate_series(0, j.runs - 1) n;
         insert into runs (id, job_id, at, nonce, scheduled_at, created_at, trigger, target, skip_reason, skip_detail,
           catch_up, folded)
         select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0')
                 || substr(md5(job_id::text || nonce), 1, 20))::uuid, job_id, at, nonce, at, at, 'schedule:0 0 1 1 *', target,
           case when nonce % 100 = 50 then 'operator' end, case when nonce % 100 = 50 then 'bench' end, false, 0
         from planned order by at;
         insert into outcomes (run_id, status, attempt, runner_id, claimed_at, started_at, finished_at, failure_code,
           failure_message)
         select id, case when kind in (10, 60) then 'failed' when kind = 30 then 'canceled' else 'succeeded' end, 1,
           '00000000-0000-0000-0000-000000000001', late, late, late + interval '1 s' * (kind % 17),
           case when kind in (10, 30, 60) then 'handler_error' end, case when kind in (10, 30, 60) then 'it failed' end
         from (select id, nonce % 100 as kind, at + interval '1 ms' * (nonce * 37 % 900) as late from runs
               where skip_reason is null) r
         order by id;
         create temp table active as select id, job_id, target, at, row_number() over (order by id desc) as n
           from runs where skip_reason is null order by id desc limit 200;
         delete from outcomes where run_id in (select id from active);
         insert into active_runs (run_id, job_id, target, status, held, max_concurrent, attempt, available_at,
           runner_id, claimed_at, started_at, lease_until)
         select id, job_id, target, case when n <= 100 then 'pending' else 'running' end, false, 1, (n > 100)::int, at,
           case when n > 100 then '00000000-0000-0000-0000-000000000001'::uuid end, case when n > 100 then at end,
           case when n > 100 then at end, case when n > 100 then at end
         from active;
         insert into audit (id, at, actor, action, object)
         select id, at, 'bench', 'job.change', 'job:' || nonce % 1000 from runs order by id desc limit 100000;"
    )
}

fn sqlite(amount @ Amount { runs, days, jobs }: Amount) -> String {
    let (busy, each) = (runs / 10, runs / 10 * 9 / (jobs - 1));
    let (begin, length) = (begin(amount).as_millisecond(), i64::from(days) * 86_400_000);
    format!(
        "pragma temp_store = file;
         create temp table planned as
         with recursive n (n) as (select 0 union all select n + 1 from n where n < {busy} - 1),
         counted (id, target, number, n, runs) as (
           select id, target, cast(substr(job_key, 5) as integer), n, {each}
           from (select n from n limit {each}) cross join jobs where job_key <> 'job-00001'
           union all select id, target, 1, n, {busy} from n cross join jobs where job_key = 'job-00001'
         )
         select id as job_id, target, n + number as nonce,
           {begin} + cast({length} * ((n + abs(random() % 1000000) / 1000000.0) / runs) as integer) as ms
         from counted;
         insert into runs (id, job_id, at, nonce, scheduled_at, created_at, trigger, target, skip_reason, skip_detail,
           catch_up, folded)
         select unhex(printf('%012x', ms) || hex(randomblob(10))), job_id, ms * 1000, nonce, ms * 1000, ms * 1000,
           'schedule:0 0 1 1 *', target, case when nonce % 100 = 50 then 'operator' end,
           case when nonce % 100 = 50 then 'bench' end, 0, 0
         from planned order by ms;
         insert into outcomes (run_id, status, attempt, runner_id, claimed_at, started_at, finished_at, failure_code,
           failure_message)
         select id, case when kind in (10, 60) then 'failed' when kind = 30 then 'canceled' else 'succeeded' end, 1,
           x'00000000000000000000000000000001', late, late, late + 1000000 * (kind % 17),
           case when kind in (10, 30, 60) then 'handler_error' end, case when kind in (10, 30, 60) then 'it failed' end
         from (select id, nonce % 100 as kind, at + 1000 * (nonce * 37 % 900) as late from runs
               where skip_reason is null order by id);
         create temp table active as select id, job_id, target, at, row_number() over (order by id desc) as n
           from runs where skip_reason is null order by id desc limit 200;
         delete from outcomes where run_id in (select id from active);
         insert into active_runs (run_id, job_id, org_id, target, status, held, max_concurrent, attempt, available_at,
           runner_id, claimed_at, started_at, lease_until)
         select id, job_id, '', target, case when n <= 100 then 'pending' else 'running' end, 0, 1, n > 100, at,
           case when n > 100 then x'00000000000000000000000000000001' end, case when n > 100 then at end,
           case when n > 100 then at end, case when n > 100 then at end
         from active;
         insert into audit (id, at, actor, action, object)
         select id, at, 'bench', 'job.change', 'job:' || nonce % 1000 from runs order by id desc limit 100000;"
    )
}
