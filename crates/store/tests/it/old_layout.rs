//! Databases of releases whose tables had no schema and no prefix of their own: they are moved with all rows.

use std::path::Path;

use everbell_core::JobKey;
use everbell_core::store::{
    GapFilter, JobFilter, JobRef, OrgFilter, PageRequest, Planned, RunFilter, SessionFilter, Store,
};
use everbell_store::connect;
use everbell_store::testing::TestDatabase;
use everbell_store::upkeep::inspect;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::sqlite::Folder;
use super::sqlite_own::raw;
use super::sqlite_world::{at, finish, plan_due, start};

const POSTGRES: [&str; 2] =
    [include_str!("fixtures/old_layout_postgres.sql"), include_str!("fixtures/old_rows_postgres.sql")];
const SQLITE: [&str; 2] =
    [include_str!("fixtures/old_layout_sqlite.sql"), include_str!("fixtures/old_rows_sqlite.sql")];

/// The last version of the old layout.
const LAST_VERSION: u32 = 6;

/// An old release asks this, and refuses a version that it does not know.
const LAST: &str = "select coalesce(max(version), 0) from schema_migrations";

/// The statements that lead to a version, and rows of that time.
fn old_database([tables, rows]: [&str; 2], version: u32, create: &str, now: &str) -> String {
    let mut sql = format!("{create};\n");
    for text in [tables, rows] {
        for part in text.split("-- migration ").skip(1) {
            let (number, statements) = part.split_once('\n').unwrap();
            if number.parse::<u32>().unwrap() <= version {
                sql += statements;
            }
        }
    }
    let notes: Vec<String> = (1..=version).map(|number| format!("({number}, {now})")).collect();
    sql + &format!("insert into schema_migrations (version, applied_at) values {};\n", notes.join(", "))
}

fn old_postgres(version: u32) -> String {
    let create = "create table schema_migrations (version integer primary key, applied_at timestamptz not null)";
    old_database(POSTGRES, version, create, "clock_timestamp()")
}

fn old_sqlite(version: u32) -> String {
    let create = "create table schema_migrations (version integer primary key, applied_at integer not null) strict";
    old_database(SQLITE, version, create, "0")
}

async fn on_server(database: &TestDatabase, sql: String) {
    let mut connection = PgConnection::connect(database.url()).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
}

/// Runs statements in a file, which need not exist.
pub(super) async fn in_file(file: &Path, sql: String) {
    std::fs::OpenOptions::new().append(true).create(true).open(file).unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut raw(file).await).await.unwrap();
}

fn page() -> PageRequest {
    PageRequest { limit: 100, after: None }
}

