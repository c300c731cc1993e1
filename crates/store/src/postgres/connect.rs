//! Connections: few of them, each statement with a deadline, each transaction short.

use std::future::Future;
use std::str::FromStr;
use std::sync::Arc;

use everbell_core::store::{Counts, StoreError, StoreResult, StoreStatus};
use jiff::Timestamp;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use tokio::sync::Notify;

use super::lending::{Connections, PATIENCE};
use super::pool::{Pool, Session};
use super::started::Started;
use super::{DEADLINE, PostgresStore, fault, listen, migrate};
use crate::micros::Micros;
use crate::rows::{ActiveCountColumns, Definitions, DueColumns, JobCountColumns, counts};
use crate::url::pooler_of;

/// Enough for a few readers, and enough for the loops; more only make the database slower.
const MOST_CONNECTIONS: usize = 6;
/// How the statements of the loops are planned. They look for a few rows by an index in tables that are empty at one time
/// and full at another; a plan from the statistics of the wrong time reads, or even sorts, the whole table for each batch.
/// Planned once: planning each time anew takes longer than most of them run.
///
/// While a table is empty, every plan for it costs the same, so a statement must leave one way only, by the keys of its
/// rows: `key = any(array(…))`, or for a join `key = any(array[given.key])`, because for `key = given.key` the whole index
/// may be read instead. What must not be looked for in an index is said with `is true`. `plans.rs` has the proof.
pub(super) const STEADY: [(&str, &str); 6] = [
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
    ("plan_cache_mode", "force_generic_plan"),
];
/// How the statements of everybody else run: they read a little by an index, or a small table. What the planner takes for
/// much work is not, and starting helpers or compiling would take longer than all of it.
const READING: [(&str, &str); 2] = [("jit", "off"), ("max_parallel_workers_per_gather", "0")];

impl PostgresStore {
    /// Connects to `postgres://user:password@host/database`, and brings the schema up to date.
    ///
    /// Behind a pooler in transaction mode, such as `PgBouncer`, add `?pooler=transaction`: statements are then unnamed,
    /// each in a transaction, and there is no `LISTEN`, so that loops notice the changes of others when they poll.
    ///
    /// The address is never shown with its password, whatever goes wrong.
    pub async fn connect(url: &str) -> StoreResult<PostgresStore> {
        let (options, behind_pooler) = reach(url).await?;
        let few = |options: PgConnectOptions| Connections::new(options, MOST_CONNECTIONS);
        let (pool, loops) = if behind_pooler {
            let (pool, loops) = (few(options.clone()), few(options.clone()));
            (Pool::behind_pooler(pool, &READING), Pool::behind_pooler(loops, &STEADY))
        } else {
            let (pool, loops) = (few(options.clone().options(READING)), few(options.clone().options(STEADY)));
            (Pool::direct(pool), Pool::direct(loops))
        };
        migrate::run(&pool).await?;
        let wake = Arc::new(Notify::new());
        let listener = (!behind_pooler).then(|| listen::Listener::start(options, Arc::clone(&wake)));
        Ok(PostgresStore { pool, loops, known: Definitions::default(), started: Started::default(), wake, listener })
    }

    /// One statement or several, within the deadline.
    pub(super) async fn within<T>(
        &self,
        what: &str,
        work: impl Future<Output = Result<T, sqlx::Error>> + Send,
    ) -> StoreResult<T> {
        match tokio::time::timeout(DEADLINE, work).await {
            Ok(answer) => answer.map_err(|error| fault::from_sqlx(what, error)),
            Err(_) => Err(fault::too_late(what, false)),
        }
    }

    /// A statement that writes and is its own transaction, within the deadline. Without an answer it may have happened.
    pub(super) async fn alone<T>(
        &self,
        what: &str,
        work: impl Future<Output = Result<T, sqlx::Error>> + Send,
    ) -> StoreResult<T> {
        match tokio::time::timeout(DEADLINE, work).await {
            Ok(answer) => answer.map_err(|error| fault::commit(what, error)),
            Err(_) => Err(fault::too_late(what, true)),
        }
    }

