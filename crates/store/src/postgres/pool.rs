//! A pool of connections, each used by one caller at a time.
//!
//! ```text
//!        acquire              release
//! idle ──────────► in use ─────────────► idle
//!   │ unusable        │ dropped in the middle
//!   ▼                 ▼
//! closed ◄───────── recover: the server ends the statement and rolls back; closed if that takes long
//! ```
//!
//! A connection that was released is used again as it is. A ping before each use would be a round trip for every verb; a
//! dead connection shows by itself, and only one that was idle for long is pinged first. A caller that is dropped in the
//! middle of a statement or a transaction leaves the rest to a task, which keeps the caller's permit until the server is
//! done: callers that give up and come again never make the server do more at once than there are permits.
//!
//! Why not the pool of sqlx: in 0.9.0 a `begin` whose future is dropped leaves its transaction open, and the connection
//! returns to the pool with it (<https://github.com/launchbadge/sqlx/issues/4385>,
//! <https://github.com/launchbadge/sqlx/issues/4393>). <https://github.com/launchbadge/sqlx/pull/4394> fixes that after 0.9.0.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::{Connection, Executor, PgConnection, SqlStr};
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::hosts::Hosts;

/// How long the server may take to roll back what was given up. A connection that takes longer is closed, and the server
/// ends it by itself: it notices that the client is gone, or that a transaction is idle.
pub(super) const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(2);
/// A connection that was idle for longer is pinged before its next use: something between may have forgotten it.
const PING_AFTER: Duration = Duration::from_secs(30);
/// How long a ping may take.
const PING_TIMEOUT: Duration = Duration::from_secs(2);
/// A connection that is idle for longer is closed, so that others can have its place on the server.
const MAX_IDLE_TIME: Duration = Duration::from_mins(1);
/// How often connections that were idle for too long are looked for.
const TRIM_INTERVAL: Duration = Duration::from_secs(20);
/// No connection gets older, so that the server's memory of it and moved addresses end some day.
const MAX_AGE: Duration = Duration::from_mins(30);

/// A pool with a bounded number of connections, which are made when they are needed.
#[derive(Clone)]
pub(super) struct Connections(Arc<PoolInner>);

/// The state that the callers of a pool share.
struct PoolInner {
    hosts: Arc<Hosts>,
    settings: Vec<(&'static str, String)>,
    permits: Arc<Semaphore>,
    /// How many permits there are.
    max_connections: usize,
    /// Notified when a connection is released.
    returned: Notify,
    /// The one that was released last is used first, so that those that are not needed stay idle and can be closed.
    idle: Mutex<Vec<IdleConnection>>,
}

struct IdleConnection {
    connection: PgConnection,
    made: Made,
    since: Instant,
}

/// When a connection was made, and the generation of the servers at that time.
#[derive(Clone, Copy)]
struct Made {
    at: Instant,
    generation: u64,
}

/// A connection in use.
pub(super) struct PooledConnection {
    /// There until it is given back.
    held: Option<AcquiredConnection>,
    /// Whether a transaction was begun and has not ended.
    open: bool,
    pool: Arc<PoolInner>,
}

struct AcquiredConnection {
    connection: PgConnection,
    made: Made,
    permit: OwnedSemaphorePermit,
}

impl Connections {
    /// A pool of at most `max_connections`, each with these settings.
    pub(super) fn new(hosts: Arc<Hosts>, settings: Vec<(&'static str, String)>, max_connections: usize) -> Connections {
        let permits = Arc::new(Semaphore::new(max_connections));
        let pool = Arc::new(PoolInner {
            hosts,
            settings,
            permits,
            max_connections,
            returned: Notify::new(),
            idle: Mutex::default(),
        });
        let kept = Arc::downgrade(&pool);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(TRIM_INTERVAL).await;
                let Some(pool) = kept.upgrade() else { return };
                drop(pool.unneeded());
            }
        });
        Connections(pool)
    }

    /// Waits for a permit, and connects if no connection is idle.
    pub(super) async fn acquire(&self) -> sqlx::Result<PooledConnection> {
        let held = Some(self.0.acquire().await?);
        Ok(PooledConnection { held, open: false, pool: Arc::clone(&self.0) })
    }
}

