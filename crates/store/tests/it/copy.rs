//! Moving a database between SQLite and PostgreSQL: every row, once, and never while a server can fire.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use everbell_core::store::StoreError;
use everbell_store::connect;
use everbell_store::copy::{CopyOptions, CopyProgress, CopyReport, CopyStep, copy, reopen};
use everbell_store::testing::{TestDatabase, execute};
use everbell_store::upkeep::inspect;
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};

use super::sqlite::Folder;

const FULL: &str = include_str!("fixtures/full_sqlite.sql");
const DAY: Duration = Duration::from_hours(24);

pub(super) fn url(folder: &Folder, name: &str) -> String {
    format!("sqlite:{}", folder.path().join(name).display())
}

/// A database in a file with at least a row in each table.
pub(super) async fn full(folder: &Folder) -> String {
    let url = url(folder, "full.db");
    drop(connect(&url).await.unwrap());
    execute(&url, FULL).await;
    url
}

pub(super) fn to(name: &str) -> CopyOptions {
    CopyOptions { target_name: name.to_owned(), ..CopyOptions::default() }
}

pub(super) async fn copied(from: &str, to: &str, options: &CopyOptions) -> Result<CopyReport, StoreError> {
    copy(from, to, options, &|_| ()).await
}

pub(super) async fn refusal(from: &str, target: &str) -> String {
    copied(from, target, &to("there")).await.unwrap_err().to_string()
}

fn sums(report: &CopyReport) -> Vec<(&'static str, String)> {
    let checksum = |table: &everbell_store::copy::CopiedTable| table.sums.as_ref().unwrap()[1].checksum.clone();
    report.tables.iter().map(|table| (table.name, checksum(table))).collect()
}

/// Every row of every table as text, but for the inbox, the instances and the history of the schema.
async fn dump(url: &str) -> Vec<String> {
    let mut connection = SqliteConnection::connect(url).await.unwrap();
    let tables = "select m.name, group_concat('quote(\"' || c.name || '\")', ' || ''|'' || ')
                  from sqlite_schema m join pragma_table_info(m.name) c
                  where m.type = 'table' and m.name like 'everbell\\_%' escape '\\'
                    and m.name not in ('everbell_instances', 'everbell_migrations', 'everbell_moves', 'everbell_inbox')
                  group by m.name order by m.name";
    let tables: Vec<(String, String)> = sqlx::query_as(tables).fetch_all(&mut connection).await.unwrap();
    let mut lines = Vec::new();
    for (table, columns) in tables {
        let sql = format!("select '{table}: ' || {columns} from {table} order by 1");
        let rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(&mut connection).await.unwrap();
        assert!(!rows.is_empty(), "the fixture has no row for {table}");
        lines.extend(rows);
    }
    let triggers = "select sql from sqlite_schema where type = 'trigger' order by name";
    lines.extend(sqlx::query_scalar::<_, String>(triggers).fetch_all(&mut connection).await.unwrap());
    connection.close().await.unwrap();
    lines
}

pub(super) async fn number(url: &str, sql: &'static str) -> i64 {
    if url.starts_with("sqlite:") {
        let mut connection = SqliteConnection::connect(url).await.unwrap();
        let sql = AssertSqlSafe(sql.replace("everbell.", "everbell_"));
        let number = sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        return number;
    }
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap()
}

pub(super) const JOBS: &str = "select count(*) from everbell.jobs";

