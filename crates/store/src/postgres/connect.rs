//! Connections: few of them, each verb with a deadline, each transaction short.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use everbell_core::store::StoreResult;
use sqlx::{Connection, PgPool};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use super::floors::Floors;
use super::given_pool::GivenPool;
use super::hosts::Hosts;
use super::pool::Connections;
use super::pooler::{News, Pool, Session};
use super::schema::{DEFAULT_SCHEMA, Schema};
use super::started::Started;
use super::statement::Statement;
use super::{PostgresStore, errors, listen, migrate, moved};
use crate::ConnectOptions;
use crate::deadline::{Budget, Stage};
use crate::rows::Definitions;
use crate::url::{PostgresAddress, Wanted};

/// How long a verb of a loop may take: much shorter than a lease, so that one answer that does not come costs none.
const LOOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest wait for a lock.
const MAX_LOCK_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a start waits for a server that is starting, or that has no connection left: other clients release unused
/// ones after a minute.
const START_TIMEOUT: Duration = Duration::from_secs(75);

/// The time between two tries.
const START_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// How long a look at a database from outside may take.
const LOOK_TIMEOUT: Duration = Duration::from_mins(1);

/// Planner settings for the statements of the loops. They find a few rows by an index in tables that are sometimes
/// empty and sometimes full; a plan from the statistics of the wrong time reads, or even sorts, the whole table for
/// each batch. Plans are reused: planning takes longer than most of the statements.
///
/// While a table is empty, every plan for it costs the same, so a statement must allow only one access path, by the
/// keys of its rows: `key = any(array(…))`, or for a join `key = any(array[given.key])`, because for `key = given.key`
/// the whole index may be read instead. `is true` keeps a condition away from indexes. `plans.rs` has the proof.
pub(super) const LOOP_SETTINGS: [(&str, &str); 6] = [
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
    ("plan_cache_mode", "force_generic_plan"),
];

/// Planner settings for all other statements: they read a few rows by an index, or a small table. The planner
/// overestimates their work, and parallel workers or compilation would take longer than the statement.
const READ_SETTINGS: [(&str, &str); 2] = [("jit", "off"), ("max_parallel_workers_per_gather", "0")];

/// The server ends by itself what a client that is frozen or cut off has left behind: others skip the rows that it locked.
const IDLE_IN_TRANSACTION_TIMEOUT: (&str, &str) = ("idle_in_transaction_session_timeout", "5000");

/// The server asks a client that is silent whether it is still there.
pub(super) const KEEPALIVE_SETTINGS: [(&str, &str); 3] =
    [("tcp_keepalives_idle", "10"), ("tcp_keepalives_interval", "3"), ("tcp_keepalives_count", "3")];