/// Reads everything that the fixture holds, by the verbs of the store.
async fn everything_is_there(store: &dyn Store, version: u32) {
    let jobs = store.list_jobs(&JobFilter::default(), &page()).await.unwrap();
    assert_eq!((jobs.items.len(), jobs.unreadable.len()), (2, 0), "{jobs:?}");
    let job = store.get_job(&JobRef::Key(JobKey::new("hourly").unwrap())).await.unwrap();
    assert_eq!(job.job.definition.payload.as_str(), r#"{"a":1}"#);
    assert_eq!(job.timer.unwrap().next_run_at, Some(at("01:00:00")));
    let runs = store.list_runs(&RunFilter::default(), &page()).await.unwrap().items;
    let statuses: Vec<String> = runs.iter().map(|run| run.status.to_string()).collect();
    assert_eq!(statuses, ["pending", "succeeded"], "{runs:?}");
    assert_eq!(store.list_gaps(&GapFilter::default(), &page()).await.unwrap().items.len(), 1);
    let orgs = store.list_orgs(&OrgFilter::default(), &page()).await.unwrap().items;
    assert_eq!(orgs.iter().map(|org| org.id.as_str()).collect::<Vec<_>>(), ["acme"]);
    assert_eq!(store.list_audit(None, &page()).await.unwrap().items[0].object, "job:hourly");
    assert_eq!(store.find_token(&[0; 32], at("00:30:00")).await.unwrap().unwrap().name, "ana");
    let sessions = store.list_sessions(&SessionFilter::default(), at("00:30:00")).await.unwrap();
    assert_eq!(sessions.len(), usize::from(version >= 5));
    let trace = store.clock_trace().await.unwrap();
    assert_eq!(trace.trusted_at.is_some(), version >= 3, "{trace:?}");
}

/// Plans, starts and ends runs, as an instance does.
async fn planning_goes_on(store: &dyn Store) {
    let Planned { runs, .. } = plan_due(store, at("01:00:00"), 10).await.unwrap();
    assert_eq!(runs.iter().map(|run| run.job.key.as_str()).collect::<Vec<_>>(), ["hourly"]);
    let claims = start(store, 1, at("01:00:00"), 10).await.unwrap();
    assert_eq!(claims.len(), 2, "the new one, and the one that waited: {claims:?}");
    assert_eq!(finish(store, &claims, at("01:00:01")).await.unwrap().len(), 2);
}

async fn is_moved(url: &str, version: u32) {
    let found = inspect(url).await.unwrap();
    assert_eq!((found.schema_version, found.old_layout, found.content), (version, true, None));
    let store = connect(url).await.unwrap();
    everything_is_there(&*store, version).await;
    let found = inspect(url).await.unwrap();
    assert_eq!((found.schema_version, found.old_layout), (found.needed_version, false));
    assert_eq!(found.content.unwrap().runs, 2);
    let again = connect(url).await.unwrap();
    everything_is_there(&*again, version).await;
    planning_goes_on(&*again).await;
}

#[tokio::test]
async fn postgres_tables_of_an_old_release_are_moved() {
    for version in [LAST_VERSION, 3, 1] {
        let database = TestDatabase::empty().await;
        on_server(&database, old_postgres(version)).await;
        is_moved(database.url(), version).await;
        assert_eq!(relations(&database, "public").await, ["schema_migrations", "schema_migrations_pkey"]);
        let mut connection = PgConnection::connect(database.url()).await.unwrap();
        let left: i32 = sqlx::query_scalar(LAST).fetch_one(&mut connection).await.unwrap();
        assert!(left > LAST_VERSION as i32, "an old binary would begin anew");
    }
}

#[tokio::test]
async fn an_applications_table_with_a_name_of_a_later_release_is_not_moved() {
    let database = TestDatabase::empty().await;
    on_server(&database, old_postgres(3) + "create table sessions (visitor text); insert into sessions values ('ana')")
        .await;
    is_moved(database.url(), 3).await;
    let mut connection = PgConnection::connect(database.url()).await.unwrap();
    let mine = sqlx::query_scalar("select visitor from public.sessions").fetch_one(&mut connection);
    let mine: String = mine.await.unwrap();
    assert_eq!(mine, "ana");
}

#[tokio::test]
async fn old_tables_beside_new_ones_are_refused() {
    let database = TestDatabase::empty().await;
    connect(database.url()).await.unwrap();
    on_server(&database, old_postgres(LAST_VERSION)).await;
    let error = connect(database.url()).await.unwrap_err().to_string();
    assert!(error.contains("both the schema `everbell` and the schema `public` hold tables of everbell"), "{error}");
    on_server(&database, "drop schema everbell cascade".to_owned()).await;
    is_moved(database.url(), LAST_VERSION).await;
}

#[tokio::test]
async fn a_start_that_waits_for_another_ones_move_finds_it_done() {
    let database = TestDatabase::empty().await;
    on_server(&database, old_postgres(LAST_VERSION)).await;
    let mut holder = PgConnection::connect(database.url()).await.unwrap();
    let hold = "begin; lock table schema_migrations in share mode";
    sqlx::raw_sql(hold).execute(&mut holder).await.unwrap();
    let url = database.url().to_owned();
    let starts: Vec<_> = (0..2)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move { connect(&url).await.map(drop) })
        })
        .collect();
    let waiting = "select count(*) from pg_stat_activity
                   where datname = current_database() and wait_event_type = 'Lock'";
    // Not by the holder: what a transaction has seen of the others' activity stays as it was.
    let mut watcher = PgConnection::connect(database.url()).await.unwrap();
    while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut watcher).await.unwrap() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    sqlx::raw_sql("commit").execute(&mut holder).await.unwrap();
    for start in starts {
        start.await.unwrap().unwrap();
    }
    everything_is_there(&*connect(&url).await.unwrap(), LAST_VERSION).await;
}

