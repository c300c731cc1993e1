//! An empty database of one's own.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::sync::OnceLock;

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqliteConnection};

/// A database for one test, gone when it is dropped.
///
/// A test that is killed leaves its database behind: it goes with the private server, or the next test on the same given
/// server removes it.
#[derive(Debug)]
pub struct TestDatabase {
    server: String,
    name: String,
    url: String,
}

impl TestDatabase {
    /// On the server of [`super::postgres_url`]. Panics with the reason when that fails.
    pub async fn create() -> TestDatabase {
        TestDatabase::create_on(&super::postgres_url()).await
    }

    /// On this server. Panics with the reason when that fails.
    pub async fn create_on(server: &str) -> TestDatabase {
        static SWEPT: OnceLock<()> = OnceLock::new();
        let (server, name) = (server.to_owned(), fresh_name());
        let mut connection = PgConnection::connect(&server).await.expect("connect to the test server");
        // A private server goes as a whole.
        if super::given_url().is_some() && SWEPT.set(()).is_ok() {
            sweep(&mut connection).await;
        }
        // From template0, because nobody can be connected to that.
        let sql = format!("create database {name} template template0");
        connection.execute(AssertSqlSafe(sql)).await.expect("create a test database");
        connection.close().await.expect("close the connection");
        let url = with_database(&server, &name);
        TestDatabase { server, name, url }
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

/// Runs statements on the database of an address, `postgres://…` or `sqlite:…`: what a test does to a database behind the
/// back of the store. Panics with the reason when that fails.
pub async fn execute(url: &str, sql: &'static str) {
    if url.starts_with("sqlite:") {
        let mut connection = SqliteConnection::connect(url).await.expect("open the test database");
        connection.execute(sql).await.expect("run the statements");
        return connection.close().await.expect("close the test database");
    }
    let mut connection = PgConnection::connect(url).await.expect("connect to the test database");
    connection.execute(sql).await.expect("run the statements");
    connection.close().await.expect("close the connection");
}

impl Drop for TestDatabase {
    /// In a thread of its own: the caller may be inside of a runtime, or that runtime may be gone.
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        let drop_database = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
            runtime.block_on(async {
                let mut connection = PgConnection::connect(&server).await.ok()?;
                drop_by_name(&mut connection, &name).await;
                connection.close().await.ok()
            })
        };
        let _best_effort = std::thread::spawn(drop_database).join();
    }
}

/// Also while somebody is connected to it.
async fn drop_by_name(connection: &mut PgConnection, name: &str) {
    let sql = format!("drop database if exists {name} with (force)");
    let _best_effort = connection.execute(AssertSqlSafe(sql)).await;
}

/// `evb_HOST_PID_RANDOM`: who made it, so that others can tell when that process is gone.
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
async fn sweep(connection: &mut PgConnection) {
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

/// The same server, another database.
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
