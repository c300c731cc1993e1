//! A newer release migrates the database while an older one goes on with connections that know the tables as they were.

use everbell_core::store::{
    GapFilter, JobFilter, JobRef, JobSort, PageRequest, RecentRuns, RunFilter, SessionFilter, Store,
};
use everbell_core::{JobKey, RunStatus};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection};

use super::broken::{Broken, on_both};
use super::sqlite_world::{at, create, finish, plan_due, start};

on_both!(a_store_goes_on_after_a_newer_release_has_migrated);

const VIEWS: [&str; 2] = ["run_rows", "job_rows"];

/// Adds a column to every table and every view.
async fn grow(database: &Broken) {
    match database {
        Broken::OnServer(database) => {
            let mut connection = PgConnection::connect(database.url()).await.unwrap();
            let sql = "select table_name::text from information_schema.tables
                       where table_schema = 'everbell' and table_type = 'BASE TABLE'";
            let tables: Vec<String> = sqlx::query_scalar(sql).fetch_all(&mut connection).await.unwrap();
            assert!(tables.len() > 10, "{tables:?}");
            let mut sql: Vec<String> =
                tables.iter().map(|table| format!("alter table everbell.{table} add column later text")).collect();
            for view in VIEWS {
                let old = format!("select rtrim(pg_get_viewdef('everbell.{view}'::regclass), ';')");
                let old: String = sqlx::query_scalar(AssertSqlSafe(old)).fetch_one(&mut connection).await.unwrap();
                sql.push(format!("create or replace view everbell.{view} as select v.*, 1 as later from ({old}) v"));
            }
            sqlx::raw_sql(AssertSqlSafe(sql.join(";"))).execute(&mut connection).await.unwrap();
        }
        Broken::InFile(folder) => {
            let options = SqliteConnectOptions::new().filename(folder.file());
            let mut connection = options.connect().await.unwrap();
            let sql = "select name from sqlite_schema where type = 'table' and name like 'everbell\\_%' escape '\\'";
            let tables: Vec<String> = sqlx::query_scalar(sql).fetch_all(&mut connection).await.unwrap();
            assert!(tables.len() > 10, "{tables:?}");
            let mut sql: Vec<String> =
                tables.iter().map(|table| format!("alter table {table} add column later text")).collect();
            for view in VIEWS {
                let old = format!("select sql from sqlite_schema where name = 'everbell_{view}'");
                let old: String = sqlx::query_scalar(AssertSqlSafe(old)).fetch_one(&mut connection).await.unwrap();
                // In front: a view may have its columns in any order.
                let new = old.replacen("select ", "select 'later' as later, ", 1);
                assert_ne!(old, new);
                sql.push(format!("drop view everbell_{view}; {new}"));
            }
            sqlx::raw_sql(AssertSqlSafe(sql.join(";"))).execute(&mut connection).await.unwrap();
        }
    }
}

/// Everything that is read, as text.
async fn read(store: &dyn Store) -> Vec<String> {
    let page = PageRequest { limit: 100, after: None };
    let keys = ["good", "other"].map(|key| JobKey::new(key).unwrap());
    let mut read = Vec::new();
    for sort in [JobSort::Key, JobSort::NextRunAt, JobSort::CreatedAt, JobSort::Target, JobSort::LastRun] {
        let jobs = |filter: JobFilter| JobFilter { sort, ..filter };
        for filter in
            [jobs(JobFilter::default()), jobs(JobFilter { key: Some(keys[0].clone()), ..JobFilter::default() })]
        {
            read.push(format!("{sort:?} {:?}", store.list_jobs(&filter, &page).await.unwrap().items));
        }
    }
    for key in &keys {
        let row = store.get_job(&JobRef::Key(key.clone())).await.unwrap();
        let run = row.last_run.as_ref().unwrap().id;
        read.push(format!("{row:?} {:?}", store.get_run(run).await.unwrap()));
        let filter = RunFilter { job_key: Some(key.clone()), ..RunFilter::default() };
        read.push(format!("{:?}", store.list_runs(&filter, &page).await.unwrap().items));
    }
    for status in [
        vec![],
        vec![RunStatus::Pending],
        vec![RunStatus::Succeeded],
        vec![RunStatus::Failed],
        vec![RunStatus::Skipped],
    ] {
        let filter = RunFilter { status, ..RunFilter::default() };
        read.push(format!("{:?}", store.list_runs(&filter, &page).await.unwrap().items));
    }
    let recent = RecentRuns::new(keys.to_vec(), 5).unwrap();
    read.push(format!("{:?}", store.recent_runs(&recent).await.unwrap()));
    read.push(format!("{:?}", store.list_gaps(&GapFilter::default(), &page).await.unwrap().items));
    read.push(format!("{:?}", store.list_audit(None, &page).await.unwrap().items));
    read.push(format!("{:?}", store.list_instances().await.unwrap()));
    read.push(format!("{:?}", store.list_tokens().await.unwrap()));
    read.push(format!("{:?}", store.list_sessions(&SessionFilter::default(), at("02:00:00")).await.unwrap()));
    read.push(format!("{:?}", store.open_inbox(10, &[]).await.unwrap()));
    read.push(format!("{:?}", store.list_org_updates().await.unwrap()));
    read
}

/// One fire of each job.
async fn fire(store: &dyn Store, now: &str) {
    assert_eq!(plan_due(store, at(now), 10).await.unwrap().runs.len(), 2);
    let claims = start(store, 1, at(now), 10).await.unwrap();
    finish(store, &claims, at(now)).await.unwrap();
    assert_eq!(claims.len(), 2);
}

async fn a_store_goes_on_after_a_newer_release_has_migrated(database: Broken) {
    let store = database.open().await;
    create(&*store, "good", "0 * * * *").await;
    create(&*store, "other", "0 * * * *").await;
    fire(&*store, "01:00:00").await;
    let before = read(&*store).await;
    grow(&database).await;
    assert_eq!(read(&*store).await, before);
    fire(&*store, "02:00:00").await;
    assert_ne!(read(&*store).await, before);
}