    pub(super) async fn begin(&self, what: &str) -> StoreResult<Session<'static>> {
        self.within(what, self.pool.begin()).await
    }

    /// A transaction of a loop.
    pub(super) async fn begin_loop(&self, what: &str) -> StoreResult<Session<'static>> {
        self.within(what, self.loops.begin()).await
    }

    /// Ends what a transaction did, at once. Dropping it would leave its locks until the connection is used again, and
    /// whoever passes over locked rows would pass over these.
    pub(super) async fn settle<T>(
        &self,
        what: &str,
        tx: Session<'static>,
        done: StoreResult<T>,
        wake: impl FnOnce(&T) -> bool,
    ) -> StoreResult<T> {
        match done {
            Ok(value) => {
                let wake = wake(&value);
                self.commit(what, tx, wake).await?;
                Ok(value)
            }
            Err(error) => {
                // What cannot be rolled back has lost its connection, which the server ends too.
                let _ended = tokio::time::timeout(DEADLINE, tx.rollback()).await;
                Err(error)
            }
        }
    }

    /// Commits, tells everybody to look again if there is something to see, and says so when the answer was lost.
    async fn commit(&self, what: &str, mut tx: Session<'static>, wake: bool) -> StoreResult<()> {
        if wake {
            listen::notify(&mut tx, what).await?;
        }
        let answer = match tokio::time::timeout(DEADLINE, tx.commit()).await {
            Ok(answer) => answer.map_err(|error| fault::commit(what, error)),
            Err(_) => Err(fault::too_late(what, true)),
        };
        if wake {
            self.wake.notify_waiters();
        }
        answer
    }

    pub(super) async fn read_now(&self) -> StoreResult<Timestamp> {
        let now: Micros = self
            .within("reading the clock", sqlx::query_scalar(include_str!("sql/now.sql")).fetch_one(&self.pool))
            .await?;
        Ok(now.into())
    }

    pub(super) async fn read_status(&self) -> StoreResult<StoreStatus> {
        type Row = (String, i64, Option<Micros>);
        let query = sqlx::query_as::<_, Row>(include_str!("sql/status.sql"));
        let (product, size, oldest) = self.within("reading the status", query.fetch_one(&self.pool)).await?;
        let mut notes = Vec::new();
        match &self.listener {
            None => notes.push("LISTEN is off behind the pooler: loops notice changes when they poll".to_owned()),
            Some(listener) if !listener.hears() => {
                notes.push("notifications do not arrive (a pooler?): loops notice changes when they poll".to_owned());
            }
            Some(_) => {}
        }
        Ok(StoreStatus {
            product: format!("postgres {product}"),
            schema_version: migrate::latest(),
            size_bytes: u64::try_from(size).ok(),
            oldest_transaction_at: oldest.map(Into::into),
            notes,
            write_failure: None,
        })
    }

    pub(super) async fn read_counts(&self, now: Timestamp) -> StoreResult<Counts> {
        const WHAT: &str = "counting";
        let jobs = sqlx::query_as(include_str!("sql/count_jobs.sql"));
        let jobs: Vec<JobCountColumns> = self.within(WHAT, jobs.fetch_all(&self.pool)).await?;
        let active = sqlx::query_as(include_str!("sql/count_active_runs.sql"));
        let active: Vec<ActiveCountColumns> = self.within(WHAT, active.fetch_all(&self.pool)).await?;
        let due = sqlx::query_as(include_str!("sql/count_due_timers.sql")).bind(Micros::from(now));
        let due: DueColumns = self.within(WHAT, due.fetch_one(&self.pool)).await?;
        counts(jobs, active, &due)
    }
}

/// How to connect, after it was seen to work, and whether a pooler is between.
async fn reach(url: &str) -> StoreResult<(PgConnectOptions, bool)> {
    let (url, behind_pooler) = pooler_of(url)?;
    let mut options = PgConnectOptions::from_str(&url)
        .map_err(|error| fault::unavailable("reading the address of the database", error))?
        .application_name("everbell");
    if behind_pooler {
        // A pooler refuses what it does not know.
        options = options.extra_float_digits(None);
    }
    // A pool would try again until its patience ends and then forget why; the first connection says it at once.
    let what = format!("connecting to {}", shown(&options));
    match tokio::time::timeout(PATIENCE, PgConnection::connect_with(&options)).await {
        Ok(Ok(connection)) => on(&what, connection.close()).await?,
        Ok(Err(error)) => return Err(fault::unavailable(&what, error)),
        Err(_) => return Err(fault::too_late(&what, false)),
    }
    Ok((options, behind_pooler))
}

/// A transaction that cannot write, in a database that is left as it is.
pub(super) async fn look(url: &str) -> StoreResult<Session<'static>> {
    const WHAT: &str = "reading the database";
    let (options, behind_pooler) = reach(url).await?;
    let one = Connections::new(options, 1);
    let pool = if behind_pooler { Pool::behind_pooler(one, &[]) } else { Pool::direct(one) };
    let mut session = on(WHAT, pool.begin()).await?;
    on(WHAT, sqlx::query("set transaction read only").execute(&mut session)).await?;
    Ok(session)
}

/// One statement of a transaction, within the deadline.
pub(super) async fn on<T>(what: &str, work: impl Future<Output = Result<T, sqlx::Error>> + Send) -> StoreResult<T> {
    match tokio::time::timeout(DEADLINE, work).await {
        Ok(answer) => answer.map_err(|error| fault::from_sqlx(what, error)),
        Err(_) => Err(fault::too_late(what, false)),
    }
}

/// The connection of a transaction, for statements.
pub(super) type Conn<'a, 't> = &'a mut Session<'t>;

/// Where, without who and how.
fn shown(options: &PgConnectOptions) -> String {
    format!("postgres://{}:{}/{}", options.get_host(), options.get_port(), options.get_database().unwrap_or(""))
}

/// A page must have a size.
pub(crate) fn check_limit(limit: u32) -> StoreResult<()> {
    if (1..=1_000).contains(&limit) {
        return Ok(());
    }
    Err(StoreError::Invalid(everbell_core::Invalid::new("limit", format!("must be from 1 to 1000, not {limit}"))))
}
