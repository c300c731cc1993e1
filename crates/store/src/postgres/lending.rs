//! Connections that are lent to one caller at a time.
//!
//! ```text
//!            lend                    give back
//! resting ─────────► lent to somebody ─────────► resting
//!    │ cannot be used       │ given up in the middle
//!    ▼                      ▼
//!   gone  ◄───────────── mended: the server ends what it does, and rolls back; closed if that takes long
//! ```
//!
//! What was given back whole is lent again as it is. To ask each time whether it still works would be a round trip for every
//! use; a connection that is dead shows by itself, and only one that rested for long is asked first. Whoever is dropped in
//! the middle of a statement or a transaction leaves the rest to a task, and keeps its turn until the server is done with it:
//! callers that give up and come again never make the server do more at once than there are turns.

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
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(2);
/// What rested for longer is asked whether it still works: something between may have forgotten it.
const LONG_REST: Duration = Duration::from_secs(30);
/// How long that may take.
const ANSWER: Duration = Duration::from_secs(2);
/// What rested for longer is closed, so that others can have its place on the server.
const LONGEST_REST: Duration = Duration::from_mins(1);
/// How often connections that rested for too long are looked for.
const TRIM_INTERVAL: Duration = Duration::from_secs(20);
/// No connection gets older, so that the server's memory of it and moved addresses end some day.
const OLDEST: Duration = Duration::from_mins(30);
/// So many connections at most, made when they are needed.
#[derive(Clone)]
pub(super) struct Connections(Arc<Home>);

/// Where connections come from and go back to.
struct Home {
    hosts: Arc<Hosts>,
    settings: Vec<(&'static str, String)>,
    turns: Arc<Semaphore>,
    /// How many turns there are.
    most: usize,
    /// Told when a connection is given back.
    returned: Notify,
    /// Who came last is lent first, so that those who are not needed rest and can be closed.
    resting: Mutex<Vec<Resting>>,
}

struct Resting {
    connection: PgConnection,
    made: Made,
    since: Instant,
}

/// When a connection was made, and while which server was used.
#[derive(Clone, Copy)]
struct Made {
    at: Instant,
    generation: u64,
}

/// A connection in somebody's hands.
pub(super) struct Lent {
    /// There until it is given back.
    held: Option<Held>,
    /// Whether a transaction was begun and has not ended.
    open: bool,
    home: Arc<Home>,
}

struct Held {
    connection: PgConnection,
    made: Made,
    turn: OwnedSemaphorePermit,
}

impl Connections {
    /// At most `most` of them, each with these settings.
    pub(super) fn new(hosts: Arc<Hosts>, settings: Vec<(&'static str, String)>, most: usize) -> Connections {
        let turns = Arc::new(Semaphore::new(most));
        let home = Arc::new(Home { hosts, settings, turns, most, returned: Notify::new(), resting: Mutex::default() });
        let kept = Arc::downgrade(&home);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(TRIM_INTERVAL).await;
                let Some(home) = kept.upgrade() else { return };
                drop(home.unneeded());
            }
        });
        Connections(home)
    }

    /// Waits for a turn, and connects if no connection is resting.
    pub(super) async fn lend(&self) -> sqlx::Result<Lent> {
        let held = Some(self.0.lend().await?);
        Ok(Lent { held, open: false, home: Arc::clone(&self.0) })
    }
}

