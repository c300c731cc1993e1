//! A database of one's own, empty or with the schema in place.

use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::path::Path;
use std::sync::OnceLock;

use everbell_core::store::ClusterStore;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqliteConnection};

use crate::postgres::schema::DEFAULT_SCHEMA;
use crate::postgres::{PostgresStore, migrate};

/// How many databases of finished tests a private server keeps, of about 8 MB each.
const MAX_KEPT: i64 = 100;

/// The template of an empty database. It accepts no connections.
const EMPTY: &str = "template0";

/// A database for one test.
///
/// On a given server it is gone when it is dropped; one that a killed test leaves behind is removed by the next test. On the
/// shared private server it stays for a while: PostgreSQL writes a checkpoint for each database that it drops, and a
/// second one after the first has little to write.
#[derive(Debug)]
pub struct TestDatabase {
    server: String,
    name: String,
    url: String,
    /// Whether it may stay for a while.
    kept: bool,
}

impl TestDatabase {
    /// A database with the latest schema on the server of [`super::postgres_url`], copied from a template that the first
    /// test migrates. Panics with the reason when that fails.
    pub async fn create() -> TestDatabase {
        let server = super::postgres_url();
        let mut connection = connect(&server).await;
        let template = migrated_template(&mut connection, &server).await;
        let mut database = TestDatabase::copy(connection, &server, &template).await;
        database.kept = super::given_url().is_none();
        database
    }

    /// An empty database on the server of [`super::postgres_url`]. Panics with the reason when that fails.
    pub async fn empty() -> TestDatabase {
        let mut database = TestDatabase::empty_on(&super::postgres_url()).await;
        database.kept = super::given_url().is_none();
        database
    }

    /// An empty database on this server, gone when it is dropped. Panics with the reason when that fails.
    pub async fn empty_on(server: &str) -> TestDatabase {
        TestDatabase::copy(connect(server).await, server, EMPTY).await
    }

    async fn copy(mut connection: PgConnection, server: &str, template: &str) -> TestDatabase {
        let (server, name) = (server.to_owned(), fresh_name());
        create_database(&mut connection, &name, template).await;
        connection.close().await.expect("close the connection");
        let url = with_database(&server, &name);
        TestDatabase { server, name, url, kept: false }
    }

    /// `postgres://…`, to connect with.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The name of the database on its server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The database of the same server where others can be created and dropped.
    pub fn server_url(&self) -> &str {
        &self.server
    }
}

/// Connects to a server, and removes what dead tests left there.
async fn connect(server: &str) -> PgConnection {
    static CLEANED: OnceLock<()> = OnceLock::new();
    let mut connection = PgConnection::connect(server).await.expect("connect to the test server");
    // A private server goes as a whole.
    if super::given_url().is_some() && CLEANED.set(()).is_ok() {
        drop_leftovers(&mut connection).await;
    }
    connection
}

async fn create_database(connection: &mut PgConnection, name: &str, template: &str) {
    let sql = format!("create database {name} template {template}");
    connection.execute(AssertSqlSafe(sql)).await.expect("create a test database");
}

/// The name of a database with the schema of this build. The first process that asks for it creates it; the others wait.
async fn migrated_template(connection: &mut PgConnection, server: &str) -> String {
    static EXISTS: OnceLock<()> = OnceLock::new();
    let name = format!("evb_template_{:016x}", schema_hash());
    if EXISTS.get().is_some() {
        return name;
    }
    connection.execute("select pg_advisory_lock(1702257002)").await.expect("wait for other tests");
    let find = sqlx::query_scalar("select exists (select from pg_database where datname = $1)").bind(&name);
    let exists: bool = find.fetch_one(&mut *connection).await.expect("look for the template");
    if !exists {
        // Under another name first: a process that is killed here leaves no template without a schema.
        let draft = fresh_name();
        create_database(connection, &draft, EMPTY).await;
        let store = PostgresStore::connect(&with_database(server, &draft)).await.expect("migrate the template");
        store.close().await.expect("close the template");
        // Like template0, it accepts no connections, so that it can always be copied.
        let lock = format!("alter database {draft} allow_connections false");
        connection.execute(AssertSqlSafe(lock)).await.expect("close the template to connections");
        let end = "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = $1";
        sqlx::query(end).bind(&draft).execute(&mut *connection).await.expect("end the connections to the template");
        let rename = format!("alter database {draft} rename to {name}");
        connection.execute(AssertSqlSafe(rename)).await.expect("name the template");
    }
    connection.execute("select pg_advisory_unlock(1702257002)").await.expect("let other tests go on");
    let _ = EXISTS.set(());
    name
}