/// The settings of a session whose verbs may take this long. Behind a pooler its connections to the server are its own.
fn settings(own: &[(&'static str, &str)], limit: Duration, behind_pooler: bool) -> Vec<(&'static str, String)> {
    let keepalive = KEEPALIVE_SETTINGS.into_iter().filter(|_| !behind_pooler);
    let mut settings: Vec<(&str, String)> = own
        .iter()
        .copied()
        .chain([IDLE_IN_TRANSACTION_TIMEOUT])
        .chain(keepalive)
        .map(|(name, value)| (name, value.to_owned()))
        .collect();
    settings.push(("statement_timeout", limit.as_millis().to_string()));
    // A wait for a lock fails before the time of the verb is over, so that the error names the lock.
    let lock_timeout = (limit * 2 / 5).min(MAX_LOCK_TIMEOUT);
    settings.push(("lock_timeout", lock_timeout.as_millis().to_string()));
    settings
}

/// Connections with these settings.
pub(super) fn pool(
    hosts: &Arc<Hosts>,
    schema: &Arc<Schema>,
    own: &[(&'static str, &str)],
    limit: Duration,
    most: usize,
) -> Pool {
    let (schema, hosts) = (Arc::clone(schema), Arc::clone(hosts));
    if hosts.is_direct() {
        Pool::direct(Connections::new(hosts, settings(own, limit, false), most), limit, schema)
    } else {
        Pool::behind_pooler(Connections::new(hosts, Vec::new(), most), &settings(own, limit, true), limit, schema)
    }
}

impl PostgresStore {
    /// Connects to `postgres://user:password@host/database`, and brings the schema up to date.
    ///
    /// Behind a pooler in transaction mode, such as `PgBouncer`, add `?pooler=transaction`: statements are then unnamed,
    /// each in a transaction, and there is no `LISTEN`, so that loops notice the changes of others when they poll.
    ///
    /// With several hosts, `postgres://user@one:5432,two:5432/database`, the first that accepts changes is used, and the
    /// next one when it is lost or becomes read-only; `target_session_attrs` may be `any`, `read-write` or `primary`.
    ///
    /// All tables are in the schema `everbell` of the database, or the one of `?schema=NAME`. It is created if it is missing
    /// and the role may do that; else `create schema everbell authorization ROLE` gives the role one. No `search_path` is
    /// needed or changed, and tables of the same names in other schemas are not looked at. Tables of a release that had no
    /// schema of its own are moved there.
    ///
    /// A password that the address leaves out is read from `PGPASSFILE` or `~/.pgpass`, for each connection, so it may be
    /// rotated there. One that the address holds is replaced with [`PostgresStore::renew_credentials`].
    ///
    /// The address is never shown with its password, whatever goes wrong.
    pub async fn connect(url: &str) -> StoreResult<PostgresStore> {
        PostgresStore::connect_with(url, &ConnectOptions::default()).await
    }

    /// Like [`PostgresStore::connect`], with options.
    pub async fn connect_with(url: &str, options: &ConnectOptions) -> StoreResult<PostgresStore> {
        let address = PostgresAddress::parse(url)?;
        let schema = schema_of(&address, options.schema.as_deref())?;
        let hosts = reach(&address, options.request_timeout).await?;
        let max_connections = options.max_connections(&address);
        // One listens, the loops have the larger half of the others.
        let others = max_connections - usize::from(hosts.is_direct());
        let readers = (others * 2 / 5).max(1);
        let pool_of = |own: &[(&'static str, &str)], limit, most| pool(&hosts, &schema, own, limit, most);
        let (readers, loops) = (
            pool_of(&READ_SETTINGS, options.request_timeout, readers),
            pool_of(&LOOP_SETTINGS, LOOP_TIMEOUT, (others - readers).max(1)),
        );
        let current = Arc::clone(&hosts);
        let listening: Option<listen::Options> = hosts.is_direct().then(|| Box::new(move || current.current()) as _);
        PostgresStore::start(hosts, &schema, readers, loops, listening, max_connections).await
    }

    /// Uses a pool of the application instead of connections of its own, with everything that the pool says: address, TLS,
    /// `application_name` and size.
    ///
    /// - It borrows at most a half of the pool's connections at once, and at least one; the rest is always the
    ///   application's. Each is borrowed for one short transaction. A pool of 6 or more is good: with fewer than 4, what
    ///   people ask and the loops take turns on one connection, and each waits for the other.
    /// - One more connection, beside the pool and with the same options, listens for notifications. When it is lost, it
    ///   connects with the options that the pool has by then ([`PgPool::set_connect_options`]), so a password may be
    ///   rotated. Behind a pooler in transaction mode no notification arrives, and loops notice the changes of others when
    ///   they poll.
    /// - Settings last until the end of a transaction, and no statement stays prepared, so sessions come back as they were.
    ///   That costs a round trip or two for each verb: a store with connections of its own is faster.
    /// - While the application holds all connections, everbell waits, and after some seconds reports that the database did
    ///   not answer in time. A run whose lease cannot be extended for so long is lost, so give the pool room.
    /// - After the pool is closed, every verb fails and says so. Stop everbell first.
    pub async fn from_pool(pool: PgPool) -> StoreResult<PostgresStore> {
        PostgresStore::from_pool_with(pool, &ConnectOptions::default()).await
    }

    /// Like [`PostgresStore::from_pool`], with options. `max_connections` is the number of connections that are borrowed at
    /// once, at most as many as the pool has.
    pub async fn from_pool_with(pool: PgPool, options: &ConnectOptions) -> StoreResult<PostgresStore> {
        let schema = Arc::new(Schema::new(options.schema.as_deref().unwrap_or(DEFAULT_SCHEMA))?);
        let size = (pool.options().get_max_connections() as usize).max(1);
        let wanted = options.max_connections.map_or(size / 2, |count| count as usize);
        let borrowed = wanted.clamp(1, size);
        let [for_readers, for_loops] = permits(borrowed);
        let hosts = Arc::new(Hosts::new(vec![(*pool.connect_options()).clone()], Wanted::Any, true));
        let pool_of = |own: &[(&'static str, &str)], limit, permits| {
            let connections = GivenPool::new(pool.clone(), permits);
            Pool::given(connections, &settings(own, limit, true), limit, Arc::clone(&schema))
        };
        let readers = pool_of(&READ_SETTINGS, options.request_timeout, for_readers);
        let loops = pool_of(&LOOP_SETTINGS, LOOP_TIMEOUT, for_loops);
        let listening: listen::Options = Box::new(move || (*pool.connect_options()).clone());
        // And the one that listens.
        PostgresStore::start(hosts, &schema, readers, loops, Some(listening), borrowed + 1).await
    }

    async fn start(
        hosts: Arc<Hosts>,
        schema: &Schema,
        readers: Pool,
        loops: Pool,
        listening: Option<listen::Options>,
        max_connections: usize,
    ) -> StoreResult<PostgresStore> {
        patiently(|| migrate::run(&readers)).await?;
        if let Some(moved) = moved::read_mark(&readers).await? {
            return Err(moved.refuse());
        }
        // One of each is there from the start, so that the first verbs do not meet a server that is full.
        for pool in [&readers, &loops] {
            patiently(|| async { on("connecting", async { pool.begin().await?.rollback().await }).await }).await?;
        }
        let wake = Arc::new(Notify::new());
        let floors = [Arc::new(Floors::default()), Arc::new(Floors::default())];
        let listener = listening
            .map(|options| listen::Listener::start(options, schema.channel(), Arc::clone(&wake), floors.clone()));
        let [run_floors, timer_floors] = floors;
        Ok(PostgresStore {
            pool: readers,
            loops,
            known: Definitions::default(),
            started: Started::default(),
            run_floors,
            timer_floors,
            wake,
            listener,
            hosts,
            max_connections,
        })
    }

    /// The schema that everything of this store is in.
    pub fn schema(&self) -> &str {
        self.pool.schema().name()
    }

    /// One statement or several that write nothing.
    pub(super) async fn within<T>(
        &self,
        what: &str,
        work: impl Future<Output = Result<T, sqlx::Error>> + Send,
    ) -> StoreResult<T> {
        on(what, work).await
    }

    /// A statement that writes and is its own transaction. Without an answer it may have happened.
    pub(super) async fn alone<T>(
        &self,
        what: &str,
        work: impl Future<Output = Result<T, sqlx::Error>> + Send,
    ) -> StoreResult<T> {
        work.await.map_err(|error| errors::commit(what, error))
    }

    pub(super) async fn begin(&self, what: &str) -> StoreResult<Session<'static>> {
        self.within(what, self.pool.begin()).await
    }

    /// A transaction of a loop.
    pub(super) async fn begin_loop(&self, what: &str) -> StoreResult<Session<'static>> {
        self.within(what, self.loops.begin()).await
    }

    /// Ends a transaction at once. Dropping it would leave its locks until the connection is used again, and statements
    /// that skip locked rows would skip these.
    pub(super) async fn finish_transaction<T>(
        &self,
        what: &str,
        tx: Session<'static>,
        done: StoreResult<T>,
        wake: impl FnOnce(&T) -> bool,
    ) -> StoreResult<T> {
        self.finish_transaction_with(what, tx, done, |value| if wake(value) { News::Changes } else { News::None }).await
    }

    /// Like `finish_transaction`, with a choice of the notification.
    pub(super) async fn finish_transaction_with<T>(
        &self,
        what: &str,
        tx: Session<'static>,
        done: StoreResult<T>,
        news: impl FnOnce(&T) -> News,
    ) -> StoreResult<T> {
        match done {
            Ok(value) => {
                let wake = news(&value);
                self.commit(what, tx, wake).await?;
                Ok(value)
            }
            Err(error) => {
                // What cannot be rolled back in time loses its connection, and the server ends it too.
                let _ended = tx.rollback().await;
                Err(error)
            }
        }
    }

    /// Commits, and wakes all instances if there is something to see. The error says if the answer was lost.
    pub(super) async fn commit(&self, what: &str, tx: Session<'static>, news: News) -> StoreResult<()> {
        let answer = tx.commit(news).await;
        if news == News::Changes {
            self.run_floors.forget();
            self.timer_floors.forget();
        }
        if news != News::None {
            self.wake.notify_waiters();
        }
        answer.map_err(|error| errors::commit(what, error))
    }
}

/// Connects to the first server that works. Fails at once if a person has to change something, and waits for a server
/// that is starting or has no connection left.
pub(super) async fn reach(address: &PostgresAddress, limit: Duration) -> StoreResult<Arc<Hosts>> {
    let hosts =
        Hosts::parse(address).map_err(|error| errors::unavailable("reading the address of the database", error))?;
    let hosts = Arc::new(hosts);
    let what = format!("connecting to {hosts}");
    patiently(|| async {
        let connecting = async { hosts.connect_to_any(&[]).await?.close().await };
        let answer = Budget::new(limit).spend(Stage::Connecting, connecting).await;
        answer.inspect_err(|error| hosts.note(error)).map_err(|error| errors::unavailable(&what, error))
    })
    .await?;
    Ok(hosts)
}

/// The rights to borrow this many connections: for requests of people, and for the loops, which have the larger half. A single
/// one is shared.
fn permits(count: usize) -> [Arc<Semaphore>; 2] {
    if count == 1 {
        let shared = Arc::new(Semaphore::new(1));
        return [Arc::clone(&shared), shared];
    }
    let readers = (count * 2 / 5).max(1);
    [readers, count - readers].map(|count| Arc::new(Semaphore::new(count)))
}

/// A step of the start, again and again while the server has no connection left, or is starting.
async fn patiently<W: Future<Output = StoreResult<()>>>(step: impl Fn() -> W) -> StoreResult<()> {
    let begun = Instant::now();
    loop {
        match step().await {
            Err(error) if errors::is_full(&error) && begun.elapsed() < START_TIMEOUT => {
                tokio::time::sleep(START_RETRY_PAUSE).await;
            }
            answer => return answer,
        }
    }
}

/// The schema that the options name, or the address.
pub(super) fn schema_of(address: &PostgresAddress, wanted: Option<&str>) -> StoreResult<Arc<Schema>> {
    let name = wanted.or(address.schema.as_deref()).unwrap_or(DEFAULT_SCHEMA);
    Ok(Arc::new(Schema::new(name)?))
}

/// A transaction that cannot write, in a database that is left as it is, and the schema that the address names.
pub(super) async fn look(url: &str) -> StoreResult<(Session<'static>, Arc<Schema>)> {
    const WHAT: &str = "reading the database";
    let address = PostgresAddress::parse(url)?;
    let hosts = reach(&address, ConnectOptions::default().request_timeout).await?;
    let schema = schema_of(&address, None)?;
    let mut session = on(WHAT, pool(&hosts, &schema, &[], LOOK_TIMEOUT, 1).begin()).await?;
    on(WHAT, sqlx::query("set transaction read only").execute_on(&mut session)).await?;
    Ok((session, schema))
}

/// One statement of a transaction.
pub(super) async fn on<T>(what: &str, work: impl Future<Output = Result<T, sqlx::Error>> + Send) -> StoreResult<T> {
    work.await.map_err(|error| errors::from_sqlx(what, error))
}

/// The connection of a transaction, for statements.
pub(super) type Conn<'a, 't> = &'a mut Session<'t>;
