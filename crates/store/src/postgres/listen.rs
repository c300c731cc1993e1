//! `LISTEN` and `NOTIFY`: an accelerator. Loops poll; this only makes them look sooner.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::Executor;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::connect::KEEPALIVE_SETTINGS;
use super::floors::Floors;
use super::hosts::Hosts;

/// Waits between attempts to connect again: doubled each time, up to this.
const MAX_RECONNECT_PAUSE: Duration = Duration::from_secs(30);
const MIN_RECONNECT_PAUSE: Duration = Duration::from_millis(200);
/// After so much silence the server is asked whether it is still there, and how long it may take to answer.
const PING_AFTER: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// A dedicated connection that wakes waiting loops.
#[derive(Debug)]
pub(super) struct Listener {
    task: JoinHandle<()>,
    hears: Arc<AtomicBool>,
}

impl Listener {
    pub(super) fn start(hosts: Arc<Hosts>, channel: String, wake: Arc<Notify>, floors: [Arc<Floors>; 2]) -> Listener {
        let hears = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(listen(hosts, channel, wake, floors, Arc::clone(&hears)));
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

async fn listen(
    hosts: Arc<Hosts>,
    channel: String,
    wake: Arc<Notify>,
    floors: [Arc<Floors>; 2],
    hears: Arc<AtomicBool>,
) {
    let mut wait = MIN_RECONNECT_PAUSE;
    loop {
        // A pool of one, so that the listener never takes a connection from the verbs.
        let options = hosts.current().clone().options(KEEPALIVE_SETTINGS);
        let pool = PgPoolOptions::new().max_connections(1).connect_with(options).await;
        if let Ok(pool) = pool
            && let Ok(mut listener) = PgListener::connect_with(&pool).await
            && listener.listen(&channel).await.is_ok()
        {
            wait = MIN_RECONNECT_PAUSE;
            hears.store(true, Ordering::Relaxed);
            // Notifications before the connection are unknown, so all loops look once.
            forget(&floors);
            wake.notify_waiters();
            while let Some(payload) = received(&mut listener).await {
                // Any payload but the empty one.
                if !payload.is_empty() {
                    forget(&floors);
                }
                wake.notify_waiters();
            }
            hears.store(false, Ordering::Relaxed);
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(MAX_RECONNECT_PAUSE);
    }
}

fn forget(floors: &[Arc<Floors>; 2]) {
    for floors in floors {
        floors.forget();
    }
}

/// Waits for a notification, and returns what it says; none when the connection is lost, or silent for too long.
async fn received(listener: &mut PgListener) -> Option<String> {
    loop {
        match tokio::time::timeout(PING_AFTER, listener.try_recv()).await {
            Ok(received) => return received.ok().flatten().map(|notification| notification.payload().to_owned()),
            Err(_) => match tokio::time::timeout(PING_TIMEOUT, listener.execute("select 1")).await {
                Ok(Ok(_)) => {}
                _ => return None,
            },
        }
    }
}
