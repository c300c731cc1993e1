//! The application's own pool. Everbell borrows a connection for one transaction, and leaves nothing in its session.
//!
//! Settings are local to the transaction (`set local`), and statements have no name, so that they do not push those of the
//! application out of the cache of its connections. A semaphore bounds how many connections are borrowed at once.

use std::fmt;
use std::sync::Arc;

use sqlx::pool::PoolConnection;
use sqlx::{Executor, PgConnection, PgPool, Postgres, SqlStr};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::hosts::Refusal;
use super::pool::ROLLBACK_TIMEOUT;

/// The pool, and the right to borrow some of its connections.
#[derive(Clone)]
pub(super) struct GivenPool {
    pool: PgPool,
    permits: Arc<Semaphore>,
}

/// A borrowed connection.
pub(super) struct GivenConnection {
    /// There until it is given back.
    held: Option<BorrowedConnection>,
    /// Whether a transaction was begun and has not ended.
    open: bool,
}

struct BorrowedConnection {
    connection: PoolConnection<Postgres>,
    /// Dropped after the connection.
    _permit: OwnedSemaphorePermit,
}

impl GivenPool {
    /// Borrows as many connections at once as there are permits, which other pools may share.
    pub(super) fn new(pool: PgPool, permits: Arc<Semaphore>) -> GivenPool {
        GivenPool { pool, permits }
    }

    /// Waits for a permit, and for a connection of the application's pool.
    pub(super) async fn acquire(&self) -> sqlx::Result<GivenConnection> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| sqlx::Error::PoolClosed)?;
        // A large future, which would be a part of every verb.
        let acquired = Box::pin(self.pool.acquire()).await;
        // No statement was sent yet, so nothing is in doubt.
        let connection = acquired.map_err(|error| Refusal::new(&error))?;
        Ok(GivenConnection { held: Some(BorrowedConnection { connection, _permit: permit }), open: false })
    }
}

impl GivenConnection {
    /// For statements.
    pub(super) fn connection(&mut self) -> &mut PgConnection {
        &mut self.held.as_mut().expect("held until it is given back").connection
    }

    pub(super) async fn begin(&mut self, begin: SqlStr) -> sqlx::Result<()> {
        // Also if the answer is lost.
        self.open = true;
        self.connection().execute(begin).await.map(drop)
    }

    /// Ends the transaction, and gives the connection back.
    pub(super) async fn end(mut self, how: SqlStr) -> sqlx::Result<()> {
        self.connection().execute(how).await?;
        self.held = None;
        Ok(())
    }
}

impl Drop for GivenConnection {
    /// The pool of sqlx knows nothing of the transaction, so a connection goes back only after its end; else it is closed.
    fn drop(&mut self) {
        let Some(mut held) = self.held.take() else { return };
        let Ok(runtime) = Handle::try_current() else {
            // Without a runtime the pool cannot take it back. The server rolls back when it notices that it is gone.
            drop(held.connection.detach());
            return;
        };
        if self.open {
            runtime.spawn(async move {
                let asked = tokio::time::timeout(ROLLBACK_TIMEOUT, held.connection.execute("rollback")).await;
                if !matches!(asked, Ok(Ok(_))) {
                    held.connection.close_on_drop();
                }
            });
        }
    }
}

impl fmt::Debug for GivenPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GivenPool").field("free", &self.permits.available_permits()).finish_non_exhaustive()
    }
}

impl fmt::Debug for GivenConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GivenConnection").field("open", &self.open).finish_non_exhaustive()
    }
}