#[tokio::test]
async fn every_row_survives_the_way_to_postgres_and_back() {
    let (folder, database) = (Folder::new(), TestDatabase::empty().await);
    let source = full(&folder).await;
    let there = copied(&source, database.url(), &to("pg")).await.unwrap();
    assert!(there.is_equal() && there.was_empty && there.source_marked, "{there:?}");
    assert!(there.tables.iter().all(|table| table.rows > 0 && table.too_old == 0), "{there:?}");
    let back = copied(database.url(), &url(&folder, "back.db"), &to("back")).await.unwrap();
    assert!(back.is_equal(), "{back:?}");
    assert_eq!(sums(&there), sums(&back));
    assert_eq!(dump(&source).await, dump(&url(&folder, "back.db")).await);

    // Times that others wrote as text are times on PostgreSQL; a role that is not known stays unknown.
    let inbox = "select id || ' ' || ifnull(run_at, '-') || ' ' || ifnull(role, '-') || ' ' || ifnull(refusal, '-')
                 from everbell_inbox order by id";
    let mut connection = SqliteConnection::connect(&url(&folder, "back.db")).await.unwrap();
    let inbox: Vec<String> = sqlx::query_scalar(inbox).fetch_all(&mut connection).await.unwrap();
    assert_eq!(inbox, ["3 2027-01-31T07:00:00Z ana -", "4 - - -", "5 - - runAt: not `tomorrow`"]);
    connection.close().await.unwrap();
    // Ids go on behind the last one that was used, also if its row is gone.
    execute(&url(&folder, "back.db"), "insert into everbell.inbox (target) values ('log')").await;
    reopen(database.url()).await.unwrap();
    execute(database.url(), "insert into everbell.inbox (target) values ('log')").await;
    for url in [database.url(), &url(&folder, "back.db")] {
        assert_eq!(number(url, "select max(id) from everbell.inbox").await, 91, "{url}");
    }
}

#[tokio::test]
async fn moved_database_is_refused_until_it_is_reopened() {
    let (folder, database) = (Folder::new(), TestDatabase::empty().await);
    let source = full(&folder).await;
    copied(&source, database.url(), &to("pg")).await.unwrap();
    let moved = inspect(&source).await.unwrap().moved.unwrap();
    assert_eq!(moved.to, "pg");
    let error = connect(&source).await.unwrap_err().to_string();
    assert!(error.starts_with("database: was copied to `pg` at 20"), "{error}");
    assert!(error.ends_with("allow this one again with `everbell db reopen`"), "{error}");
    assert!(
        refusal(&source, &url(&folder, "other.db")).await.starts_with("source: the source was already copied to `pg`")
    );

    copied(database.url(), &url(&folder, "back.db"), &to("back")).await.unwrap();
    let error = connect(database.url()).await.unwrap_err().to_string();
    assert!(error.starts_with("database: was copied to `back` at 20"), "{error}");
    assert_eq!(reopen(database.url()).await.unwrap().unwrap().to, "back");
    assert_eq!(reopen(&source).await.unwrap(), Some(moved));
    assert_eq!(reopen(&source).await.unwrap(), None);
    for url in [&source, database.url()] {
        drop(connect(url).await.unwrap());
    }
}

#[tokio::test]
async fn copy_is_refused_while_somebody_uses_either_database() {
    let (folder, database) = (Folder::new(), TestDatabase::empty().await);
    let source = full(&folder).await;
    let store = connect(&source).await.unwrap();
    let error = refusal(&source, database.url()).await;
    assert!(error.contains("full.db`, the source, open (the last server was process 1 on host h)"), "{error}");
    drop(store);
    let target = url(&folder, "target.db");
    let store = connect(&target).await.unwrap();
    let error = refusal(&source, &target).await;
    assert!(error.contains("target.db`, the target, open; stop the server first"), "{error}");
    drop(store);

    drop(connect(database.url()).await.unwrap());
    let alive = "insert into everbell.instances (id, host, pid, version, roles, targets, started_at, heartbeat_at, draining,
                   clock_skew_ms, lease_until)
                 values ('0190a0c2-0000-8000-8000-00000000aaab', 'web1', 7, '1', '', '', clock_timestamp(), clock_timestamp(),
                   false, 0, clock_timestamp() + interval '50 seconds')";
    execute(database.url(), alive).await;
    let error = refusal(&source, database.url()).await;
    assert!(
        error.starts_with("target: a server uses the target: process 7 on host web1, last heartbeat at "),
        "{error}"
    );
    let error = refusal(database.url(), &target).await;
    assert!(error.starts_with("source: a server uses the source: process 7 on host web1"), "{error}");
    execute(database.url(), "update everbell.instances set lease_until = clock_timestamp()").await;
    assert!(copied(&source, database.url(), &to("pg")).await.unwrap().is_equal(), "its lease is over");
}

