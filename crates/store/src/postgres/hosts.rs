//! The servers of an address: which one is used, and when to ask again after one has refused.
//!
//! All pools of a store share one of these, so that a server which refuses connections is asked from one place and at
//! growing intervals, however many callers wait.

use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection, Executor, PgConnection, Row};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::url::{PostgresAddress, Wanted};

/// Waits between attempts to reach a server that refuses: doubled each time, up to the longest.
const MIN_RETRY_PAUSE: Duration = Duration::from_millis(10);
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(2);
/// A caller waits this long for a server that is starting or has no connection left; then it gets the reason. Once the
/// server was unreachable for so long, callers wait no more: each gets the reason at once, or makes the next attempt.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a single server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one of several servers may take to accept a connection before the next is tried.
const HOST_TIMEOUT: Duration = Duration::from_secs(3);

/// Settings that not every server knows. The server notices within this time that a client is gone although a
/// statement is running (PostgreSQL 14), or that it acknowledges nothing (PostgreSQL 12).
const OPTIONAL_SETTINGS: &str =
    "select set_config(s.name, s.value, false), current_setting('transaction_read_only') = 'on', pg_is_in_recovery()
     from (values ('client_connection_check_interval', '2000'), ('tcp_user_timeout', '10000')) s (name, value)
     where exists (select from pg_settings p where p.name = s.name)
     union all select '', current_setting('transaction_read_only') = 'on', pg_is_in_recovery()";

/// The servers of one address.
pub(super) struct Hosts {
    list: RwLock<Vec<Host>>,
    wanted: Wanted,
    /// Without a pooler between, whose connections must be left as they are.
    direct: bool,
    current: AtomicUsize,
    /// Counts how often the server was left. Connections of an earlier one are not used again.
    generation: AtomicU64,
    retry: Mutex<Retry>,
    /// Whether the server said of late that it has no connection left.
    is_crowded: AtomicBool,
}

/// A server, and how to connect to it.
#[derive(Clone)]
struct Host {
    /// As they were when the store was opened, or its credentials were renewed.
    options: PgConnectOptions,
    /// The address that they were read from. It is read again for each connection, because it may leave the password to
    /// `PGPASSFILE`, whose content changes.
    url: Option<String>,
    behind_pooler: bool,
}

/// The time of the next attempt after a refusal.
#[derive(Debug, Default)]
struct Retry {
    wait: Duration,
    refused: Option<(Instant, Refusal)>,
    /// Since when no server can be reached.
    unreachable_since: Option<Instant>,
}

impl Retry {
    /// How long a caller that came at `began` has waited, or others have before it.
    fn waited(&self, began: Instant) -> Duration {
        self.unreachable_since.map_or(began, |since| since.min(began)).elapsed()
    }

    fn note(&mut self, error: &sqlx::Error) {
        self.wait = (self.wait * 2).clamp(MIN_RETRY_PAUSE, MAX_RETRY_PAUSE);
        self.refused = Some((Instant::now() + self.wait, Refusal::new(error)));
        // A server that answers may take connections again as soon as another caller gives one back.
        self.unreachable_since = match error {
            sqlx::Error::Io(_) => self.unreachable_since.or_else(|| Some(Instant::now())),
            _ => None,
        };
    }
}

impl Hosts {
    pub(super) fn parse(address: &PostgresAddress) -> sqlx::Result<Hosts> {
        let read = |url: &String| Host::parse(url, address.behind_pooler);
        let list = address.urls.iter().map(read).collect::<sqlx::Result<Vec<Host>>>()?;
        Ok(Hosts::with(list, address.wanted, !address.behind_pooler))
    }

    /// Uses these options for all connections.
    pub(super) fn new(hosts: Vec<PgConnectOptions>, wanted: Wanted, direct: bool) -> Hosts {
        let host = |options| Host { options, url: None, behind_pooler: !direct };
        Hosts::with(hosts.into_iter().map(host).collect(), wanted, direct)
    }

    fn with(list: Vec<Host>, wanted: Wanted, direct: bool) -> Hosts {
        Hosts {
            list: RwLock::new(list),
            wanted,
            direct,
            current: AtomicUsize::new(0),
            generation: AtomicU64::new(0),
            retry: Mutex::default(),
            is_crowded: AtomicBool::new(false),
        }
    }

    /// Whether the store was opened from an address, so that another one can replace it.
    pub(super) fn is_from_address(&self) -> bool {
        self.list().iter().all(|host| host.url.is_some())
    }

