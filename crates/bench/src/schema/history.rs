//! A long history: how large it is, how fast it is read, and how fast runs start from a long queue.

use everbell_store::testing::TestDatabase;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use uuid::Uuid;

use super::layout::{B_START, LEAN_INDEXES, LEAN_START, Layout, PROPOSED_INDEXES};
use super::life::{NOW, all_targets, prepare};
use super::rows::{EPOCH, PAYLOAD, RARE_TARGET, TARGETS, TRIGGER, job};
use super::{Plan, indexes, median};
use crate::measure::Stopwatch;
use crate::micros::Micros;
use crate::table::{Table, thousands};

pub(super) async fn run(plan: &Plan, server: &str) -> sqlx::Result<()> {
    let database = TestDatabase::create_on(server).await;
    let url = database.url();
    prepare(url, Layout::Bare, plan.timers).await?;
    let mut connection = PgConnection::connect(url).await?;
    load(plan, &mut connection).await?;
    reads(plan, &mut connection).await?;
    backlog(plan, &mut connection).await?;
    indexes::run(plan, url).await?;
    indexes::settings(plan, server).await
}

/// One run a second; three of ten are of job 0, one of 40,000 is of job 1, one of 25,000 is for the rare target, one of a
/// thousand failed.
async fn load(plan: &Plan, connection: &mut PgConnection) -> sqlx::Result<()> {
    let (others, targets, total) = (plan.timers - 2, TARGETS.join("','"), plan.history);
    let runs = format!(
        "insert into runs
select (lpad(to_hex({EPOCH} / 1000 - ({total} - i) * 1000), 12, '0') || '8' || substr(md5(i::text), 1, 3) || '8' || substr(md5(i::text), 4, 15))::uuid,
  s.job_id, s.org_id, at, at, at, '{TRIGGER}', case when i % 25000 = 3 then '{RARE_TARGET}' else (array['{targets}'])[(i % 4 + 1)::int] end,
  case when i % 10 = 9 then '{PAYLOAD}' end, null, null, false, 0, '2027-01-15'
from generate_series(0::bigint, {total} - 1) i
cross join lateral (select to_timestamp({EPOCH} / 1000000 - ({total} - i)) at) t
join seed s on s.n = case when i % 10 < 3 then 0 when i % 40000 = 17 then 1 else 2 + (i * 7919) % {others} end
order by i"
    );
    let outcomes = "insert into outcomes
select id, case when ('x' || right(id::text, 4))::bit(16)::int < 66 then 3 else 2 end, 1, '00000000-0000-8000-8000-000000000001',
  scheduled_at, scheduled_at, scheduled_at, case when ('x' || right(id::text, 4))::bit(16)::int < 66 then 'http_status' end,
  case when ('x' || right(id::text, 4))::bit(16)::int < 66 then '503 Service Unavailable' end from runs order by id";
    connection.execute(AssertSqlSafe(runs)).await?;
    connection.execute(outcomes).await?;
    connection.execute("vacuum analyze").await?;
    Ok(())
}

const INDEX_SETS: [(&str, &str); 3] = [
    ("proposed", PROPOSED_INDEXES),
    ("lean", LEAN_INDEXES),
    ("lean + runs (target, id)", "create index runs_target on runs (target, id);"),
];
const DROP_PROPOSED: &str =
    "drop index runs_slot, runs_scheduled, active_runs_job, active_runs_target, outcomes_not_succeeded";
const DROP_LEAN: &str = "drop index runs_job, active_runs_job, outcomes_not_succeeded, runs_target";

async fn reads(plan: &Plan, connection: &mut PgConnection) -> sqlx::Result<()> {
    let questions = questions(plan, connection).await?;
    let mut sizes = Table::new(1, &["what", "bytes per run", "MB per 1,000,000 runs"]);
    let mut times: Vec<Vec<String>> = questions.iter().map(|(name, _)| vec![(*name).to_owned()]).collect();
    for (at, (_, indexes)) in INDEX_SETS.iter().enumerate() {
        connection.execute(*indexes).await?;
        connection.execute("analyze").await?;
        for ((_, sql), row) in questions.iter().zip(&mut times) {
            row.push(format!("{:.2}", median_ms(connection, sql).await?));
        }
        if at != 1 {
            add_sizes(plan, connection, &mut sizes, at == 0).await?;
        }
        if at == 0 {
            connection.execute(DROP_PROPOSED).await?;
        }
    }
    connection.execute(DROP_LEAN).await?;
    let names: Vec<&str> = INDEX_SETS.iter().map(|(name, _)| *name).collect();
    let mut table = Table::new(1, &[&["newest first by id, 50 at a time"], names.as_slice()].concat());
    for row in times {
        table.row(row);
    }
    table.print(&format!("## PostgreSQL: reading {} runs, ms by indexes", thousands(plan.history as u64)));
    sizes.print("## PostgreSQL: size");
    Ok(())
}

const RUN: &str = "select r.*, o.*, a.status, a.attempt from runs r left join outcomes o on o.run_id = r.id left join active_runs a on a.run_id = r.id";