/// Copies until the first rows of a table are written, and gives up there.
async fn interrupted(from: &str, target: &str, table: &'static str) {
    let reached = Arc::new(tokio::sync::Notify::new());
    let notify = Arc::clone(&reached);
    let seen = AtomicBool::new(false);
    let options = to("there");
    let report = move |state: &CopyProgress| {
        if (state.step, state.table) == (CopyStep::Copying, table) && !seen.swap(true, Ordering::Relaxed) {
            notify.notify_one();
        }
    };
    tokio::select! {
        biased;
        () = reached.notified() => {}
        done = copy(from, target, &options, &report) => panic!("it was not interrupted: {done:?}"),
    }
}

#[tokio::test]
async fn interrupted_copy_leaves_an_empty_target_and_can_be_repeated() {
    let (folder, database) = (Folder::new(), TestDatabase::empty().await);
    let source = full(&folder).await;
    for target in [database.url(), &url(&folder, "target.db")] {
        interrupted(&source, target, "clock").await;
        assert_eq!(number(target, JOBS).await, 0, "{target}");
        // Neither is marked, and both can be used.
        assert_eq!(inspect(target).await.unwrap().moved, None);
        drop(connect(&source).await.unwrap());
        drop(connect(target).await.unwrap());
        let report = copied(&source, target, &CopyOptions { keep_source: true, ..to("there") }).await.unwrap();
        assert!(report.is_equal() && report.was_empty && !report.source_marked, "{report:?}");
    }
}

#[tokio::test]
async fn copy_that_was_complete_is_recognized_and_other_rows_are_refused() {
    let (folder, database) = (Folder::new(), TestDatabase::empty().await);
    let source = full(&folder).await;
    copied(&source, database.url(), &to("pg")).await.unwrap();
    // As if it had ended before the answer of the commit: the source is marked, and the target has the rows.
    let again = copied(&source, database.url(), &to("pg")).await.unwrap();
    assert!(again.is_equal() && !again.was_empty && again.source_marked, "{again:?}");
    for change in ["update everbell.jobs set description = 'other' where version = 2", "delete from everbell.gaps"] {
        execute(database.url(), change).await;
        let error = copied(&source, database.url(), &to("pg")).await.unwrap_err().to_string();
        assert!(error.starts_with("target: the source was copied here at 20"), "{error}");
    }
    reopen(&source).await.unwrap();
    let error = refusal(&source, database.url()).await;
    let expected = "target: the target is not empty, and its rows are not those of the source (jobs 4, ";
    assert!(error.starts_with(expected), "{error}");
    let error = refusal(&source, &source).await;
    assert_eq!(error, "target: the source and the target are the same database");
}

#[tokio::test]
async fn target_that_changes_rows_is_noticed_and_rolled_back() {
    let (folder, database) = (Folder::new(), TestDatabase::create().await);
    let source = full(&folder).await;
    let meddle = "create function everbell.meddle() returns trigger language plpgsql as $$
                    begin new.description := 'other'; return new; end $$;
                  create trigger meddle before insert on everbell.jobs for each row execute function everbell.meddle()";
    execute(database.url(), meddle).await;
    let report = copied(&source, database.url(), &to("pg")).await.unwrap();
    let differing: Vec<&str> = report.tables.iter().filter(|table| !table.is_equal()).map(|table| table.name).collect();
    assert_eq!((report.is_equal(), report.source_marked, differing), (false, false, vec!["jobs"]));
    assert_eq!(number(database.url(), JOBS).await, 0);
    drop(connect(&source).await.unwrap());
}

