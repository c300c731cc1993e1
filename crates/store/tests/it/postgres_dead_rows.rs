//! A transaction that somebody leaves open keeps dead rows, and some runs and timers wait for long; looks for work do not walk
//! through them each time.

use std::time::Duration;

use everbell_store::postgres::PostgresStore;
use everbell_store::testing::TestDatabase;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row};
use tokio::time::Instant;

use super::sqlite_world::{at, create, plan_due, start};

/// Opens a transaction with a snapshot, and leaves dead rows behind that it may still see.
async fn leave_dead_rows(database: &TestDatabase) -> PgConnection {
    let mut open = PgConnection::connect(database.url()).await.unwrap();
    open.execute("begin isolation level repeatable read; select 1").await.unwrap();
    let mut other = PgConnection::connect(database.url()).await.unwrap();
    for sql in [
        "alter table everbell.timers drop constraint timers_job_id_fkey",
        "insert into everbell.active_runs (run_id, target, status, held, max_concurrent, attempt, available_at)
         select gen_random_uuid(), 'log', 'pending', false, 1, 0, timestamptz '2026-11-14Z' + n * interval '1 s'
         from generate_series(1, 20000) n",
        "insert into everbell.timers (job_id, target, next_run_at, last_slot_at)
         select gen_random_uuid(), 'log', timestamptz '2026-11-14Z' + n * interval '1 s', timestamptz '2026-11-01Z'
         from generate_series(1, 20000) n",
        "delete from everbell.active_runs",
        "delete from everbell.timers",
        "select pg_stat_force_next_flush()",
        "vacuum everbell.active_runs",
    ] {
        other.execute(sql).await.unwrap();
    }
    open
}

/// The buffers that a statement reads.
async fn buffers(connection: &mut PgConnection, sql: &str) -> i64 {
    let explain = format!("explain (analyze, buffers, format json) {sql}");
    let row = connection.fetch_one(AssertSqlSafe(explain)).await.unwrap();
    let plan: serde_json::Value = serde_json::from_str(&row.get_unchecked::<String, _>(0)).unwrap();
    let read = |name: &str| plan[0]["Plan"][name].as_i64().unwrap();
    read("Shared Hit Blocks") + read("Shared Read Blocks")
}

#[tokio::test]
async fn a_look_from_a_floor_reads_no_dead_rows() {
    let database = TestDatabase::create().await;
    drop(PostgresStore::connect(database.url()).await.unwrap());
    let _open = leave_dead_rows(&database).await;
    let mut connection = PgConnection::connect(database.url()).await.unwrap();
    connection.execute("set enable_seqscan = off; set enable_bitmapscan = off").await.unwrap();
    let start = |since: &str| {
        include_str!("../../src/postgres/sql/start_runs.sql")
            .replace("$1::text[]", "array['log']")
            .replace("$2::bigint[]", "array[10::bigint]")
            .replace("$7::timestamptz[]", &format!("array[timestamptz '{since}']"))
            .replace("$8::boolean[]", "array[true]")
            .replace("$3", "10")
            .replace("$4", "timestamptz '2026-11-15Z'")
            .replace("$5", "gen_random_uuid()")
            .replace("$6", "timestamptz '2026-11-15Z'")
    };
    let lock = |since: &str| {
        include_str!("../../src/postgres/sql/lock_due_timers.sql")
            .replace("$1", "timestamptz '2026-11-15Z'")
            .replace("$2", "array['log']")
            .replace("$3", "10")
            .replace("$4", &format!("timestamptz '{since}'"))
            .replace("$5", "10")
    };
    let (beginning, floor) = ("0001-01-01Z", "2026-11-14 23:59:55Z");
    for (whole, short) in [(start(beginning), start(floor)), (lock(beginning), lock(floor))] {
        let (whole, short) = (buffers(&mut connection, &whole).await, buffers(&mut connection, &short).await);
        assert!(short < 50 && whole > 10 * short, "{whole} buffers from the beginning, {short} from the floor");
    }
}

#[tokio::test]
async fn a_run_below_the_floor_starts_soon() {
    let database = TestDatabase::create().await;
    let store = PostgresStore::connect(database.url()).await.unwrap();
    let _open = leave_dead_rows(&database).await;
    let now = at("12:00:00");
    // Looks until the floor must be there: a full look has been made by then.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(7) {
        assert!(start(&store, 1, now, 10).await.unwrap().is_empty());
        plan_due(&store, now, 10).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Somebody else writes without a word, far below.
    let mut other = PgConnection::connect(database.url()).await.unwrap();
    let hidden = "insert into everbell.runs (id, at, nonce, scheduled_at, created_at, trigger, target, payload, catch_up, folded)
                  values ('01900000-0000-7000-8000-000000000001', '2026-11-14Z', 1, '2026-11-14Z', '2026-11-14Z', 'manual:ana', 'log', '{}', false, 0);
                  insert into everbell.active_runs (run_id, target, status, held, max_concurrent, attempt, available_at)
                  values ('01900000-0000-7000-8000-000000000001', 'log', 'pending', false, 1, 0, '2026-11-14Z')";
    other.execute(hidden).await.unwrap();
    let began = Instant::now();
    while start(&store, 1, now, 10).await.unwrap().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(30), "the next full look finds it");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // What this store plans is found at once, however old.
    create(&store, "one", "0 * * * *").await;
    assert_eq!(plan_due(&store, at("01:00:00"), 10).await.unwrap().runs.len(), 1);
    assert_eq!(start(&store, 1, now, 10).await.unwrap().len(), 1);
}