    /// Whether these are the same databases of the same servers, apart from the credentials.
    pub(super) fn same_servers(&self, other: &Hosts) -> bool {
        let places = |hosts: &Hosts| hosts.list().iter().map(Host::place).collect::<Vec<_>>();
        (self.wanted, self.direct) == (other.wanted, other.direct) && places(self) == places(other)
    }

    /// Connects as the other one from now on. Connections of before are closed when they are given back.
    pub(super) fn take_credentials(&self, other: &Hosts) {
        let list = other.list().clone();
        *self.list.write().unwrap_or_else(PoisonError::into_inner) = list;
        // After the list: a connection that is made meanwhile with the old credentials counts as an old one.
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    fn list(&self) -> RwLockReadGuard<'_, Vec<Host>> {
        self.list.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is no pooler between.
    pub(super) fn is_direct(&self) -> bool {
        self.direct
    }

    /// The one that was reached last.
    pub(super) fn current(&self) -> PgConnectOptions {
        let list = self.list();
        list[self.current.load(Ordering::Relaxed) % list.len()].options()
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Whether the server refused a connection because it has none left, and has accepted none since.
    pub(super) fn is_crowded(&self) -> bool {
        self.is_crowded.load(Ordering::Relaxed)
    }

    /// Leaves a server that turned out to be read-only. Its connections are closed when they are given back.
    pub(super) fn leave(&self, generation: u64) {
        let next = generation + 1;
        if self.wanted != Wanted::Any
            && self.generation.compare_exchange(generation, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.current.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Connects, and waits a while for servers that refuse for the moment. One caller at a time asks.
    pub(super) async fn connect(&self, settings: &[(&str, &str)]) -> sqlx::Result<PgConnection> {
        let began = Instant::now();
        let mut retry = self.retry.lock().await;
        loop {
            if let Some((not_before, refusal)) = &retry.refused {
                if *not_before > Instant::now() && retry.waited(began) >= REFUSAL_TIMEOUT {
                    return Err(refusal.clone().into());
                }
                tokio::time::sleep_until(*not_before).await;
            }
            match self.connect_to_any(settings).await {
                Ok(connection) => {
                    *retry = Retry::default();
                    self.is_crowded.store(false, Ordering::Relaxed);
                    return Ok(connection);
                }
                Err(error) => {
                    self.note(&error);
                    // No statement was sent yet, so nothing is in doubt.
                    if is_passing(&error) || is_timeout(&error) {
                        retry.note(&error);
                    }
                    if !is_passing(&error) {
                        return Err(Refusal::new(&error).into());
                    }
                }
            }
        }
    }

    /// Connects once: to the server that was reached last, else to the others in their order.
    pub(super) async fn connect_to_any(&self, settings: &[(&str, &str)]) -> sqlx::Result<PgConnection> {
        let (first, count) = (self.current.load(Ordering::Relaxed), self.list().len());
        let mut refusal = None;
        for place in first..first + count {
            let options = self.list()[place % count].options();
            // Without settings nothing is said: a pooler refuses `options`, also if they are empty.
            let options = if settings.is_empty() { options } else { options.options(settings.iter().copied()) };
            let connecting = self.connect_to(&options);
            let limit = if count == 1 { CONNECT_TIMEOUT } else { HOST_TIMEOUT };
            let late = |_| Err(std::io::Error::from(ErrorKind::TimedOut).into());
            let answer = tokio::time::timeout(limit, connecting).await.unwrap_or_else(late);
            match answer {
                Ok(connection) => {
                    self.current.store(place, Ordering::Relaxed);
                    return Ok(connection);
                }
                // What may pass is worth more than what a person has to change.
                Err(error) if refusal.as_ref().is_none_or(|known| !is_passing(known)) => refusal = Some(error),
                Err(_) => {}
            }
        }
        Err(refusal.unwrap_or(sqlx::Error::PoolClosed))
    }

    async fn connect_to(&self, options: &PgConnectOptions) -> sqlx::Result<PgConnection> {
        let mut connection = Box::pin(PgConnection::connect_with(options)).await?;
        if !self.direct && self.wanted == Wanted::Any {
            return Ok(connection);
        }
        let sql = if self.direct {
            OPTIONAL_SETTINGS
        } else {
            "select '', current_setting('transaction_read_only') = 'on', pg_is_in_recovery()"
        };
        let row = connection.fetch_one(sql).await?;
        let (read_only, standby): (bool, bool) = (row.try_get(1)?, row.try_get(2)?);
        let fits = match self.wanted {
            Wanted::Any => true,
            Wanted::ReadWrite => !read_only && !standby,
            Wanted::Primary => !standby,
        };
        if fits { Ok(connection) } else { Err(Refusal::unfit().into()) }
    }

    /// Says once that the server has no connection left.
    pub(super) fn note(&self, error: &sqlx::Error) {
        if code(error).as_deref() == Some("53300") && !self.is_crowded.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "the database server has no free connections; everbell continues with those that it has: raise \
                 `max_connections` of the server, or lower `database.max_connections` of the instances"
            );
        }
    }
}

impl Host {
    fn parse(url: &str, behind_pooler: bool) -> sqlx::Result<Host> {
        Ok(Host { options: read(url, behind_pooler)?, url: Some(url.to_owned()), behind_pooler })
    }

    /// The options for a connection at this moment.
    fn options(&self) -> PgConnectOptions {
        let read_again = self.url.as_deref().and_then(|url| read(url, self.behind_pooler).ok());
        read_again.unwrap_or_else(|| self.options.clone())
    }

    /// Identifies the server and its database.
    fn place(&self) -> (Option<PathBuf>, String, u16, String) {
        let options = &self.options;
        let database = options.get_database().unwrap_or_else(|| options.get_username());
        let host = options.get_host().to_lowercase();
        (options.get_socket().cloned(), host, options.get_port(), database.to_owned())
    }
}

fn read(url: &str, behind_pooler: bool) -> sqlx::Result<PgConnectOptions> {
    let options: PgConnectOptions = url.parse()?;
    // Errors are reported by their callers, without statements in the log of the embedding application.
    let options = options.application_name("everbell").disable_statement_logging();
    // A pooler refuses what it does not know.
    Ok(if behind_pooler { options.extra_float_digits(None) } else { options })
}

/// The reason why no server gave a connection, for all waiting callers.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    /// The code of the server's error, if it said one.
    pub(super) code: Option<String>,
    said: String,
}

impl Refusal {
    pub(super) fn new(error: &sqlx::Error) -> Refusal {
        let said = match error {
            sqlx::Error::Database(said) => said.message().to_owned(),
            sqlx::Error::PoolClosed => "the application has closed the pool that it gave to everbell".to_owned(),
            sqlx::Error::PoolTimedOut => "the pool of the application had no free connection in time".to_owned(),
            other => other.to_string(),
        };
        Refusal::find_in(error).cloned().unwrap_or(Refusal { code: code(error).map(Into::into), said })
    }

