//! Features of SQLite alone: a file with permissions, a schema in it, plans of queries, damaged rows.

use std::path::Path;

use everbell_core::store::{
    ClusterStore, JobFilter, JobRef, JobSort, JobStore, PageRequest, RunFilter, RunHistogram, RunStore, StoreError,
};
use everbell_core::{JobKey, RunStatus};
use everbell_store::sqlite::SqliteStore;
use everbell_store::testing::fill_placeholders;
use jiff::Timestamp;
use sqlx::{AssertSqlSafe, ConnectOptions, Row, SqliteConnection};

use super::sqlite::Folder;
use super::sqlite_world::{at, audit, create, finish, job, plan_due, start};

pub(crate) async fn raw(file: &Path) -> SqliteConnection {
    sqlx::sqlite::SqliteConnectOptions::new().filename(file).foreign_keys(false).connect().await.unwrap()
}

async fn run(file: &Path, sql: &'static str) {
    sqlx::raw_sql(sql).execute(&mut raw(file).await).await.unwrap();
}

#[tokio::test]
async fn a_database_is_migrated_once_and_opened_again() {
    let folder = Folder::new();
    let versions = || async {
        let query = sqlx::query_scalar::<_, u32>("select version from everbell_migrations");
        query.fetch_all(&mut raw(&folder.file()).await).await.unwrap()
    };
    let store = SqliteStore::open(&folder.file()).await.unwrap();
    create(&store, "hourly", "0 * * * *").await;
    assert!(store.status().await.unwrap().schema_version >= 1);
    drop(store);
    let store = SqliteStore::open(&folder.file()).await.unwrap();
    let latest = store.status().await.unwrap().schema_version;
    assert_eq!(versions().await, (1..=latest).collect::<Vec<_>>());
    assert_eq!(store.list_jobs(&JobFilter::default(), &page()).await.unwrap().items.len(), 1);
}

fn page() -> PageRequest {
    PageRequest { limit: 1_000, after: None }
}

#[tokio::test]
async fn a_newer_schema_is_refused_with_what_to_do() {
    let folder = Folder::new();
    drop(SqliteStore::open(&folder.file()).await.unwrap());
    run(&folder.file(), "insert into everbell_migrations (version, applied_at) values (999, 0)").await;
    let error = SqliteStore::open(&folder.file()).await.unwrap_err();
    assert!(matches!(error, StoreError::Invalid(_)), "{error:?}");
    let text = error.to_string();
    assert!(text.starts_with("database: schema version 999 is newer than this binary knows ("), "{text}");
    assert!(text.ends_with("); start the newer release, or restore a backup"), "{text}");
}

#[tokio::test]
async fn every_statement_prepares() {
    let folder = Folder::new();
    drop(SqliteStore::open(&folder.file()).await.unwrap());
    let mut connection = raw(&folder.file()).await;
    let mut count = 0;
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sqlite/sql")).unwrap() {
        let path = entry.unwrap().path();
        let sql = fill_placeholders(&std::fs::read_to_string(&path).unwrap());
        let prepared = sqlx::raw_sql(AssertSqlSafe(format!("explain {sql}"))).execute(&mut connection).await;
        assert!(prepared.is_ok(), "{}: {prepared:?}", path.display());
        count += 1;
    }
    assert!(count > 50, "only {count} statements");
}

#[cfg(unix)]
#[tokio::test]
async fn files_and_folders_belong_to_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new();
    let file = folder.path().join("a/b/everbell.db");
    let store = SqliteStore::open(&file).await.unwrap();
    create(&store, "hourly", "0 * * * *").await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let beside = |end: &str| file.with_file_name(format!("everbell.db{end}"));
    assert_eq!([mode(&folder.path().join("a")), mode(&folder.path().join("a/b"))], [0o700; 2]);
    assert_eq!([mode(&file), mode(&beside("-wal")), mode(&beside("-shm"))], [0o600; 3]);
}

#[tokio::test]
async fn what_is_no_database_is_left_alone() {
    let folder = Folder::new();
    let text = "not a database, and long enough to look like something ".repeat(100);
    std::fs::write(folder.file(), &text).unwrap();
    let error = SqliteStore::open(&folder.file()).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert!(error.to_string().contains("everbell.db: the file is not an SQLite database"), "{error}");
    assert_eq!(std::fs::read_to_string(folder.file()).unwrap(), text);
}