/// Runs that cannot start now: held ones of a job that is at work, paused ones, and ones of a low priority.
const MANY_WAIT: &str = "
    insert into everbell.active_runs (run_id, job_id, target, status, held, max_concurrent, attempt, available_at, runner_id, lease_until)
    values (gen_random_uuid(), '00000000-0000-0000-0000-000000000001', 'log', 'running', false, 1, 1, '2026-11-14Z',
            gen_random_uuid(), '2026-11-16Z');
    insert into everbell.active_runs (run_id, job_id, target, status, held, paused, max_concurrent, attempt, available_at, priority)
    select gen_random_uuid(), case when n % 3 = 0 then uuid '00000000-0000-0000-0000-000000000001' else gen_random_uuid() end, 'log',
           'pending', n % 3 = 0, n % 3 = 1, 1, 0, timestamptz '2026-11-14Z' + n * interval '1 s', case when n % 3 = 2 then -1 else 0 end
    from generate_series(1, 6000) n;
    insert into everbell.active_runs (run_id, target, status, held, max_concurrent, attempt, available_at)
    select gen_random_uuid(), 'log', 'pending', false, 1, 0, timestamptz '2026-11-14 12:00Z' from generate_series(1, 10);
    vacuum analyze everbell.active_runs";

#[tokio::test]
async fn a_claim_does_not_walk_over_runs_that_wait() {
    let database = TestDatabase::create().await;
    drop(PostgresStore::connect(database.url()).await.unwrap());
    let mut connection = PgConnection::connect(database.url()).await.unwrap();
    for sql in MANY_WAIT.split(';') {
        connection.execute(sql).await.unwrap();
    }
    connection.execute("set enable_seqscan = off; set enable_bitmapscan = off").await.unwrap();
    let claim = include_str!("../../src/postgres/sql/start_runs.sql")
        .replace("$1::text[]", "array['log']")
        .replace("$2::bigint[]", "array[10::bigint]")
        .replace("$7::timestamptz[]", "array[timestamptz '0001-01-01Z']")
        .replace("$8::boolean[]", "array[true]")
        .replace("$3", "10")
        .replace("$4", "timestamptz '2026-11-15Z'")
        .replace("$5", "gen_random_uuid()")
        .replace("$6", "timestamptz '2026-11-15Z'");
    let read = buffers(&mut connection, &claim).await;
    assert!(read < 300, "{read} buffers for ten runs that may start");
    let claimed = "select count(*) from everbell.active_runs where claimed_at is not null and priority = 0";
    assert_eq!(connection.fetch_one(claimed).await.unwrap().get::<i64, _>(0), 10, "those that may");
}

#[tokio::test]
async fn a_plan_skips_due_timers_of_targets_that_it_does_not_serve() {
    let database = TestDatabase::create().await;
    let store = PostgresStore::connect(database.url()).await.unwrap();
    let mut other = PgConnection::connect(database.url()).await.unwrap();
    for sql in [
        "alter table everbell.timers drop constraint timers_job_id_fkey",
        "insert into everbell.timers (job_id, target, next_run_at, last_slot_at)
         select gen_random_uuid(), 'elsewhere', timestamptz '2026-11-14Z' + n * interval '1 s', timestamptz '2026-11-01Z'
         from generate_series(1, 5000) n",
    ] {
        other.execute(sql).await.unwrap();
    }
    let now = at("12:00:00");
    create(&store, "one", "0 * * * *").await;
    assert_eq!(plan_due(&store, now, 10).await.unwrap().timers, 1);
    // Looks until the floor must be there: a full look has been made by then.
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(5_500) {
        assert_eq!(plan_due(&store, now, 10).await.unwrap().timers, 0);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Somebody else writes without a word, far below.
    let hidden = "update everbell.timers set next_run_at = timestamptz '2026-11-14Z' where target = 'log'";
    other.execute(hidden).await.unwrap();
    let began = Instant::now();
    let passed_over = plan_due(&store, now, 10).await.unwrap().timers == 0;
    assert!(passed_over || began.elapsed() > Duration::from_secs(2), "the look begins at a floor");
    while passed_over && plan_due(&store, now, 10).await.unwrap().timers == 0 {
        assert!(began.elapsed() < Duration::from_secs(30), "the next full look finds it");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