    /// The server is none of those that the address asks for.
    fn unfit() -> Refusal {
        let said = "no server of the address accepts changes: each is a standby, or read-only".to_owned();
        Refusal { code: Some("25006".to_owned()), said }
    }

    /// Finds it in a driver's error.
    pub(super) fn find_in(error: &sqlx::Error) -> Option<&Refusal> {
        let sqlx::Error::Io(error) = error else { return None };
        error.get_ref()?.downcast_ref::<Refusal>()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said)
    }
}

impl std::error::Error for Refusal {}

impl From<Refusal> for sqlx::Error {
    fn from(refusal: Refusal) -> sqlx::Error {
        sqlx::Error::Io(std::io::Error::new(ErrorKind::ConnectionRefused, refusal))
    }
}

pub(super) fn code(error: &sqlx::Error) -> Option<std::borrow::Cow<'_, str>> {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code)
}

/// Whether no server accepted the connection in time.
fn is_timeout(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(error) if error.kind() == ErrorKind::TimedOut)
}

/// Whether a server that answered like this may take connections a moment later.
fn is_passing(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.kind() == ErrorKind::ConnectionRefused,
        // No connection left, and starting or stopping.
        _ => matches!(code(error).as_deref(), Some("53300" | "57P03")),
    }
}

/// Shows the hosts, without user and password.
impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |options: &PgConnectOptions| format!("{}:{}", options.get_host(), options.get_port());
        let list = self.list();
        let hosts: Vec<String> = list.iter().map(|host| shown(&host.options)).collect();
        write!(f, "postgres://{}/{}", hosts.join(","), list[0].options.get_database().unwrap_or(""))
    }
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosts").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn callers_of_a_server_that_is_away_are_refused_at_once() {
        // A port that was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let options = PgConnectOptions::new().host("127.0.0.1").port(port);
        let hosts = Hosts::new(vec![options], Wanted::Any, true);
        let began = Instant::now();
        hosts.connect(&[]).await.unwrap_err();
        assert!(began.elapsed() >= REFUSAL_TIMEOUT, "a short restart is waited for");
        let began = Instant::now();
        for _ in 0..20 {
            hosts.connect(&[]).await.unwrap_err();
        }
        assert!(began.elapsed() < REFUSAL_TIMEOUT, "{:?}", began.elapsed());
    }
}