#[tokio::test]
async fn a_place_where_no_file_can_be_is_named() {
    let folder = Folder::new();
    std::fs::write(folder.path().join("file"), "").unwrap();
    for path in [folder.path().join("file/everbell.db"), folder.path().to_owned()] {
        let error = SqliteStore::open(&path).await.unwrap_err();
        assert!(error.is_transient(), "{error:?}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}

/// How SQLite means to answer a statement, in its own words.
async fn plan_of(connection: &mut SqliteConnection, sql: &str) -> String {
    let explain = format!("explain query plan {}", fill_placeholders(sql));
    let rows = sqlx::query(AssertSqlSafe(explain)).fetch_all(connection).await.unwrap();
    rows.iter().map(|row| row.get::<String, _>("detail")).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn hot_statements_read_indexes_with_100_000_timers() {
    let folder = Folder::new();
    drop(SqliteStore::open(&folder.file()).await.unwrap());
    run(
        &folder.file(),
        "insert into everbell_timers (job_id, target, next_run_at, last_slot_at)
         with recursive n (n) as (select 1 union all select n + 1 from n where n < 100000)
         select randomblob(16), 'log', n, 0 from n",
    )
    .await;
    let mut connection = raw(&folder.file()).await;
    for analyze in ["select 1", "analyze"] {
        sqlx::raw_sql(analyze).execute(&mut connection).await.unwrap();
        let due = plan_of(&mut connection, include_str!("../../src/sqlite/sql/lock_due_timers.sql")).await;
        assert!(due.contains("SEARCH everbell_timers USING INDEX everbell_timers_due (next_run_at<?)"), "{due}");
        assert!(!due.contains("TEMP B-TREE"), "the index has the order\n{due}");
        let next = plan_of(&mut connection, include_str!("../../src/sqlite/sql/next_due.sql")).await;
        assert!(next.contains("SEARCH everbell_timers USING INDEX everbell_timers_due (next_run_at>?)"), "{next}");
        let advance = plan_of(&mut connection, include_str!("../../src/sqlite/sql/advance_timers.sql")).await;
        assert!(advance.contains("SEARCH everbell_timers USING PRIMARY KEY (job_id=? AND org_id=?)"), "{advance}");
        for sql in [
            include_str!("../../src/sqlite/sql/start_runs.sql"),
            include_str!("../../src/sqlite/sql/end_runs.sql"),
            include_str!("../../src/sqlite/sql/read_active.sql"),
            include_str!("../../src/sqlite/sql/waiting_runs.sql"),
            include_str!("../../src/sqlite/sql/first_held.sql"),
            include_str!("../../src/sqlite/sql/held_turns.sql"),
            include_str!("../../src/sqlite/sql/list_runs_bad.sql"),
            include_str!("../../src/sqlite/sql/list_runs_by_job.sql"),
            include_str!("../../src/sqlite/sql/list_runs_skipped.sql"),
            include_str!("../../src/sqlite/sql/get_runs.sql"),
            include_str!("../../src/sqlite/sql/recent_runs.sql"),
            include_str!("../../src/sqlite/sql/count_runs_by_time.sql"),
            include_str!("../../src/sqlite/sql/count_runs_by_time_of_job.sql"),
            include_str!("../../src/sqlite/sql/count_plain_runs_by_time.sql"),
            include_str!("../../src/sqlite/sql/count_ended_runs.sql"),
            include_str!("../../src/sqlite/sql/read_counters.sql"),
            include_str!("../../src/sqlite/sql/read_job_counters.sql"),
        ] {
            let plan = plan_of(&mut connection, sql).await;
            let scans: Vec<&str> = plan.lines().filter(|line| line.starts_with("SCAN ")).collect();
            let tables = ["r", "n", "s", "a", "p", "o"];
            let whole = |line: &&&str| {
                let table = line["SCAN ".len()..].split(' ').next().unwrap();
                table.starts_with("everbell_") || tables.contains(&table)
            };
            assert!(!scans.iter().any(|line| whole(&line)), "{sql}\n{plan}");
        }
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_read_hides_none_of_the_others() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file()).await.unwrap();
    for key in ["bad", "good", "worse"] {
        create(&store, key, "0 * * * *").await;
    }
    run(
        &folder.file(),
        "update everbell_jobs set policies = '{]' where job_key = 'bad';
         update everbell_timers set last_local_date = 'soon' where job_id = (select id from everbell_jobs where job_key = 'worse')",
    )
    .await;
    let (bad, worse) = (job("bad", "0 * * * *").definition.id, job("worse", "0 * * * *").definition.id);
    // Another process, which has not read the definitions before.
    let store = SqliteStore::open(&folder.file()).await.unwrap();
    let planned = plan_due(&store, at("01:00:00"), 10).await.unwrap();
    let runs: Vec<&str> = planned.runs.iter().map(|run| run.job.key.as_str()).collect();
    assert_eq!((runs, planned.timers), (vec!["good"], 3));
    let mut errored: Vec<_> = planned.errored.iter().map(|(id, _)| *id).collect();
    errored.sort_unstable();
    assert_eq!(errored, [bad, worse]);
    assert_eq!(plan_due(&store, at("01:30:00"), 10).await.unwrap().timers, 0, "they are disarmed");

    let error = store.get_job(&JobRef::Id(bad)).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }) && error.to_string().contains("policies"), "{error}");
    for sort in [JobSort::Key, JobSort::NextRunAt, JobSort::CreatedAt] {
        let page = store.list_jobs(&JobFilter { sort, ..JobFilter::default() }, &page()).await.unwrap();
        let keys: Vec<&str> = page.items.iter().map(|row| row.job.definition.key.as_str()).collect();
        let mut unreadable = page.unreadable;
        unreadable.sort_unstable();
        assert_eq!((keys, unreadable), (vec!["good"], vec![bad.to_string(), worse.to_string()]));
    }
}

#[tokio::test]
async fn a_run_that_cannot_be_read_does_not_start_and_does_not_stand_in_the_way() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file()).await.unwrap();
    for key in ["a", "b", "c"] {
        create(&store, key, "0 * * * *").await;
    }
    plan_due(&store, at("01:00:00"), 10).await.unwrap();
    run(
        &folder.file(),
        "update everbell_jobs set labels = 'no' where job_key = 'a';
         update everbell_runs set trigger = '?' where job_id = (select id from everbell_jobs where job_key = 'b')",
    )
    .await;
    let store = SqliteStore::open(&folder.file()).await.unwrap();
    let claims = start(&store, 1, at("01:00:00"), 1).await.unwrap();
    assert_eq!(claims.len(), 1, "{claims:?}");
    assert_eq!(claims[0].job.as_ref().unwrap().key.as_str(), "c");
    assert!(start(&store, 1, at("01:00:00"), 1).await.unwrap().is_empty());
    finish(&store, &claims, at("01:01:00")).await.unwrap();
    let page = store.list_runs(&RunFilter::default(), &page()).await.unwrap();
    assert_eq!((page.items.len(), page.unreadable.len()), (2, 1));
}