/// Differs between builds whose migrations, or their schema, differ.
fn schema_hash() -> u64 {
    let mut hasher = DefaultHasher::new();
    (DEFAULT_SCHEMA, migrate::MIGRATIONS).hash(&mut hasher);
    hasher.finish()
}

/// Runs statements on the database of an address, `postgres://…` or `sqlite:…`: what a test does to a database behind the
/// back of the store. They name tables as `everbell.jobs`, which is `everbell_jobs` on SQLite. Panics with the reason when
/// that fails.
pub async fn execute(url: &str, sql: &'static str) {
    if url.starts_with("sqlite:") {
        let mut connection = SqliteConnection::connect(url).await.expect("open the test database");
        let sql = AssertSqlSafe(sql.replace("everbell.", "everbell_"));
        connection.execute(sql).await.expect("run the statements");
        return connection.close().await.expect("close the test database");
    }
    let mut connection = PgConnection::connect(url).await.expect("connect to the test database");
    connection.execute(sql).await.expect("run the statements");
    connection.close().await.expect("close the connection");
}

impl Drop for TestDatabase {
    /// In a new thread: the caller may be inside of a runtime, or that runtime may be gone.
    fn drop(&mut self) {
        let (server, name, kept) = (self.server.clone(), self.name.clone(), self.kept);
        let drop_database = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
            runtime.block_on(async {
                let mut connection = PgConnection::connect(&server).await.ok()?;
                if !kept || is_full(&mut connection).await {
                    drop_by_name(&mut connection, &name).await;
                }
                connection.close().await.ok()
            })
        };
        let _best_effort = std::thread::spawn(drop_database).join();
    }
}

/// Whether there are many databases on a private server. Then one of the tests drops those of finished tests.
async fn is_full(connection: &mut PgConnection) -> bool {
    let count = sqlx::query_scalar("select count(*) from pg_database where starts_with(datname, $1)");
    let kept: i64 = count.bind(own_prefix()).fetch_one(&mut *connection).await.unwrap_or(0);
    if kept > MAX_KEPT {
        let first: bool = sqlx::query_scalar("select pg_try_advisory_lock(1702257003)")
            .fetch_one(&mut *connection)
            .await
            .unwrap_or(false);
        if first {
            drop_leftovers(connection).await;
        }
    }
    kept > MAX_KEPT
}

/// Drops a database, even if it has connections.
async fn drop_by_name(connection: &mut PgConnection, name: &str) {
    let sql = format!("drop database if exists {name} with (force)");
    let _best_effort = connection.execute(AssertSqlSafe(sql)).await;
}

/// `evb_HOST_PID_RANDOM`: names its creator, so that others can see when that process is gone.
fn fresh_name() -> String {
    let random = RandomState::new().build_hasher().finish();
    format!("{}{}_{random:016x}", own_prefix(), std::process::id())
}

fn own_prefix() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let host = read("/proc/sys/kernel/random/boot_id") + &read("/proc/sys/kernel/hostname");
    // FNV-1a: the same in every build.
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    format!("evb_{:08x}_", host.bytes().fold(0x811c_9dc5, step))
}

/// Drops what dead processes of this machine left on a server that outlives the tests.
async fn drop_leftovers(connection: &mut PgConnection) {
    let prefix = own_prefix();
    let names: Vec<String> = sqlx::query_scalar("select datname::text from pg_database where starts_with(datname, $1)")
        .bind(&prefix)
        .fetch_all(&mut *connection)
        .await
        .expect("list the databases of the test server");
    let pid = |name: &str| name.strip_prefix(&prefix)?.split('_').next()?.parse::<u32>().ok();
    let is_left = |name: &&String| pid(name).is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
    for name in names.iter().filter(is_left) {
        drop_by_name(connection, name).await;
    }
}

/// Returns the URL of another database on the same server.
fn with_database(url: &str, name: &str) -> String {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let path = url[authority..].find(['/', '?']).map_or(url.len(), |at| authority + at);
    let query = url[path..].find('?').map_or("", |at| &url[path + at..]);
    format!("{}/{name}{query}", &url[..path])
}

#[test]
fn the_database_of_a_url_is_replaced() {
    for (url, expected) in [
        ("postgres://a:b@host:1/old?x=/y", "postgres://a:b@host:1/new?x=/y"),
        ("postgres://host", "postgres://host/new"),
        ("postgres://host/", "postgres://host/new"),
        ("postgres://host?x=1", "postgres://host/new?x=1"),
    ] {
        assert_eq!(with_database(url, "new"), expected);
    }
}
