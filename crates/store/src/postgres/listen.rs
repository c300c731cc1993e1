//! `LISTEN` and `NOTIFY`: an accelerator. Loops poll; this only makes them look sooner.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use everbell_core::store::StoreResult;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::connect::{Conn, on};

const CHANNEL: &str = "everbell";
/// Waits between attempts to connect again: doubled each time, up to this.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// A connection of its own that wakes whoever waits.
#[derive(Debug)]
pub(super) struct Listener {
    task: JoinHandle<()>,
    hears: Arc<AtomicBool>,
}

impl Listener {
    pub(super) fn start(options: PgConnectOptions, wake: Arc<Notify>) -> Listener {
        let hears = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(listen(options, wake, Arc::clone(&hears)));
        Listener { task, hears }
    }

    /// Whether it is connected at this moment.
    pub(super) fn hears(&self) -> bool {
        self.hears.load(Ordering::Relaxed)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(options: PgConnectOptions, wake: Arc<Notify>, hears: Arc<AtomicBool>) {
    let mut wait = FIRST_WAIT;
    loop {
        // A pool of one, so that the listener never takes a connection from the verbs.
        let pool = PgPoolOptions::new().max_connections(1).connect_with(options.clone()).await;
        if let Ok(pool) = pool
            && let Ok(mut listener) = PgListener::connect_with(&pool).await
            && listener.listen(CHANNEL).await.is_ok()
        {
            wait = FIRST_WAIT;
            hears.store(true, Ordering::Relaxed);
            // What was said while nobody listened is unknown, so everybody looks once.
            wake.notify_waiters();
            while let Ok(Some(_)) = listener.try_recv().await {
                wake.notify_waiters();
            }
            hears.store(false, Ordering::Relaxed);
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// Tells every instance to look again, when the transaction commits.
pub(super) async fn notify(tx: Conn<'_, '_>, what: &str) -> StoreResult<()> {
    on(what, sqlx::query("select pg_notify('everbell', '')").execute(tx)).await?;
    Ok(())
}