impl Home {
    async fn lend(&self) -> sqlx::Result<Held> {
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| sqlx::Error::PoolClosed)?;
        loop {
            while let Some(mut rested) = self.last() {
                let is_current = rested.made.generation == self.hosts.generation();
                if is_current && rested.made.at.elapsed() < OLDEST && rested.is_well().await {
                    return Ok(Held { connection: rested.connection, made: rested.made, turn });
                }
            }
            // Before it connects: a server that is left meanwhile may be the one that was reached.
            let generation = self.hosts.generation();
            let connection = match self.connect().await {
                Some(connection) => connection?,
                None => continue,
            };
            return Ok(Held { connection, made: Made { at: Instant::now(), generation }, turn });
        }
    }

    /// Connects. While the server has no connection left, none comes back if another caller has given back its own.
    async fn connect(&self) -> Option<sqlx::Result<PgConnection>> {
        let settings: Vec<(&str, &str)> = self.settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut connecting = Box::pin(self.hosts.connect(&settings));
        loop {
            tokio::select! {
                answer = &mut connecting => {
                    let is_alone = self.turns.available_permits() + 1 == self.most;
                    return if answer.is_err() && self.hosts.is_crowded() && !is_alone { None } else { Some(answer) };
                }
                () = self.returned.notified() => if self.hosts.is_crowded() {
                    return None;
                },
            }
        }
    }

    /// Takes back what is whole, and lets go of those that nobody needed for long.
    fn take_back(&self, held: Held) {
        let Held { connection, made, turn } = held;
        let unneeded = self.unneeded();
        if made.generation == self.hosts.generation() {
            self.resting().push(Resting { connection, made, since: Instant::now() });
        }
        // After it is there: whoever waits for a turn finds a connection.
        drop(turn);
        self.returned.notify_one();
        drop(unneeded);
    }

    /// Those that nobody needed for long, to be closed.
    fn unneeded(&self) -> Vec<Resting> {
        let mut resting = self.resting();
        // Who rests longest came first.
        let count = resting.iter().take_while(|other| other.since.elapsed() > LONGEST_REST).count();
        resting.drain(..count).collect()
    }

    fn last(&self) -> Option<Resting> {
        self.resting().pop()
    }

    fn resting(&self) -> MutexGuard<'_, Vec<Resting>> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Resting {
    async fn is_well(&mut self) -> bool {
        self.since.elapsed() < LONG_REST
            || matches!(tokio::time::timeout(ANSWER, self.connection.ping()).await, Ok(Ok(())))
    }
}

impl Lent {
    /// For statements.
    pub(super) fn connection(&mut self) -> &mut PgConnection {
        &mut self.held.as_mut().expect("held until it is given back").connection
    }

    /// Notes what the server said: one that is read-only all of a sudden is left, if there may be another.
    pub(super) fn note(&self, error: &sqlx::Error) {
        if super::hosts::code(error).as_deref() == Some("25006")
            && let Some(held) = &self.held
        {
            self.home.hosts.leave(held.made.generation);
        }
    }

    pub(super) async fn begin(&mut self, begin: SqlStr) -> sqlx::Result<()> {
        // Also if the answer is lost.
        self.open = true;
        self.connection().execute(begin).await.map(drop)
    }

    /// Ends the transaction, if there is one, and gives the connection back.
    pub(super) async fn end(mut self, how: &'static str) -> sqlx::Result<()> {
        if self.open {
            self.connection().execute(how).await?;
        }
        if let Some(held) = self.held.take() {
            self.home.take_back(held);
        }
        Ok(())
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        // Without a runtime nobody can wait. The server rolls back when it notices that the connection is gone.
        let Ok(runtime) = Handle::try_current() else { return };
        let (open, home) = (self.open, Arc::clone(&self.home));
        runtime.spawn(async move {
            if let Some(held) = held.mended(open).await {
                home.take_back(held);
            }
        });
    }
}

impl Held {
    /// Waits until the server has done what was asked for, and rolls back. What does not answer is given up.
    async fn mended(mut self, open: bool) -> Option<Held> {
        let asked = async {
            if open { self.connection.execute("rollback").await.map(drop) } else { self.connection.ping().await }
        };
        matches!(tokio::time::timeout(ROLLBACK_TIMEOUT, asked).await, Ok(Ok(()))).then_some(self)
    }
}

