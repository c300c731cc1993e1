//! Plans that are made while the tables are empty are good when they are full.

use std::collections::HashMap;
use std::str::FromStr;

use everbell_store::testing::TestDatabase;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row};

use super::PostgresStore;
use super::connect::LOOP_SETTINGS;

/// The statements of the loops that are given rows, or look for some.
const KEPT: [(&str, &str); 25] = [
    ("advance_timers", include_str!("sql/advance_timers.sql")),
    ("cancel_pending", include_str!("sql/cancel_pending.sql")),
    ("clear_waiting", include_str!("sql/clear_waiting.sql")),
    ("count_foreign_timers", include_str!("sql/count_foreign_timers.sql")),
    ("count_losses", include_str!("sql/count_losses.sql")),
    ("delete_timers", include_str!("sql/delete_timers.sql")),
    ("end_runs", include_str!("sql/end_runs.sql")),
    ("heartbeat", include_str!("sql/heartbeat.sql")),
    ("insert_runs", include_str!("sql/insert_runs.sql")),
    ("lock_due_timers", include_str!("sql/lock_due_timers.sql")),
    ("lock_failures", include_str!("sql/lock_failures.sql")),
    ("lock_org_timers", include_str!("sql/lock_org_timers.sql")),
    ("next_due", include_str!("sql/next_due.sql")),
    ("oldest_pending", include_str!("sql/oldest_pending.sql")),
    ("oldest_timer", include_str!("sql/oldest_timer.sql")),
    ("read_active", include_str!("sql/read_active.sql")),
    ("read_org_active", include_str!("sql/read_org_active.sql")),
    ("read_org_facts", include_str!("sql/read_org_facts.sql")),
    ("read_overrides", include_str!("sql/read_overrides.sql")),
    ("request_cancel", include_str!("sql/request_cancel.sql")),
    ("retire_one_time", include_str!("sql/retire_one_time.sql")),
    ("retry_runs", include_str!("sql/retry_runs.sql")),
    ("set_failures", include_str!("sql/set_failures.sql")),
    ("set_timer_errors", include_str!("sql/set_timer_errors.sql")),
    ("start_runs", include_str!("sql/start_runs.sql")),
];

/// Rows that come and go: a plan may be made at any of these times.
const TIMES: [&str; 4] = [
    "",
    "vacuum analyze",
    "insert into everbell.active_runs (run_id, target, status, held, max_concurrent, attempt, available_at)
     values (gen_random_uuid(), 'log', 'pending', false, 1, 0, now()); vacuum analyze",
    "insert into everbell.active_runs (run_id, target, status, held, max_concurrent, attempt, available_at)
     select gen_random_uuid(), 'log', 'pending', false, 1, 0, now() from generate_series(1, 5000);
     delete from everbell.active_runs; vacuum analyze",
];

#[tokio::test]
async fn a_plan_reads_by_keys_whenever_it_was_made() {
    let database = TestDatabase::create().await;
    drop(PostgresStore::connect(database.url()).await.unwrap());
    let options = PgConnectOptions::from_str(database.url()).unwrap().options(LOOP_SETTINGS);
    let mut connection = PgConnection::connect_with(&options).await.unwrap();
    let first_columns = "select c.relname::text, a.attname::text from pg_index i
                         join pg_class c on c.oid = i.indexrelid
                         join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]";
    let first_columns: HashMap<String, String> =
        sqlx::query_as(first_columns).fetch_all(&mut connection).await.unwrap().into_iter().collect();
    for time in TIMES {
        for sql in time.split(';') {
            connection.execute(AssertSqlSafe(sql.to_owned())).await.unwrap();
        }
        for (name, sql) in KEPT {
            let plan = plan(&mut connection, name, sql).await;
            check(&plan, &first_columns).unwrap_or_else(|why| panic!("{name} after `{time}`: {why}\n{plan}"));
        }
    }
}

/// The plan that is made now and kept.
async fn plan(connection: &mut PgConnection, name: &str, sql: &str) -> String {
    let values = (1..).take_while(|number| sql.contains(&format!("${number}"))).map(|_| "null");
    let values = values.collect::<Vec<_>>().join(", ");
    connection.execute(AssertSqlSafe(format!("prepare {name} as {sql}"))).await.unwrap();
    let rows = sqlx::raw_sql(AssertSqlSafe(format!("explain execute {name} ({values})"))).fetch_all(&mut *connection);
    let lines: Vec<String> = rows.await.unwrap().iter().map(|row| row.get(0)).collect();
    connection.execute(AssertSqlSafe(format!("deallocate {name}"))).await.unwrap();
    lines.join("\n")
}

/// Relations that may be read as a whole: a table of a few rows, and an index that holds only jobs that start after others.
const SMALL: [&str; 2] = [" on instances", "using jobs_after on jobs"];

/// No other table is read as a whole, and every index is entered by its first column.
fn check(plan: &str, first_columns: &HashMap<String, String>) -> Result<(), String> {
    let mut lines = plan.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        if SMALL.iter().any(|small| line.contains(small)) {
            continue;
        }
        if line.contains("Seq Scan") {
            return Err(line.to_owned());
        }
        let Some((_, scan)) = line.split_once("Scan using ") else { continue };
        let index = scan.split(' ').next().unwrap_or_default();
        let first = first_columns.get(index).ok_or_else(|| format!("what is {index}?"))?;
        let entered = lines.peek().is_some_and(|next| {
            next.strip_prefix("Index Cond: ")
                .is_some_and(|said| said.replace("ROW", "").trim_start_matches('(').starts_with(first.as_str()))
        });
        if !entered {
            return Err(line.to_owned());
        }
    }
    Ok(())
}