async fn questions(plan: &Plan, connection: &mut PgConnection) -> sqlx::Result<Vec<(&'static str, String)>> {
    let deep = (plan.history / 20).min(50_000);
    let deep = format!("select id from runs order by id desc offset {deep} limit 1");
    let deep: Uuid = sqlx::query_scalar(AssertSqlSafe(deep)).fetch_one(&mut *connection).await?;
    let first_at = |share: i64| {
        let millis = EPOCH / 1000 - plan.history * 1000 / 100 * share;
        Uuid::from_u128((millis as u128) << 80)
    };
    let newest = |condition: String| format!("{RUN} where {condition} order by r.id desc limit 50");
    let (from, to) = (first_at(81), first_at(80));
    let failed = "select r.*, o.* from outcomes o join runs r on r.id = o.run_id where o.status > 2 and o.status = 3";
    Ok(vec![
        ("newest", newest("true".to_owned())),
        ("1,000 pages deep", newest(format!("r.id < '{deep}'"))),
        ("a time range deep in the past", newest(format!("r.id >= '{from}' and r.id < '{to}'"))),
        ("a job with 30 % of the runs", newest(format!("r.job_id = '{}'", job(0)))),
        ("a job with 25 runs", newest(format!("r.job_id = '{}'", job(1)))),
        ("a job with about 35 runs in an org", newest(format!("r.job_id = '{}' and r.org_id = 'org_004'", job(4)))),
        ("an org (org_004)", newest("r.org_id = 'org_004'".to_owned())),
        ("failed (0.1 %)", format!("{failed} order by o.run_id desc limit 50")),
        (
            "failed, of the job with 30 %",
            format!("{failed} and r.job_id = '{}' order by o.run_id desc limit 50", job(0)),
        ),
        ("a target with a quarter of the runs", newest(format!("r.target = '{}'", TARGETS[1]))),
        ("a target with 40 runs", newest(format!("r.target = '{RARE_TARGET}'"))),
    ])
}

async fn median_ms(connection: &mut PgConnection, sql: &str) -> sqlx::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..10 {
        let watch = Stopwatch::start();
        sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(&mut *connection).await?;
        times.push(watch.seconds() * 1000.0);
    }
    times.remove(0);
    Ok(median(times))
}

async fn add_sizes(plan: &Plan, connection: &mut PgConnection, table: &mut Table, is_first: bool) -> sqlx::Result<()> {
    let sql = "select c.oid::regclass::text, pg_relation_size(c.oid) from pg_class c left join pg_index i on i.indexrelid = c.oid
where coalesce(i.indrelid, c.oid) in ('runs'::regclass, 'outcomes'::regclass) and c.relkind in ('r', 'i') order by 1";
    let sizes: Vec<(String, i64)> = sqlx::query_as(sql).fetch_all(&mut *connection).await?;
    // What the second set shares with the first is not said again.
    for (name, bytes) in sizes {
        if is_first || ["runs_job", "runs_target"].contains(&name.as_str()) {
            let (each, total) = (bytes / plan.history, bytes as f64 / plan.history as f64 * 1e6 / (1024.0 * 1024.0));
            table.row(vec![name, each.to_string(), format!("{total:.0}")]);
        }
    }
    Ok(())
}

/// How long it takes to start 100 runs when many are pending.
async fn backlog(plan: &Plan, connection: &mut PgConnection) -> sqlx::Result<()> {
    let pending = plan.history / 10;
    let fill = format!(
        "insert into active_runs select id, job_id, org_id, target, 0, false, 0, scheduled_at, null, null, null, null, false, scheduled_at
from runs order by id limit {pending}"
    );
    connection.execute(AssertSqlSafe(fill)).await?;
    let mut table = Table::new(1, &["order, index of active_runs", "all targets, ms", "one idle target, ms"]);
    let candidates = [
        ("(scheduled_at, run_id), primary key only", B_START, ""),
        ("the same, (target, available_at)", B_START, "(target, available_at)"),
        ("the same, (target, scheduled_at, run_id)", B_START, "(target, scheduled_at, run_id)"),
        ("the same, (scheduled_at, run_id)", B_START, "(scheduled_at, run_id)"),
        ("run_id, primary key only", LEAN_START, ""),
        ("run_id, (target, run_id)", LEAN_START, "(target, run_id)"),
    ];
    for (name, sql, columns) in candidates {
        if !columns.is_empty() {
            connection.execute(AssertSqlSafe(format!("create index candidate on active_runs {columns}"))).await?;
        }
        connection.execute("vacuum analyze active_runs").await?;
        let all = start_ms(connection, sql, &all_targets()).await?;
        let idle = start_ms(connection, sql, &[RARE_TARGET]).await?;
        table.row(vec![name.to_owned(), format!("{all:.1}"), format!("{idle:.1}")]);
        connection.execute("drop index if exists candidate").await?;
    }
    connection.execute("truncate active_runs").await?;
    table
        .print(&format!("## PostgreSQL: starting 100 runs from a queue of {} pending ones", thousands(pending as u64)));
    Ok(())
}

async fn start_ms(connection: &mut PgConnection, sql: &'static str, targets: &[&str]) -> sqlx::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..6 {
        let mut transaction = connection.begin().await?;
        let watch = Stopwatch::start();
        let start = sqlx::query(sql).bind(NOW).bind(targets).bind(100_i64).bind(Uuid::from_u128(1)).bind(NOW);
        start.fetch_all(&mut *transaction).await?;
        times.push(watch.seconds() * 1000.0);
        transaction.rollback().await?;
    }
    times.remove(0);
    Ok(median(times))
}

/// Milliseconds of a look at the timers that finds nothing due.
pub(super) async fn empty_poll(connection: &mut PgConnection) -> sqlx::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..6 {
        let watch = Stopwatch::start();
        let poll = sqlx::query(Layout::Lean.due()).bind(Micros(EPOCH - 1)).bind(100_i64);
        poll.fetch_all(&mut *connection).await?;
        times.push(watch.seconds() * 1000.0);
    }
    // The first of them pays for entries that nobody has found dead before; it is the one that counts.
    Ok(times[0])
}
