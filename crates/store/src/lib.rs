//! Where jobs, timers and runs live: SQLite for one machine, PostgreSQL for many instances, and a model in memory.
//!
//! All three keep the contract of [`everbell_core::store`], and one suite of tests (feature `conformance`) says what that means. This is the only crate that knows SQL.
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

mod micros;
mod rows;
mod url;

pub mod memory;
pub mod postgres;
pub mod sqlite;
pub mod upkeep;

#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(all(feature = "testing", unix))]
pub mod testing;

use std::sync::Arc;

use everbell_core::Invalid;
use everbell_core::store::{Store, StoreResult};

use crate::postgres::PostgresStore;
use crate::sqlite::SqliteStore;
use crate::url::Address;

/// Opens the store of this address, and brings its schema up to date: `sqlite:PATH`, `sqlite::memory:`, or
/// `postgres://user:password@host/database`.
pub async fn connect(url: &str) -> StoreResult<Arc<dyn Store>> {
    Ok(match Address::parse(url)? {
        Address::Postgres => Arc::new(PostgresStore::connect(url).await?),
        Address::SqliteFile(path) => Arc::new(SqliteStore::open(&path).await?),
        Address::SqliteMemory => Arc::new(SqliteStore::in_memory().await?),
    })
}

/// Whether an address can be one, without opening anything. A refusal does not repeat it, because it may hold a password.
pub fn check_address(url: &str) -> Result<(), Invalid> {
    match Address::parse(url)? {
        Address::Postgres => url::pooler_of(url).map(drop),
        Address::SqliteFile(_) | Address::SqliteMemory => Ok(()),
    }
}
