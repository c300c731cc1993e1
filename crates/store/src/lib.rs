//! The stores of jobs, timers and runs: SQLite for one machine, PostgreSQL for many instances, and a model in memory.
//!
//! All three implement the contract of [`everbell_core::store`], and one suite of tests (feature `conformance`) says
//! what that means. This is the only crate that knows SQL.
//!
//! ```
//! # tokio_test(async {
//! let store = everbell_store::connect("sqlite::memory:").await?;
//! assert!(store.list_instances().await?.is_empty());
//! # Ok::<(), everbell_core::store::StoreError>(())
//! # }).unwrap();
//! # fn tokio_test<F: Future>(f: F) -> F::Output {
//! #     tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(f)
//! # }
//! ```

#![cfg_attr(
    not(all(feature = "postgres", feature = "sqlite", feature = "upkeep")),
    allow(
        dead_code,
        unreachable_code,
        unused_imports,
        unused_macros,
        unused_variables,
        reason = "what only the other database needs, or upkeep"
    )
)]

mod app_connection;
#[cfg(feature = "upkeep")]
pub mod copy;
mod credentials;
mod deadline;
mod in_transaction;
#[cfg(feature = "upkeep")]
mod inspection;
mod micros;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod migrations;
#[cfg_attr(not(feature = "upkeep"), allow(unreachable_pub, reason = "only `copy` exports what it has"))]
mod moved;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod part;
#[cfg(feature = "upkeep")]
mod portable;
mod rows;
#[cfg(feature = "postgres")]
mod schema_name;
mod url;

#[cfg(feature = "memory")]
pub mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "upkeep")]
pub mod upkeep;

// Not in the unit tests of this crate: it is a third of the code and is tested from outside.
#[cfg(all(feature = "conformance", not(test)))]
pub mod conformance;
#[cfg(all(feature = "testing", unix))]
pub mod testing;

use std::sync::Arc;
use std::time::Duration;

pub use app_connection::{AppConnection, Entering};
pub use credentials::{changes_only_credentials, renew_credentials};
pub use deadline::{deadline, with_deadline};
use everbell_core::Invalid;
use everbell_core::store::{Store, StoreResult};
pub use in_transaction::InTransaction;

use crate::url::Address;
#[cfg(feature = "postgres")]
use crate::url::{CONNECTION_LIMITS, PostgresAddress};

/// Opens the store of this address, and brings its schema up to date: `sqlite:PATH`, `sqlite::memory:`, or
/// `postgres://user:password@host/database`.
pub async fn connect(url: &str) -> StoreResult<Arc<dyn Store>> {
    connect_with(url, &ConnectOptions::default()).await
}

/// How a store uses its database. SQLite needs none of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// How many connections to a PostgreSQL server there are at most, all together: from 3 to 1000. `None` takes what
    /// `max_connections` in the address says, else 6.
    pub max_connections: Option<u32>,
    /// How long what people ask may take as a whole, from waiting for a connection to the commit: default 10 s.
    pub request_timeout: Duration,
    /// The schema of a PostgreSQL database that holds everything of everbell: letters, digits and underscores, at most 63.
    /// `None` takes what `schema` in the address says, else `everbell`.
    pub schema: Option<String>,
}

/// Enough for the loops and a few readers; more only make the server slower.
const DEFAULT_MAX_CONNECTIONS: u32 = 6;

impl Default for ConnectOptions {
    fn default() -> Self {
        ConnectOptions { max_connections: None, request_timeout: Duration::from_secs(10), schema: None }
    }
}

#[cfg(feature = "postgres")]
impl ConnectOptions {
    /// Puts everything into this schema of a PostgreSQL database, so that two everbells can share one.
    #[must_use]
    pub fn schema(mut self, name: impl Into<String>) -> ConnectOptions {
        self.schema = Some(name.into());
        self
    }

    fn max_connections(&self, address: &PostgresAddress) -> usize {
        let count = self.max_connections.or(address.max_connections).unwrap_or(DEFAULT_MAX_CONNECTIONS);
        count.clamp(*CONNECTION_LIMITS.start(), *CONNECTION_LIMITS.end()) as usize
    }
}

/// [`connect`] with options.
pub async fn connect_with(url: &str, options: &ConnectOptions) -> StoreResult<Arc<dyn Store>> {
    Ok(match Address::parse(url)? {
        #[cfg(feature = "postgres")]
        Address::Postgres => Arc::new(postgres::PostgresStore::connect_with(url, options).await?),
        #[cfg(feature = "sqlite")]
        Address::SqliteFile(path) => Arc::new(sqlite::SqliteStore::open(&path).await?),
        #[cfg(feature = "sqlite")]
        Address::SqliteMemory => Arc::new(sqlite::SqliteStore::in_memory().await?),
        #[cfg(not(all(feature = "postgres", feature = "sqlite")))]
        other => return Err(other.left_out().into()),
    })
}

/// Whether an address can be one that this program can open, without opening anything. A refusal does not repeat it, because it may hold a password.
pub fn check_address(url: &str) -> Result<(), Invalid> {
    match Address::parse(url)? {
        #[cfg(feature = "postgres")]
        Address::Postgres => PostgresAddress::parse(url).map(drop),
        #[cfg(feature = "sqlite")]
        Address::SqliteFile(_) | Address::SqliteMemory => Ok(()),
        #[cfg(not(all(feature = "postgres", feature = "sqlite")))]
        other => Err(other.left_out()),
    }
}