#[tokio::test]
async fn history_is_limited_and_the_last_run_of_a_job_stays() {
    let (folder, database) = (Folder::new(), TestDatabase::empty().await);
    let source = full(&folder).await;
    // Since 2022: the runs of 2020 stay behind, but for the last one of its job.
    let options = CopyOptions { history: Some(DAY * 365 * 4), dry_run: true, ..to("pg") };
    let planned = copied(&source, database.url(), &options).await.unwrap();
    assert_eq!(inspect(database.url()).await.unwrap().schema_version, 0, "a dry run creates nothing");
    let options = CopyOptions { dry_run: false, ..options };
    let there = copied(&source, database.url(), &options).await.unwrap();
    assert!(there.is_equal(), "{there:?}");
    let old = |report: &CopyReport| -> Vec<(&'static str, u64, u64)> {
        let limited = report.tables.iter().filter(|table| table.too_old > 0);
        limited.map(|table| (table.name, table.rows, table.too_old)).collect()
    };
    let expected = [
        ("runs", 4, 1),
        ("outcomes", 2, 1),
        ("gaps", 1, 1),
        ("audit", 1, 1),
        ("problems", 1, 1),
        ("deliveries", 1, 1),
        ("absences", 1, 1),
    ];
    assert_eq!(old(&there), expected);
    assert_eq!(old(&planned), expected);
    let lost = "select count(*) from everbell.timers t where t.last_run_id is not null
                and not exists (select 1 from everbell.runs r where r.id = t.last_run_id)";
    assert_eq!(number(database.url(), lost).await, 0);
    // The same back, with the same limit, into a file.
    let options = CopyOptions { target_name: "b".into(), ..options };
    let back = copied(database.url(), &url(&folder, "back.db"), &options).await.unwrap();
    assert!(back.is_equal() && old(&back).is_empty(), "{back:?}");
}

#[tokio::test]
async fn many_rows_pass_in_batches() {
    let (folder, database) = (Folder::new(), TestDatabase::empty().await);
    let source = full(&folder).await;
    let many = "insert into everbell.audit (id, at, actor, action, object, reason)
                with recursive n (n) as (select 1 union all select n + 1 from n where n < 5077)
                select randomblob(16), n, 'ana', 'a', 'o', hex(randomblob(1000)) from n";
    execute(&source, many).await;
    let there = copied(&source, database.url(), &to("pg")).await.unwrap();
    let back = copied(database.url(), &url(&folder, "back.db"), &to("back")).await.unwrap();
    assert!(there.is_equal() && back.is_equal());
    assert_eq!(sums(&there), sums(&back));
    assert_eq!(back.tables.iter().find(|table| table.name == "audit").map(|table| table.rows), Some(5079));
}

#[tokio::test]
async fn schema_of_another_release_is_refused() {
    let (folder, database) = (Folder::new(), TestDatabase::empty().await);
    let source = full(&folder).await;
    let error = refusal(database.url(), &source).await;
    assert!(error.starts_with("source: the source has an older schema (0, and this binary needs "), "{error}");
    let newer = url(&folder, "newer.db");
    drop(connect(&newer).await.unwrap());
    execute(&newer, "insert into everbell.migrations values (999, 0)").await;
    assert!(refusal(&source, &newer).await.starts_with("target: the target has a newer schema (999)"));
    assert!(refusal(&newer, &source).await.starts_with("source: the source has a newer schema (999)"));
    assert!(refusal("sqlite::memory:", &source).await.contains("is in the memory of one process"));
    let bad = "insert into everbell.inbox (target, run_at) values ('log', 'soon')";
    execute(&source, bad).await;
    let error = refusal(&source, database.url()).await;
    assert!(error.contains("asks for the time `soon`, which is not a time; start a server once"), "{error}");
}