impl PoolInner {
    async fn acquire(&self) -> sqlx::Result<AcquiredConnection> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| sqlx::Error::PoolClosed)?;
        loop {
            while let Some(mut idle) = self.pop() {
                let is_current = idle.made.generation == self.hosts.generation();
                if is_current && idle.made.at.elapsed() < MAX_AGE && idle.is_usable().await {
                    return Ok(AcquiredConnection { connection: idle.connection, made: idle.made, permit });
                }
            }
            // Before it connects: a server that is left meanwhile may be the one that was reached.
            let generation = self.hosts.generation();
            let connection = match self.connect().await {
                Some(connection) => connection?,
                None => continue,
            };
            return Ok(AcquiredConnection { connection, made: Made { at: Instant::now(), generation }, permit });
        }
    }

    /// Connects. While the server has no connection left, none comes back if another caller has given back its own.
    async fn connect(&self) -> Option<sqlx::Result<PgConnection>> {
        let settings: Vec<(&str, &str)> = self.settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut connecting = Box::pin(self.hosts.connect(&settings));
        loop {
            tokio::select! {
                answer = &mut connecting => {
                    let is_alone = self.permits.available_permits() + 1 == self.max_connections;
                    return if answer.is_err() && self.hosts.is_crowded() && !is_alone { None } else { Some(answer) };
                }
                () = self.returned.notified() => if self.hosts.is_crowded() {
                    return None;
                },
            }
        }
    }

    /// Makes a connection idle that can be used again, and closes those that were idle for too long.
    fn release(&self, held: AcquiredConnection) {
        let AcquiredConnection { connection, made, permit } = held;
        let unneeded = self.unneeded();
        if made.generation == self.hosts.generation() {
            self.idle().push(IdleConnection { connection, made, since: Instant::now() });
        }
        // After it is back: the next holder of the permit finds a connection.
        drop(permit);
        self.returned.notify_one();
        drop(unneeded);
    }

    /// Connections that were idle for too long, to be closed.
    fn unneeded(&self) -> Vec<IdleConnection> {
        let mut idle = self.idle();
        // The one that was idle longest is first.
        let count = idle.iter().take_while(|other| other.since.elapsed() > MAX_IDLE_TIME).count();
        idle.drain(..count).collect()
    }

    fn pop(&self) -> Option<IdleConnection> {
        self.idle().pop()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<IdleConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IdleConnection {
    async fn is_usable(&mut self) -> bool {
        self.since.elapsed() < PING_AFTER
            || matches!(tokio::time::timeout(PING_TIMEOUT, self.connection.ping()).await, Ok(Ok(())))
    }
}

impl PooledConnection {
    /// For statements.
    pub(super) fn connection(&mut self) -> &mut PgConnection {
        &mut self.held.as_mut().expect("held until it is given back").connection
    }

    /// Notes what the server said: one that is read-only all of a sudden is left, if there may be another.
    pub(super) fn note(&self, error: &sqlx::Error) {
        if super::hosts::code(error).as_deref() == Some("25006")
            && let Some(held) = &self.held
        {
            self.pool.hosts.leave(held.made.generation);
        }
    }

    pub(super) async fn begin(&mut self, begin: SqlStr) -> sqlx::Result<()> {
        // Also if the answer is lost.
        self.open = true;
        self.connection().execute(begin).await.map(drop)
    }

    /// Ends the transaction, if there is one, and gives the connection back.
    pub(super) async fn end(mut self, how: SqlStr) -> sqlx::Result<()> {
        if self.open {
            self.connection().execute(how).await?;
        }
        if let Some(held) = self.held.take() {
            self.pool.release(held);
        }
        Ok(())
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        // Without a runtime there is no way to wait. The server rolls back when it notices that the connection is gone.
        let Ok(runtime) = Handle::try_current() else { return };
        let (open, pool) = (self.open, Arc::clone(&self.pool));
        runtime.spawn(async move {
            if let Some(held) = held.recover(open).await {
                pool.release(held);
            }
        });
    }
}

impl AcquiredConnection {
    /// Waits until the server has done what was asked for, and rolls back. What does not answer is given up.
    async fn recover(mut self, open: bool) -> Option<AcquiredConnection> {
        let asked = async {
            if open { self.connection.execute("rollback").await.map(drop) } else { self.connection.ping().await }
        };
        matches!(tokio::time::timeout(ROLLBACK_TIMEOUT, asked).await, Ok(Ok(()))).then_some(self)
    }
}

/// Without the address, which has a password.
impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (idle, free) = (self.0.idle().len(), self.0.permits.available_permits());
        f.debug_struct("Connections").field("idle", &idle).field("free", &free).finish_non_exhaustive()
    }
}

