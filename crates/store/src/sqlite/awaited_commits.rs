//! Commits of transactions that are not ours: SQLite reports them to no other connection, so the loops are woken when their audit
//! entries can be read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::SqlitePool;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::debug;
use uuid::Uuid;

use super::batch;

/// Waits between two looks: doubled each time, up to the longest, which is how late a wake-up can be.
const MIN_PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_millis(500);
/// A transaction that takes longer was rolled back, or is found when the loops poll.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The most entries that are looked for. Of a transaction with more of them, the first are enough.
const MAX_ENTRIES: usize = 1_000;

const FIND: &str = "select id from everbell_audit where id in (select unhex(value) from json_each(?1))";

/// Audit entries in transactions of the application.
#[derive(Debug)]
pub(super) struct AwaitedCommits {
    /// `None` for a database in memory, which no application can connect to.
    readers: Option<SqlitePool>,
    wake: Arc<Notify>,
    entries: Mutex<Vec<(Uuid, Instant)>>,
}

impl AwaitedCommits {
    pub(super) fn new(readers: Option<SqlitePool>, wake: Arc<Notify>) -> AwaitedCommits {
        AwaitedCommits { readers, wake, entries: Mutex::default() }
    }

    /// Wakes the loops of this process when this entry can be read.
    pub(super) fn add(self: &Arc<Self>, entry: Uuid) {
        let Ok(runtime) = Handle::try_current() else { return };
        let mut entries = self.entries();
        if self.readers.is_none() || entries.len() == MAX_ENTRIES {
            return;
        }
        entries.push((entry, Instant::now() + MAX_WAIT));
        if entries.len() > 1 {
            // It is being looked for already.
            return;
        }
        let awaited = Arc::downgrade(self);
        runtime.spawn(async move {
            let mut pause = MIN_PAUSE;
            loop {
                tokio::time::sleep(pause).await;
                // Ends with the store.
                let Some(awaited) = awaited.upgrade() else { return };
                let before = awaited.entries().len();
                if awaited.look().await {
                    awaited.wake.notify_waiters();
                }
                let left = awaited.entries().len();
                if left == 0 {
                    return;
                }
                pause = if left == before { (pause * 2).min(MAX_PAUSE) } else { MIN_PAUSE };
            }
        });
    }

    /// Whether some of the entries were committed. Those are forgotten, and so are those that take too long.
    async fn look(&self) -> bool {
        let Some(readers) = &self.readers else { return false };
        let wanted = batch::ids(self.entries().iter().map(|(entry, _)| *entry));
        let found: sqlx::Result<Vec<Uuid>> = sqlx::query_scalar(FIND).bind(wanted).fetch_all(readers).await;
        let now = Instant::now();
        let mut entries = self.entries();
        match found {
            Ok(found) => {
                entries.retain(|(entry, until)| *until > now && !found.contains(entry));
                !found.is_empty()
            }
            Err(error) => {
                debug!(%error, "cannot look for commits of the application; the loops find them when they poll");
                entries.clear();
                false
            }
        }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<(Uuid, Instant)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
