//! A database with many jobs, made by copying one of them.

use std::path::{Path, PathBuf};

use everbell_core::change;
use everbell_core::store::{AuditEntry, Store};
use everbell_core::{Definition, JobId, JobKey, Json, Spec, Target, Zone};
use everbell_store::testing::TestDatabase;
use jiff::Timestamp;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, SqliteConnection};
use uuid::Uuid;

/// The database of the jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Database<'a> {
    Postgres(&'a str),
    Sqlite(&'a Path),
}

/// A yearly job that does nothing, made at this time: something to make copies of.
pub(crate) async fn template(store: &dyn Store, created_at: Timestamp) -> Result<(), Box<dyn std::error::Error>> {
    let definition = everbell_core::with!(Definition {
        payload: Json::parse("payload", r#"{"message":"hello world"}"#)?,
        created_by: "bench".to_owned(),
        ..Definition::new(
            JobId::new(created_at, [1; 10]),
            JobKey::new("template")?,
            Target::new("noop")?,
            Ok(Spec::recurring("0 0 1 1 *".parse()?, Zone::utc(), created_at)),
            created_at
        )
    });
    let audit = AuditEntry {
        id: Uuid::from_u128(1),
        at: created_at,
        actor: "bench".to_owned(),
        action: "job.create".to_owned(),
        object: "job:template".to_owned(),
        reason: None,
        before: None,
        after: None,
        request: None,
        origin: everbell_core::store::Origin::default(),
    };
    store.create_job(&change::create(definition), &audit).await?;
    Ok(())
}

/// Creates this many copies of the template, all with their next fire at this time.
pub(crate) async fn copies(place: Database<'_>, count: u32, next: Timestamp) -> Result<(), Box<dyn std::error::Error>> {
    match place {
        Database::Postgres(url) => {
            let sql = format!(
                "insert into everbell.jobs
                 select (jsonb_populate_record(j, jsonb_build_object('id', gen_random_uuid(), 'job_key', 'copy-' || n))).*
                 from everbell.jobs j, generate_series(1, {count}) n where j.job_key = 'template';
                 update everbell.timers set next_run_at = null where job_id in (select id from everbell.jobs where job_key = 'template');
                 insert into everbell.timers (job_id, target, next_run_at, last_slot_at)
                 select j.id, j.target, timestamptz '{next}', j.created_at from everbell.jobs j where j.job_key like 'copy-%';
                 analyze;"
            );
            let mut connection = PgConnection::connect(url).await?;
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
        }
        Database::Sqlite(path) => {
            let mut connection: SqliteConnection = SqliteConnectOptions::new().filename(path).connect().await?;
            let query =
                "select name from pragma_table_info('everbell_jobs') where name not in ('id', 'job_key') order by cid";
            let columns: Vec<String> = sqlx::query_scalar(query).fetch_all(&mut connection).await?;
            let columns = columns.join(", ");
            let next = next.as_microsecond();
            let sql = format!(
                "insert into everbell_jobs (id, job_key, {columns})
                 with recursive n (n) as (select 1 union all select n + 1 from n where n < {count})
                 select randomblob(16), 'copy-' || n, {columns} from n cross join everbell_jobs where job_key = 'template';
                 update everbell_timers set next_run_at = null where job_id in (select id from everbell_jobs where job_key = 'template');
                 insert into everbell_timers (job_id, org_id, target, next_run_at, last_slot_at)
                 select id, '', target, {next}, created_at from everbell_jobs where job_key like 'copy-%';
                 analyze;"
            );
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
        }
    }
    Ok(())
}

/// How many rows a query counts, which names tables as `everbell.runs`.
pub(crate) async fn count(place: Database<'_>, query: &'static str) -> Result<i64, Box<dyn std::error::Error>> {
    Ok(match place {
        Database::Postgres(url) => sqlx::query_scalar(query).fetch_one(&mut PgConnection::connect(url).await?).await?,
        Database::Sqlite(path) => {
            let mut connection: SqliteConnection = SqliteConnectOptions::new().filename(path).connect().await?;
            let query = AssertSqlSafe(query.replace("everbell.", "everbell_"));
            sqlx::query_scalar(query).fetch_one(&mut connection).await?
        }
    })
}

/// A database for one measurement.
pub(crate) enum Fresh {
    Postgres(TestDatabase),
    Sqlite(PathBuf),
}

impl Fresh {
    pub(crate) async fn both(server: &str) -> [(&'static str, Fresh); 2] {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("everbell-bench-engine-{}-{number}", std::process::id()));
        let database = TestDatabase::empty_on(server).await;
        [("PostgreSQL", Fresh::Postgres(database)), ("SQLite", Fresh::Sqlite(folder.join("bench.db")))]
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Fresh::Postgres(database) => database.url().to_owned(),
            Fresh::Sqlite(path) => format!("sqlite:{}", path.display()),
        }
    }

    pub(crate) fn place(&self) -> Database<'_> {
        match self {
            Fresh::Postgres(database) => Database::Postgres(database.url()),
            Fresh::Sqlite(path) => Database::Sqlite(path),
        }
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if let Fresh::Sqlite(path) = self
            && let Some(folder) = path.parent()
        {
            let _best_effort = std::fs::remove_dir_all(folder);
        }
    }
}
