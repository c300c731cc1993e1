//! One of the two databases of a copy, whichever it is.

use everbell_core::store::StoreResult;
use futures_util::stream::BoxStream;
use jiff::Timestamp;

use crate::moved::MovedMark;
use crate::portable::tables::Table;
use crate::portable::value::Row;
use crate::portable::{Access, Limit};
#[cfg(feature = "postgres")]
use crate::postgres::copy::PostgresSide;
#[cfg(feature = "sqlite")]
use crate::sqlite::copy::SqliteSide;
use crate::url::Address;

pub(super) enum Side {
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresSide>),
    #[cfg(feature = "sqlite")]
    Sqlite(Box<SqliteSide>),
}

/// The same call on whichever database it is.
macro_rules! on {
    ($side:expr, $database:ident => $call:expr) => {
        match $side {
            #[cfg(feature = "postgres")]
            Side::Postgres($database) => $call,
            #[cfg(feature = "sqlite")]
            Side::Sqlite($database) => $call,
            #[cfg(not(any(feature = "postgres", feature = "sqlite")))]
            _ => unreachable!("no database is compiled in"),
        }
    };
}

impl Side {
    pub(super) async fn open(url: &str, access: Access) -> StoreResult<Side> {
        Ok(match Address::parse(url)? {
            #[cfg(feature = "postgres")]
            Address::Postgres => Side::Postgres(Box::new(PostgresSide::open(url, access).await?)),
            #[cfg(feature = "sqlite")]
            Address::SqliteFile(path) => Side::Sqlite(Box::new(SqliteSide::open(&path, access).await?)),
            #[cfg(feature = "sqlite")]
            Address::SqliteMemory => return Err(everbell_core::Invalid::new("database", "is in memory").into()),
            #[cfg(not(all(feature = "postgres", feature = "sqlite")))]
            other => return Err(other.left_out().into()),
        })
    }

    /// One spelling for each database, without user and password.
    pub(super) fn identity(url: &str) -> StoreResult<String> {
        Ok(match Address::parse(url)? {
            #[cfg(feature = "postgres")]
            Address::Postgres => PostgresSide::identity(url)?,
            #[cfg(feature = "sqlite")]
            Address::SqliteFile(path) => format!("sqlite:{}", super::real_path(&path).display()),
            #[cfg(feature = "sqlite")]
            Address::SqliteMemory => url.to_owned(),
            #[cfg(not(all(feature = "postgres", feature = "sqlite")))]
            other => return Err(other.left_out().into()),
        })
    }

    pub(super) async fn now(&mut self) -> StoreResult<Timestamp> {
        on!(self, side => side.now().await)
    }

    /// The mark of a database that was copied elsewhere.
    pub(super) async fn moved(&mut self) -> StoreResult<Option<MovedMark>> {
        on!(self, side => side.moved().await)
    }

    /// Writes the mark of a copy that has begun.
    pub(super) async fn write_mark(&mut self, to: &str, target: &str) -> StoreResult<()> {
        let at = self.now().await?;
        let mark = MovedMark { to: to.to_owned(), target: target.to_owned(), is_done: false, at };
        on!(self, side => side.write_mark(&mark).await)
    }

    /// Notes in the mark that the target has the rows, behind the commit of this side.
    pub(super) async fn end_mark(&mut self) -> StoreResult<()> {
        on!(self, side => side.end_mark().await)
    }

    /// Whether a database of any schema has jobs, runs, or an instance that was heard of in the last minute.
    pub(super) async fn is_used(&mut self) -> StoreResult<bool> {
        on!(self, side => side.is_used().await)
    }

    pub(super) async fn clear_mark(&mut self) -> StoreResult<()> {
        on!(self, side => side.clear_mark().await)
    }

    pub(super) async fn count(&mut self, table: &Table, limit: Option<Limit>) -> StoreResult<u64> {
        on!(self, side => side.count(table, limit).await)
    }

    /// The rows of a table that are not too old.
    pub(super) fn rows(&mut self, table: &'static Table, limit: Option<Limit>) -> BoxStream<'_, StoreResult<Row>> {
        on!(self, side => side.rows(table, limit))
    }

    /// Makes a target ready for rows.
    pub(super) async fn prepare(&mut self) -> StoreResult<()> {
        on!(self, side => side.prepare().await)
    }

    /// Deletes the rows of a table.
    pub(super) async fn clear(&mut self, table: &Table) -> StoreResult<()> {
        on!(self, side => side.clear(table).await)
    }

    pub(super) async fn insert(&mut self, table: &Table, rows: Vec<Row>) -> StoreResult<()> {
        on!(self, side => side.insert(table, rows).await)
    }

    /// The last value that the database has counted for a table, if it counts there.
    pub(super) async fn last_identity(&mut self, table: &Table) -> StoreResult<Option<i64>> {
        on!(self, side => side.last_identity(table).await)
    }

    /// Lets the database count on from a value.
    pub(super) async fn set_identity(&mut self, table: &Table, last: i64) -> StoreResult<()> {
        on!(self, side => side.set_identity(table, last).await)
    }

    /// Completes a target that has all its rows.
    pub(super) async fn complete(&mut self) -> StoreResult<()> {
        on!(self, side => side.complete().await)
    }

    pub(super) async fn commit(&mut self, what: &str) -> StoreResult<()> {
        on!(self, side => side.commit(what).await)
    }

    pub(super) async fn rollback(&mut self) -> StoreResult<()> {
        on!(self, side => side.rollback().await)
    }
}
