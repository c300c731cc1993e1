//! The PostgreSQL store behind a real `PgBouncer` in transaction mode, with fewer connections than the store has.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use everbell_core::store::{ClusterStore, Store};
use everbell_store::conformance::{Case, Database, Fresh};
use everbell_store::postgres::PostgresStore;
use everbell_store::testing::TestDatabase;

use crate::chosen::{family, sample};

/// A pooler of its own, gone with the test.
struct Pooler {
    process: Child,
    folder: PathBuf,
    database: TestDatabase,
}

impl Pooler {
    async fn start() -> Pooler {
        Pooler::start_with("").await
    }

    async fn start_with(more: &str) -> Pooler {
        let database = TestDatabase::create().await;
        let (_, server) = database.url().split_once("?host=").expect("the private server, which has a folder");
        // It refuses to run as root, so it runs as whoever owns the server.
        let owner = std::fs::metadata(server).unwrap();
        let folder = std::env::temp_dir().join(format!("everbell-pooler-{}", database.name()));
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::chown(&folder, Some(owner.uid()), Some(owner.gid())).unwrap();
        std::fs::write(folder.join("pgbouncer.ini"), settings(server, &folder) + more).unwrap();
        let mut command = Command::new("setpriv");
        // The kernel ends it also when the test is killed.
        command.args(["--pdeathsig", "KILL", "--reuid", &owner.uid().to_string(), "--regid", &owner.gid().to_string()]);
        command.args(["--clear-groups", "pgbouncer", "-q"]).arg(folder.join("pgbouncer.ini")).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().unwrap();
        let mut pooler = Pooler { process, folder, database };
        while UnixStream::connect(pooler.folder.join(".s.PGSQL.6432")).is_err() {
            let ended = pooler.process.try_wait().unwrap();
            assert!(ended.is_none(), "pgbouncer ({ended:?}); `./scripts/test setup` installs it");
            tokio::task::yield_now().await;
        }
        pooler
    }

    fn url(&self, more: &str) -> String {
        self.url_of(self.database.name(), more)
    }

    fn url_of(&self, database: &str, more: &str) -> String {
        format!("postgres://postgres@localhost:6432/{database}?host={}{more}", self.folder.display())
    }

    async fn connect(&self) -> Arc<dyn Store> {
        self.connect_to(self.database.name()).await
    }

    async fn connect_to(&self, database: &str) -> Arc<dyn Store> {
        let url = self.url_of(database, "&pooler=transaction");
        Arc::new(PostgresStore::connect(&url).await.unwrap())
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ended = self.process.kill().and_then(|()| self.process.wait());
        let _best_effort = std::fs::remove_dir_all(&self.folder);
    }
}

fn settings(server: &str, folder: &Path) -> String {
    format!(
        "[databases]\n* = host={server} port=5432 user=postgres\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\n\
         unix_socket_dir = {}\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 3\nmax_client_conn = 200\n",
        folder.display()
    )
}

struct Pooled {
    store: Arc<dyn Store>,
    pooler: Arc<Pooler>,
    database: TestDatabase,
}

#[async_trait::async_trait]
impl Database for Pooled {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    async fn reconnect(&self) -> Arc<dyn Store> {
        self.pooler.connect_to(self.database.name()).await
    }
}

async fn keeps(cases: Vec<Case>) {
    let pooler = Arc::new(Pooler::start().await);
    for case in cases {
        let database = TestDatabase::create().await;
        let store = pooler.connect_to(database.name()).await;
        (case.run)(Fresh::with(Pooled { store, pooler: Arc::clone(&pooler), database })).await;
    }
}

/// Statements and transactions go the same way behind a pooler, whatever they say: a sample of all families is enough.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn first_sample() {
    keeps(sample(2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn second_sample() {
    keeps(sample(3)).await;
}

/// Races meet fewer connections than they ask for.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrency() {
    keeps(family("concurrency")).await;
}

#[tokio::test]
async fn a_store_behind_a_pooler_says_that_it_does_not_listen() {
    let pooler = Pooler::start().await;
    let status = pooler.connect().await.status().await.unwrap();
    assert_eq!(status.notes, ["LISTEN is off behind the pooler: loops notice changes when they poll"]);
}

/// The application's pool may go through a pooler that nobody has named: it accepts `LISTEN`, and passes nothing on.
#[tokio::test]
async fn a_given_pool_behind_a_pooler_does_not_take_silence_for_idleness() {
    let pooler = Pooler::start_with("ignore_startup_parameters = extra_float_digits, options\n").await;
    let direct = PostgresStore::connect(pooler.database.url()).await.unwrap();
    while !direct.hears_others() {
        tokio::task::yield_now().await;
    }
    let pool = sqlx::postgres::PgPoolOptions::new().max_connections(2).connect(&pooler.url("")).await.unwrap();
    let mut woken = std::pin::pin!(tokio::time::timeout(std::time::Duration::from_secs(20), direct.woken()));
    let behind = PostgresStore::from_pool(pool).await.unwrap();
    // Who wants to know whether it hears says a word to itself, which the other one hears.
    let woken = loop {
        assert!(!behind.hears_others(), "it would rest, and nobody would wake it");
        tokio::select! {
            woken = &mut woken => break woken,
            () = tokio::time::sleep(std::time::Duration::from_millis(10)) => {}
        }
    };
    woken.expect("it listens");
    assert!(!behind.hears_others(), "it would rest, and nobody would wake it");
}

#[tokio::test]
async fn an_address_that_does_not_name_the_pooler_is_told_how() {
    let pooler = Pooler::start().await;
    let error = PostgresStore::connect(&pooler.url("")).await.unwrap_err().to_string();
    assert!(error.contains("add `pooler=transaction` to the address"), "{error}");
    let error = PostgresStore::connect(&pooler.url("&pooler=session")).await.unwrap_err().to_string();
    assert!(error.contains("`pooler` must be `transaction`"), "{error}");
}