impl fmt::Debug for PooledConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PooledConnection").field("open", &self.open).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use everbell_store::testing::TestDatabase;
    use sqlx::SqlSafeStr;
    use sqlx::postgres::PgConnectOptions;

    use super::*;
    use crate::url::Wanted;

    fn connections(options: PgConnectOptions, max_connections: usize) -> Connections {
        Connections::new(Arc::new(Hosts::new(vec![options], Wanted::Any, true)), Vec::new(), max_connections)
    }

    async fn two() -> (TestDatabase, Connections) {
        let database = TestDatabase::create().await;
        let options = database.url().parse().unwrap();
        (database, connections(options, 2))
    }

    async fn name(connection: &mut PooledConnection) -> i32 {
        sqlx::query_scalar("select pg_backend_pid()").fetch_one(connection.connection()).await.unwrap()
    }

    /// Acquires a connection, asks for its name and releases it.
    async fn used(connections: &Connections) -> i32 {
        let mut connection = connections.acquire().await.unwrap();
        let name = name(&mut connection).await;
        connection.end("commit".into_sql_str()).await.unwrap();
        name
    }

    async fn kill(connections: &Connections, name: i32) {
        let mut other = PgConnection::connect_with(&connections.0.hosts.current()).await.unwrap();
        let killed = sqlx::query("select pg_terminate_backend($1, 10000)").bind(name).execute(&mut other);
        assert_eq!(killed.await.unwrap().rows_affected(), 1);
    }

    fn as_if_it_had_rested(connections: &Connections, so_long: Duration) {
        for idle in connections.0.idle().iter_mut() {
            idle.since -= so_long + Duration::from_secs(1);
        }
    }

    #[tokio::test]
    async fn what_was_given_back_is_lent_again() {
        let (_database, connections) = two().await;
        assert_eq!(used(&connections).await, used(&connections).await);
        let (mut one, mut other) = (connections.acquire().await.unwrap(), connections.acquire().await.unwrap());
        assert_ne!(name(&mut one).await, name(&mut other).await, "nobody shares");
    }

    #[tokio::test]
    async fn what_was_given_up_in_a_transaction_is_rolled_back_at_once() {
        let (_database, connections) = two().await;
        let mut connection = connections.acquire().await.unwrap();
        let first = name(&mut connection).await;
        connection.connection().execute("create table held (n integer)").await.unwrap();
        connection.begin("begin".into_sql_str()).await.unwrap();
        connection.connection().execute("insert into held values (1); lock table held").await.unwrap();
        drop(connection);
        let mut other = connections.acquire().await.unwrap();
        let rows: i64 = sqlx::query_scalar("select count(*) from held").fetch_one(other.connection()).await.unwrap();
        assert_eq!(rows, 0, "the lock would have kept it waiting");
        let mut again = connections.acquire().await.unwrap();
        assert!([name(&mut other).await, name(&mut again).await].contains(&first), "it can be used again");
    }

    #[tokio::test]
    async fn whoever_gives_up_keeps_the_turn_until_the_server_is_done() {
        let (database, _) = two().await;
        let connections = connections(database.url().parse().unwrap(), 1);
        let first = used(&connections).await;
        let mut connection = connections.acquire().await.unwrap();
        let given_up = connection.connection().execute("select pg_sleep(0.5)");
        assert!(tokio::time::timeout(Duration::from_millis(50), given_up).await.is_err());
        drop(connection);
        assert_eq!(connections.0.permits.available_permits(), 0, "the server is still at it");
        assert_eq!(used(&connections).await, first);
    }

    #[tokio::test]
    async fn a_dead_connection_is_told_once_and_replaced() {
        let (_database, connections) = two().await;
        let first = used(&connections).await;
        kill(&connections, first).await;
        let mut connection = connections.acquire().await.unwrap();
        assert!(connection.connection().execute("select 1").await.is_err());
        drop(connection);
        assert_ne!(used(&connections).await, first);
        assert_ne!(used(&connections).await, first);
    }

    #[tokio::test]
    async fn one_that_rested_for_long_is_asked_first() {
        let (_database, connections) = two().await;
        let first = used(&connections).await;
        as_if_it_had_rested(&connections, PING_AFTER);
        assert_eq!(used(&connections).await, first, "it still works");
        kill(&connections, first).await;
        as_if_it_had_rested(&connections, PING_AFTER);
        assert_ne!(used(&connections).await, first, "a new connection replaces the dead one");
    }

    #[tokio::test]
    async fn those_that_nobody_needs_are_closed() {
        let (_database, connections) = two().await;
        let (one, other) = (connections.acquire().await.unwrap(), connections.acquire().await.unwrap());
        one.end("commit".into_sql_str()).await.unwrap();
        as_if_it_had_rested(&connections, MAX_IDLE_TIME);
        other.end("commit".into_sql_str()).await.unwrap();
        assert_eq!(connections.0.idle().len(), 1);
    }

    #[tokio::test]
    async fn the_address_is_not_shown() {
        let connections = connections(PgConnectOptions::new().host("db").password("hunter2"), 1);
        assert_eq!(format!("{connections:?}"), "Connections { idle: 0, free: 1, .. }");
    }
}