#[tokio::test]
async fn sqlite_tables_of_an_old_release_are_renamed() {
    for version in [LAST_VERSION, 3, 1] {
        let folder = Folder::new();
        in_file(&folder.file(), old_sqlite(version)).await;
        is_moved(&format!("sqlite:{}", folder.file().display()), version).await;
        let others = "select name from sqlite_schema where name not like 'everbell\\_%' escape '\\'
                      and name not like 'sqlite\\_%' escape '\\'";
        let others: Vec<String> = sqlx::query_scalar(others).fetch_all(&mut raw(&folder.file()).await).await.unwrap();
        assert_eq!(others, ["schema_migrations"]);
        let left: u32 = sqlx::query_scalar(LAST).fetch_one(&mut raw(&folder.file()).await).await.unwrap();
        assert!(left > LAST_VERSION, "an old binary would begin anew");
        let broken = "pragma foreign_key_check";
        assert!(sqlx::query(broken).fetch_all(&mut raw(&folder.file()).await).await.unwrap().is_empty());
    }
}

/// The tables, views, indexes and sequences of a schema.
pub(super) async fn relations(database: &TestDatabase, schema: &str) -> Vec<String> {
    let query = "select c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
                 where n.nspname = $1 order by 1";
    let mut connection = PgConnection::connect(database.url()).await.unwrap();
    sqlx::query_scalar(query).bind(schema).fetch_all(&mut connection).await.unwrap()
}

/// The definitions of everything in a schema, without its name.
async fn definitions(url: &str, schema: &str) -> Vec<String> {
    let query = "select replace(line, $1 || '.', '') from (
                   select c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) as line
                   from pg_attribute a join pg_class c on c.oid = a.attrelid
                   where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'v') and a.attnum > 0
                   union all select indexdef from pg_indexes where schemaname = $1
                   union all select viewname || definition from pg_views where schemaname = $1
                   union all select conrelid::regclass || ' ' || conname || pg_get_constraintdef(oid) from pg_constraint
                   where connamespace = $1::regnamespace
                 ) as all_of_it order by 1";
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::query_scalar(query).bind(schema).fetch_all(&mut connection).await.unwrap()
}

#[tokio::test]
async fn a_moved_database_is_the_same_as_a_new_one() {
    let (old, new) = (TestDatabase::empty().await, TestDatabase::empty().await);
    on_server(&old, old_postgres(LAST_VERSION)).await;
    for database in [&old, &new] {
        connect(database.url()).await.unwrap();
    }
    assert_eq!(definitions(old.url(), "everbell").await, definitions(new.url(), "everbell").await);

    let (old, new) = (Folder::new(), Folder::new());
    in_file(&old.file(), old_sqlite(LAST_VERSION)).await;
    let mut found = Vec::new();
    for folder in [&old, &new] {
        connect(&format!("sqlite:{}", folder.file().display())).await.unwrap();
        let objects = "select type || ' ' || name || ' ' || tbl_name || ' ' || coalesce(replace(sql, '\"', ''), '')
                       from sqlite_schema where name <> 'schema_migrations' order by 1";
        let objects: Vec<String> = sqlx::query_scalar(objects).fetch_all(&mut raw(&folder.file()).await).await.unwrap();
        found.push(objects.into_iter().map(|line| line.to_lowercase()).collect::<Vec<_>>());
    }
    assert_eq!(found[0], found[1]);
}

#[tokio::test]
async fn instances_that_start_together_move_tables_once() {
    let database = TestDatabase::empty().await;
    on_server(&database, old_postgres(4)).await;
    let url = database.url().to_owned();
    let starts: Vec<_> = (0..4)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move { connect(&url).await.map(drop) })
        })
        .collect();
    for start in starts {
        start.await.unwrap().unwrap();
    }
    everything_is_there(&*connect(&url).await.unwrap(), 4).await;
}

#[tokio::test]
async fn tables_of_an_old_release_that_had_a_search_path_stay_in_their_schema() {
    let database = TestDatabase::empty().await;
    let sql = format!("create schema everbell; set search_path = everbell; {}", old_postgres(LAST_VERSION));
    on_server(&database, sql).await;
    let more = if database.url().contains('?') { '&' } else { '?' };
    let url = format!("{}{more}options=-csearch_path%3Deverbell", database.url());
    is_moved(&url, LAST_VERSION).await;
    let found = relations(&database, "everbell").await;
    assert!(found.contains(&"migrations".to_owned()), "{found:?}");
}
