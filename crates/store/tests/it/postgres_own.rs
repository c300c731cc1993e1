//! Features of PostgreSQL alone: a server that may be away, migrations under locks, notifications, plans of queries.

use std::time::Duration;

use everbell_core::InstanceId;
use everbell_core::store::{ClusterStore, Due, PlanDue, RunStore, StartRuns, StoreError, TargetRoom};
use everbell_store::postgres::PostgresStore;
use everbell_store::testing::{TestDatabase, fill_placeholders};
use sqlx::{Connection, PgConnection, Row};

use super::sqlite_world::{LEASE, at, create, target};

async fn raw(database: &TestDatabase) -> PgConnection {
    PgConnection::connect(database.url()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_instances_that_start_together_migrate_once() {
    let database = TestDatabase::empty().await;
    let url = database.url().to_owned();
    let starts: Vec<_> = (0..10)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move { PostgresStore::connect(&url).await.map(drop) })
        })
        .collect();
    for start in starts {
        start.await.unwrap().unwrap();
    }
    let versions: Vec<i32> = sqlx::query_scalar("select version from everbell.migrations order by 1")
        .fetch_all(&mut raw(&database).await)
        .await
        .unwrap();
    let latest = versions.len() as i32;
    assert_eq!(versions, (1..=latest).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_newer_schema_is_refused_with_what_to_do() {
    let database = TestDatabase::empty().await;
    drop(PostgresStore::connect(database.url()).await.unwrap());
    let note = "insert into everbell.migrations (version, applied_at) values (999, clock_timestamp())";
    sqlx::query(note).execute(&mut raw(&database).await).await.unwrap();
    let error = PostgresStore::connect(database.url()).await.unwrap_err();
    assert!(matches!(error, StoreError::Invalid(_)), "{error:?}");
    let text = error.to_string();
    assert!(text.starts_with("database: schema version 999 is newer than this binary knows ("), "{text}");
    assert!(text.ends_with("); start the newer release, or restore a backup"), "{text}");
}

#[tokio::test]
async fn a_migration_gives_way_to_a_reader_and_comes_back() {
    let database = TestDatabase::empty().await;
    let mut reader = raw(&database).await;
    let create = "create schema everbell;
                  create table everbell.migrations (version integer primary key, applied_at timestamptz not null)";
    sqlx::raw_sql(create).execute(&mut reader).await.unwrap();
    let mut open = reader.begin().await.unwrap();
    sqlx::query("select * from everbell.migrations").fetch_all(&mut *open).await.unwrap();
    let url = database.url().to_owned();
    let starting = tokio::spawn(async move { PostgresStore::connect(&url).await });
    // While it waits for its lock it stands in the way of others only briefly: this read gets through.
    let mut other = raw(&database).await;
    let read = sqlx::query("select * from everbell.migrations").fetch_all(&mut other);
    tokio::time::timeout(Duration::from_secs(20), read).await.unwrap().unwrap();
    open.commit().await.unwrap();
    starting.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_schema_is_the_one_on_file() {
    let database = TestDatabase::empty().await;
    drop(PostgresStore::connect(database.url()).await.unwrap());
    let query = "select c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
                        || case when a.attnotnull then ' not null' else '' end as line
                 from pg_attribute a join pg_class c on c.oid = a.attrelid
                 where c.relnamespace = 'everbell'::regnamespace and c.relkind in ('r', 'v') and a.attnum > 0
                   and not a.attisdropped
                 union all
                 select indexdef from pg_indexes where schemaname = 'everbell'
                 union all
                 select conrelid::regclass || ' ' || pg_get_constraintdef(oid) from pg_constraint
                 where connamespace = 'everbell'::regnamespace and contype <> 'n'
                 order by 1";
    let lines: Vec<String> = sqlx::query_scalar(query).fetch_all(&mut raw(&database).await).await.unwrap();
    let mut lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    lines.sort_unstable();
    let found = format!("{}\n", lines.join("\n"));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/postgres/schema.txt");
    if std::env::var_os("EVERBELL_BLESS").is_some() {
        std::fs::write(path, &found).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), found, "EVERBELL_BLESS=1 writes it anew");
}

/// A role that was allowed to write requests before they had a priority and a choice is still allowed to.
#[tokio::test]
async fn a_role_that_writes_requests_may_write_the_columns_of_a_later_migration() {
    let database = TestDatabase::empty().await;
    drop(PostgresStore::connect(database.url()).await.unwrap());
    let role = format!("writer_of_{}", database.name());
    let before = format!(
        "create role {role};
         grant usage on schema everbell to {role};
         drop function everbell.enqueue(text, jsonb, timestamptz, text, text, bigint, text);
         create function everbell.enqueue(text, jsonb, timestamptz, text, text) returns bigint language sql return 1;
         alter table everbell.inbox drop column priority, drop column if_unfinished;
         grant insert (target, payload, key, run_at, cron, timezone, traceparent), select (id) on everbell.inbox to {role};
         set search_path = everbell, pg_temp;
         {};
         reset search_path",
        include_str!("../../src/postgres/migrations/0026_inbox_choices.sql")
    );
    let mut conn = raw(&database).await;
    sqlx::raw_sql(sqlx::AssertSqlSafe(before)).execute(&mut conn).await.unwrap();
    let write = format!(
        "set role {role}; select everbell.enqueue('log', key => 'a', priority => 5, if_unfinished => 'keep'); reset role"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(write)).execute(&mut conn).await.unwrap();
    let read = "select role, priority, if_unfinished from everbell.inbox";
    let row: (String, i64, String) = sqlx::query_as(read).fetch_one(&mut conn).await.unwrap();
    assert_eq!(row, (role.clone(), 5, "keep".to_owned()));
    let forged = format!("set role {role}; insert into everbell.inbox (target, role) values ('log', 'other')");
    let refused = sqlx::raw_sql(sqlx::AssertSqlSafe(forged)).execute(&mut conn).await;
    assert!(refused.unwrap_err().to_string().contains("permission denied"));
    let drop = format!("reset role; drop owned by {role}; drop role {role}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(drop)).execute(&mut conn).await.unwrap();
}

#[tokio::test]
async fn every_statement_prepares() {
    let database = TestDatabase::empty().await;
    drop(PostgresStore::connect(database.url()).await.unwrap());
    let mut conn = raw(&database).await;
    // A statement that does not name its schema finds nothing.
    sqlx::query("set search_path = ''").execute(&mut conn).await.unwrap();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/postgres/sql");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let sql = fill_placeholders(&std::fs::read_to_string(&path).unwrap());
        let name = format!("s{count}");
        let prepared = sqlx::raw_sql(sqlx::AssertSqlSafe(format!("prepare {name} as {sql}"))).execute(&mut conn).await;
        assert!(prepared.is_ok(), "{}: {prepared:?}", path.display());
        count += 1;
    }
    assert!(count > 50, "only {count} statements");
}

#[tokio::test]
async fn the_due_query_reads_an_index_with_100_000_timers() {
    let database = TestDatabase::empty().await;
    drop(PostgresStore::connect(database.url()).await.unwrap());
    let mut conn = raw(&database).await;
    sqlx::raw_sql(
        "alter table everbell.timers drop constraint timers_job_id_fkey;
         insert into everbell.timers (job_id, target, next_run_at, last_slot_at)
         select gen_random_uuid(), 'log', timestamptz '2026-01-01' + n * interval '1 second', timestamptz '2026-01-01'
         from generate_series(1, 100000) n;
         analyze everbell.timers;",
    )
    .execute(&mut conn)
    .await
    .unwrap();
    let sql = include_str!("../../src/postgres/sql/lock_due_timers.sql")
        .replace("$1", "timestamptz '2026-01-01 00:01:00'")
        .replace("$2", "array['log']")
        .replace("$3", "100")
        .replace("$4", "timestamptz '0001-01-01'")
        .replace("$5", "100");
    let rows = sqlx::query(sqlx::AssertSqlSafe(format!("explain {sql}"))).fetch_all(&mut conn).await.unwrap();
    let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let plan = plan.join("\n");
    assert!(plan.contains("Index Scan using timers_due"), "{plan}");
    // There are no jobs: without the settings of the loops their table is read as a whole.
    assert!(!plan.contains("Seq Scan on timers"), "{plan}");
}

#[tokio::test]
async fn recent_runs_of_a_busy_job_read_its_newest_runs_only() {
    let database = TestDatabase::empty().await;
    drop(PostgresStore::connect(database.url()).await.unwrap());
    let mut conn = raw(&database).await;
    // Histories that are shorter on average than the list is long, and one that is not.
    let fill = "insert into everbell.runs (id, job_id, at, nonce, scheduled_at, created_at, trigger, target, catch_up, folded)
                select gen_random_uuid(), ('00000000-0000-0000-0000-' || lpad(least(n / 100, 200)::text, 12, '0'))::uuid,
                       timestamptz '2026-01-01Z' + n * interval '1 s', 0, '2026-01-01Z', '2026-01-01Z', '', '', false, 0
                from generate_series(1, 40000) n;
                analyze;";
    let recent_runs = include_str!("../../src/postgres/sql/recent_runs.sql");
    let prepare = format!("prepare recent_runs as {recent_runs}");
    for sql in [fill, &prepare] {
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut conn).await.unwrap();
    }
    for mode in ["force_custom_plan", "force_generic_plan"] {
        let sql = format!("set plan_cache_mode = {mode}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut conn).await.unwrap();
        let explain = "explain execute recent_runs('{busy}', 1000, '2025-01-01Z', '2027-01-01Z')";
        let plan: Vec<String> = sqlx::query_scalar(explain).fetch_all(&mut conn).await.unwrap();
        let plan = plan.join("\n");
        assert!(plan.contains("Index Scan Backward using runs_job_id_at_org_id_nonce_key on runs"), "{mode}\n{plan}");
        assert!(!plan.contains("Sort Key: r.at"), "the index has the order, {mode}\n{plan}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_connection_is_said_without_its_password() {
    for (url, said) in [
        ("postgres://user:hunter2@127.0.0.1:1/db", "connecting to postgres://127.0.0.1:1/db"),
        ("postgres://user:hunter2@127.0.0.1:notaport/db", "the address cannot be read"),
    ] {
        let error = PostgresStore::connect(url).await.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(error.is_transient() && error.to_string().contains(said), "{error}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[tokio::test]
async fn a_database_that_does_not_exist_is_named() {
    let database = TestDatabase::empty().await;
    let url = database.url().replace(database.name(), "nowhere_to_be_found");
    let error = PostgresStore::connect(&url).await.unwrap_err().to_string();
    assert!(error.contains("nowhere_to_be_found") && error.contains("create the database first"), "{error}");
}

#[tokio::test]
async fn a_read_only_server_is_told_apart() {
    let database = TestDatabase::empty().await;
    drop(PostgresStore::connect(database.url()).await.unwrap());
    let sql = format!("alter database {} set default_transaction_read_only = on", database.name());
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut raw(&database).await).await.unwrap();
    let error = match PostgresStore::connect(database.url()).await {
        Ok(store) => store.remove_instances(jiff::Timestamp::UNIX_EPOCH).await.unwrap_err(),
        Err(error) => error,
    };
    assert!(error.to_string().contains("this server is read-only"), "{error}");
}

#[tokio::test]
async fn a_change_on_one_instance_wakes_another() {
    let database = TestDatabase::empty().await;
    let one = PostgresStore::connect(database.url()).await.unwrap();
    let other = PostgresStore::connect(database.url()).await.unwrap();
    // Subscribed when the status no longer complains.
    while !other.status().await.unwrap().notes.is_empty() {
        tokio::task::yield_now().await;
    }
    let woken = other.woken();
    tokio::pin!(woken);
    let cleared = futures_poll(&mut woken).await;
    assert!(!cleared, "nothing happened yet");
    let mut conn = raw(&database).await;
    sqlx::query("select pg_notify('everbell', '')").execute(&mut conn).await.unwrap();
    tokio::time::timeout(Duration::from_secs(20), woken).await.expect("a notification wakes");
    drop(one);
}

/// Runs that a plan leaves pending may be for the other instance: the one that planned has no room for them.
#[tokio::test]
async fn a_plan_that_starts_only_some_of_its_runs_wakes_another_instance() {
    let database = TestDatabase::create().await;
    let one = PostgresStore::connect(database.url()).await.unwrap();
    for key in ["one", "two"] {
        create(&one, key, "0 * * * *").await;
    }
    // It comes later, so that it hears nothing of the jobs, nor what the first one says to itself.
    while !one.hears_others() {
        tokio::task::yield_now().await;
    }
    let other = PostgresStore::connect(database.url()).await.unwrap();
    while !other.hears_others() {
        tokio::task::yield_now().await;
    }
    let targets = [target()];
    let rooms = [TargetRoom { target: target(), room: 1, backfills: true }];
    let (now, instance) = (at("01:00:00"), InstanceId::new(at("00:00:00"), [1; 10]));
    let start = StartRuns { instance, targets: &rooms, limit: 2, now, lease_until: now + LEASE };
    let woken = other.woken();
    tokio::pin!(woken);
    assert!(!futures_poll(&mut woken).await);
    // A full batch: without starts another would follow, and tell of both.
    let request = PlanDue { start: Some(start), ..PlanDue::new(now, 2, &targets) };
    let planned = one.plan_due(&request, &|due: &Due, now| due.plan(now)).await.unwrap();
    assert_eq!((planned.runs.len(), planned.claims.len()), (2, 1));
    tokio::time::timeout(Duration::from_secs(20), woken).await.expect("a run waits");
}

/// Polls once, so that the future is waiting when what it waits for happens.
async fn futures_poll(future: &mut (impl Future<Output = ()> + Unpin)) -> bool {
    std::future::poll_fn(|context| std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(context).is_ready()))
        .await
}
