//! Looking after a database from outside: what it is, what in it is old, and a copy of it.
//!
//! Nothing here changes the database, and its schema least of all: [`connect`](crate::connect) is what migrates.

use std::path::Path;

use everbell_core::Invalid;
use everbell_core::store::{Pruned, StoreResult};
use jiff::Timestamp;

pub use crate::inspection::{Content, Inspection, MAX_COUNTED_RUNS};
#[cfg(feature = "postgres")]
use crate::postgres;
#[cfg(feature = "sqlite")]
use crate::sqlite;
use crate::url::Address;

/// Looks at the database of this address. A file that does not exist is
/// [`StoreError::NotFound`](everbell_core::store::StoreError::NotFound), and is not created.
pub async fn inspect(url: &str) -> StoreResult<Inspection> {
    match Address::parse(url)? {
        #[cfg(feature = "postgres")]
        Address::Postgres => postgres::upkeep::inspect(url).await,
        #[cfg(feature = "sqlite")]
        Address::SqliteFile(path) => sqlite::upkeep::inspect(&path).await,
        #[cfg(feature = "sqlite")]
        Address::SqliteMemory => Err(in_memory()),
        #[cfg(not(all(feature = "postgres", feature = "sqlite")))]
        other => Err(other.left_out().into()),
    }
}

/// How many rows a [`prune`](everbell_core::store::ClusterStore::prune) with this bound would delete in the end. Remembered
/// answers are not counted.
pub async fn count_old(url: &str, before: Timestamp) -> StoreResult<Pruned> {
    match Address::parse(url)? {
        #[cfg(feature = "postgres")]
        Address::Postgres => postgres::upkeep::count_old(url, before).await,
        #[cfg(feature = "sqlite")]
        Address::SqliteFile(path) => sqlite::upkeep::count_old(&path, before).await,
        #[cfg(feature = "sqlite")]
        Address::SqliteMemory => Err(in_memory()),
        #[cfg(not(all(feature = "postgres", feature = "sqlite")))]
        other => Err(other.left_out().into()),
    }
}

/// Copies an SQLite database into a new file while others use it, and returns the size of the copy. The copy is a
/// snapshot, checked, and for its owner alone; until it is complete its name ends with `.partial`. `report` is called
/// now and then with the number of bytes written, and the total.
pub async fn back_up(url: &str, file: &Path, report: &(dyn Fn(u64, u64) + Send + Sync)) -> StoreResult<u64> {
    match Address::parse(url)? {
        #[cfg(feature = "postgres")]
        Address::Postgres => {
            Err(Invalid::new("database", "is PostgreSQL, which is copied with its own `pg_dump`").into())
        }
        #[cfg(feature = "sqlite")]
        Address::SqliteFile(path) => sqlite::backup::write(&path, file, report).await,
        #[cfg(feature = "sqlite")]
        Address::SqliteMemory => Err(in_memory()),
        #[cfg(not(all(feature = "postgres", feature = "sqlite")))]
        other => Err(other.left_out().into()),
    }
}

fn in_memory() -> everbell_core::store::StoreError {
    Invalid::new("database", "is in the memory of one process, so there is nothing to look at").into()
}
