//! A long history in SQLite: how large it is and how fast it is read.

use sqlx::{AssertSqlSafe, Executor, SqliteConnection};
use uuid::Uuid;

use super::rows::{EPOCH, PAYLOAD, RARE_TARGET, TARGETS, TRIGGER, job};
use super::sqlite::{Folder, connect, prepare};
use super::sqlite_layout::Layout;
use super::{Plan, median};
use crate::measure::Stopwatch;
use crate::table::{Table, thousands};

const LAYOUTS: [Layout; 3] = [Layout::B, Layout::Lean, Layout::Clustered];

pub(super) async fn run(plan: &Plan) -> sqlx::Result<()> {
    let folder = Folder::create()?;
    let mut sizes = Table::new(1, &["layout", "bytes per run", "MB per 1,000,000 runs"]);
    let mut times: Vec<Vec<String>> = questions(plan).iter().map(|(name, _)| vec![(*name).to_owned()]).collect();
    for layout in LAYOUTS {
        let mut connection = connect(&folder.file(&format!("{layout:?}.db"))).await?;
        prepare(&mut connection, layout, plan.timers).await?;
        load(plan, &mut connection).await?;
        for ((_, sql), row) in questions(plan).into_iter().zip(&mut times) {
            row.push(format!("{:.2}", median_ms(&mut connection, &sql).await?));
        }
        let size = "select page_count * page_size from pragma_page_count, pragma_page_size";
        let bytes: i64 = sqlx::query_scalar(size).fetch_one(&mut connection).await?;
        let total = bytes as f64 / plan.history as f64 * 1e6 / (1024.0 * 1024.0);
        sizes.row(vec![layout.name().to_owned(), (bytes / plan.history).to_string(), format!("{total:.0}")]);
    }
    let names: Vec<&str> = LAYOUTS.iter().map(|layout| layout.name()).collect();
    let mut table = Table::new(1, &[&["newest first by id, 50 at a time"], names.as_slice()].concat());
    for row in times {
        table.row(row);
    }
    table.print(&format!("## SQLite: reading {} runs, ms", thousands(plan.history as u64)));
    sizes.print("## SQLite: size of runs and outcomes with their indexes");
    Ok(())
}

/// The same history as on PostgreSQL.
async fn load(plan: &Plan, connection: &mut SqliteConnection) -> sqlx::Result<()> {
    let (others, total) = (plan.timers - 2, plan.history);
    let target = (0..4).map(|n| format!("when {n} then '{}'", TARGETS[n])).collect::<Vec<_>>().join(" ");
    let runs = format!(
        "with recursive series (i) as (select 0 union all select i + 1 from series where i < {total} - 1)
insert into runs select unhex(printf('%012x8%03x8%015x', {EPOCH} / 1000 - ({total} - i) * 1000, i % 4096, (i * 2654435761) & 0xfffffffffff)),
  s.job_id, s.org_id, {EPOCH} - ({total} - i) * 1000000, {EPOCH} - ({total} - i) * 1000000, {EPOCH} - ({total} - i) * 1000000,
  '{TRIGGER}', case when i % 25000 = 3 then '{RARE_TARGET}' else case i % 4 {target} end end,
  case when i % 10 = 9 then '{PAYLOAD}' end, null, null, 0, 0, '2027-01-15'
from series cross join seed s on s.n = case when i % 10 < 3 then 0 when i % 40000 = 17 then 1 else 2 + (i * 7919) % {others} end"
    );
    let outcomes = "insert into outcomes
select id, case when scheduled_at / 1000000 % 1000 = 7 then 3 else 2 end, 1, x'00000000000080008000000000000001', scheduled_at, scheduled_at,
  scheduled_at, case when scheduled_at / 1000000 % 1000 = 7 then 'http_status' end,
  case when scheduled_at / 1000000 % 1000 = 7 then '503 Service Unavailable' end, null, null, null from runs order by id";
    connection.execute(AssertSqlSafe(runs)).await?;
    connection.execute(outcomes).await?;
    connection.execute("pragma optimize = 0x10002; pragma wal_checkpoint(truncate)").await?;
    Ok(())
}

const RUN: &str = "select r.*, o.*, a.status, a.attempt from runs r left join outcomes o on o.run_id = r.id left join active_runs a on a.run_id = r.id";

fn questions(plan: &Plan) -> Vec<(&'static str, String)> {
    let first_at = |back: i64| Uuid::from_u128(((EPOCH / 1000 - back * 1000) as u128) << 80).simple().to_string();
    let newest = |condition: String| format!("{RUN} where {condition} order by r.id desc limit 50");
    let (from, to) = (first_at(plan.history / 100 * 81), first_at(plan.history / 100 * 80));
    let deep = first_at((plan.history / 20).min(50_000));
    let failed = "select r.*, o.* from outcomes o join runs r on r.id = o.run_id where o.status > 2 and o.status = 3";
    vec![
        ("newest", newest("true".to_owned())),
        ("1,000 pages deep", newest(format!("r.id < x'{deep}'"))),
        ("a time range deep in the past", newest(format!("r.id >= x'{from}' and r.id < x'{to}'"))),
        ("a job with 30 % of the runs", newest(format!("r.job_id = x'{}'", job(0).simple()))),
        ("a job with 25 runs", newest(format!("r.job_id = x'{}'", job(1).simple()))),
        ("an org (org_004)", newest("r.org_id = 'org_004'".to_owned())),
        ("failed (0.1 %)", format!("{failed} order by o.run_id desc limit 50")),
        ("a target with a quarter of the runs", newest(format!("r.target = '{}'", TARGETS[1]))),
        ("a target with 40 runs", newest(format!("r.target = '{RARE_TARGET}'"))),
    ]
}

async fn median_ms(connection: &mut SqliteConnection, sql: &str) -> sqlx::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..6 {
        let watch = Stopwatch::start();
        sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(&mut *connection).await?;
        times.push(watch.seconds() * 1000.0);
    }
    times.remove(0);
    Ok(median(times))
}