#[tokio::test]
async fn text_in_any_alphabet_is_found_in_any_case() {
    let store = SqliteStore::in_memory().await.unwrap();
    for (number, key) in ["Überblick", "straße", "ΟΔΟΣ", "plain"].into_iter().enumerate() {
        let new = job(key, "0 * * * *");
        store.create_job(&new, &audit(number as u128)).await.unwrap();
    }
    for (text, found) in
        [("über", "Überblick"), ("STRASS", ""), ("Straße", "straße"), ("οδο", "ΟΔΟΣ"), ("PLAIN", "plain")]
    {
        let filter = JobFilter { text: Some(text.to_owned()), ..JobFilter::default() };
        let page = store.list_jobs(&filter, &PageRequest { limit: 1, after: None }).await.unwrap();
        let keys: Vec<&str> = page.items.iter().map(|row| row.job.definition.key.as_str()).collect();
        assert_eq!(keys.join(" "), found, "{text}");
        assert_eq!(page.next, None);
    }
}

#[tokio::test]
async fn a_database_in_memory_says_so() {
    let status = SqliteStore::in_memory().await.unwrap().status().await.unwrap();
    assert!(status.product.starts_with("sqlite 3."), "{status:?}");
    assert_eq!(status.notes, ["the database is in memory: nothing outlives the process"]);
}

/// Runs of all kinds, a second apart: three of four are of the busy job.
const MANY_RUNS: &str = "
    insert into everbell_runs (id, job_id, at, nonce, scheduled_at, created_at, trigger, target, skip_reason, skip_detail, catch_up,
      folded)
    with recursive n (n) as (select 0 union all select n + 1 from n where n < 5999)
    select unhex(printf('%012x', 1900000000000 + n * 1000) || printf('%020x', n)),
      (select id from everbell_jobs where job_key = case n % 4 when 0 then 'quiet' else 'busy' end),
      (1900000000000 + n * 1000) * 1000, n + 1, 0, 0, 'manual:ana', 'mail',
      case when n % 50 = 7 then 'operator' end, case when n % 50 = 7 then 'ana' end, 0, 0
    from n;
    insert into everbell_outcomes (run_id, status, attempt, finished_at, failure_code)
    select id, case nonce % 30 when 4 then 'failed' when 9 then 'canceled' else 'succeeded' end, 1, 1,
      case when nonce % 30 in (4, 9) then 'timeout' end
    from everbell_runs where skip_reason is null and nonce % 100 <> 3;";

/// Of a busy job, what did not succeed is looked for elsewhere than of a quiet one.
#[tokio::test]
async fn tallies_of_busy_and_quiet_jobs_are_those_of_their_runs() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file()).await.unwrap();
    create(&store, "busy", "0 * * * *").await;
    create(&store, "quiet", "0 * * * *").await;
    run(&folder.file(), MANY_RUNS).await;
    let bounds: Vec<Timestamp> =
        (0..9).map(|part| Timestamp::from_second(1_900_000_100 + part * 700).unwrap()).collect();
    for (key, least) in [("busy", 4_000), ("quiet", 1_000)] {
        let histogram = || RunHistogram::new(bounds.clone()).unwrap().of_job(JobKey::new(key).unwrap());
        let (plain, timed) = (
            store.count_runs_by_time(&histogram()).await.unwrap(),
            store.count_runs_by_time(&histogram().with_times()).await.unwrap(),
        );
        assert!(plain.iter().map(everbell_core::store::Bucket::total).sum::<u64>() > least, "{key}: {plain:?}");
        for (plain, timed) in plain.iter().zip(&timed) {
            for status in RunStatus::ALL {
                assert_eq!(plain.count(*status), timed.count(*status), "{key}: {status} of {}", plain.from);
            }
        }
    }
}