/// Without the address, which has a password.
impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (resting, free) = (self.0.resting().len(), self.0.turns.available_permits());
        f.debug_struct("Connections").field("resting", &resting).field("free", &free).finish_non_exhaustive()
    }
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").field("open", &self.open).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use everbell_store::testing::TestDatabase;
    use sqlx::SqlSafeStr;
    use sqlx::postgres::PgConnectOptions;

    use super::super::hosts::Wanted;
    use super::*;

    fn connections(options: PgConnectOptions, most: usize) -> Connections {
        Connections::new(Arc::new(Hosts::new(vec![options], Wanted::Any, true)), Vec::new(), most)
    }

    async fn two() -> (TestDatabase, Connections) {
        let database = TestDatabase::create().await;
        let options = database.url().parse().unwrap();
        (database, connections(options, 2))
    }

    async fn name(lent: &mut Lent) -> i32 {
        sqlx::query_scalar("select pg_backend_pid()").fetch_one(lent.connection()).await.unwrap()
    }

    /// Lends, asks for the name of the connection and gives it back.
    async fn used(connections: &Connections) -> i32 {
        let mut lent = connections.lend().await.unwrap();
        let name = name(&mut lent).await;
        lent.end("commit").await.unwrap();
        name
    }

    async fn kill(connections: &Connections, name: i32) {
        let mut other = PgConnection::connect_with(connections.0.hosts.current()).await.unwrap();
        let killed = sqlx::query("select pg_terminate_backend($1, 10000)").bind(name).execute(&mut other);
        assert_eq!(killed.await.unwrap().rows_affected(), 1);
    }

    fn as_if_it_had_rested(connections: &Connections, so_long: Duration) {
        for rested in connections.0.resting().iter_mut() {
            rested.since -= so_long + Duration::from_secs(1);
        }
    }

    #[tokio::test]
    async fn what_was_given_back_is_lent_again() {
        let (_database, connections) = two().await;
        assert_eq!(used(&connections).await, used(&connections).await);
        let (mut one, mut other) = (connections.lend().await.unwrap(), connections.lend().await.unwrap());
        assert_ne!(name(&mut one).await, name(&mut other).await, "nobody shares");
    }

    #[tokio::test]
    async fn what_was_given_up_in_a_transaction_is_rolled_back_at_once() {
        let (_database, connections) = two().await;
        let mut lent = connections.lend().await.unwrap();
        let first = name(&mut lent).await;
        lent.connection().execute("create table held (n integer)").await.unwrap();
        lent.begin("begin".into_sql_str()).await.unwrap();
        lent.connection().execute("insert into held values (1); lock table held").await.unwrap();
        drop(lent);
        let mut other = connections.lend().await.unwrap();
        let rows: i64 = sqlx::query_scalar("select count(*) from held").fetch_one(other.connection()).await.unwrap();
        assert_eq!(rows, 0, "the lock would have kept it waiting");
        let mut again = connections.lend().await.unwrap();
        assert!([name(&mut other).await, name(&mut again).await].contains(&first), "it can be used again");
    }

    #[tokio::test]
    async fn whoever_gives_up_keeps_the_turn_until_the_server_is_done() {
        let (database, _) = two().await;
        let connections = connections(database.url().parse().unwrap(), 1);
        let first = used(&connections).await;
        let mut lent = connections.lend().await.unwrap();
        let given_up = lent.connection().execute("select pg_sleep(0.5)");
        assert!(tokio::time::timeout(Duration::from_millis(50), given_up).await.is_err());
        drop(lent);
        assert_eq!(connections.0.turns.available_permits(), 0, "the server is still at it");
        assert_eq!(used(&connections).await, first);
    }

    #[tokio::test]
    async fn a_dead_connection_is_told_once_and_replaced() {
        let (_database, connections) = two().await;
        let first = used(&connections).await;
        kill(&connections, first).await;
        let mut lent = connections.lend().await.unwrap();
        assert!(lent.connection().execute("select 1").await.is_err());
        drop(lent);
        assert_ne!(used(&connections).await, first);
        assert_ne!(used(&connections).await, first);
    }

    #[tokio::test]
    async fn one_that_rested_for_long_is_asked_first() {
        let (_database, connections) = two().await;
        let first = used(&connections).await;
        as_if_it_had_rested(&connections, LONG_REST);
        assert_eq!(used(&connections).await, first, "it still works");
        kill(&connections, first).await;
        as_if_it_had_rested(&connections, LONG_REST);
        assert_ne!(used(&connections).await, first, "nobody was told");
    }

    #[tokio::test]
    async fn those_that_nobody_needs_are_closed() {
        let (_database, connections) = two().await;
        let (one, other) = (connections.lend().await.unwrap(), connections.lend().await.unwrap());
        one.end("commit").await.unwrap();
        as_if_it_had_rested(&connections, LONGEST_REST);
        other.end("commit").await.unwrap();
        assert_eq!(connections.0.resting().len(), 1);
    }

    #[tokio::test]
    async fn the_address_is_not_shown() {
        let connections = connections(PgConnectOptions::new().host("db").password("hunter2"), 1);
        assert_eq!(format!("{connections:?}"), "Connections { resting: 0, free: 1, .. }");
    }
}
