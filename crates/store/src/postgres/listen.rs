//! `LISTEN` and `NOTIFY`: an accelerator. Loops poll; this only makes them look sooner.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, Executor};
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

    /// Whether it is connected at this moment, and has heard what another connection said. A pooler may accept `LISTEN` for
    /// a connection that it then gives to somebody else.
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
        let pool = PgPoolOptions::new().max_connections(1).connect_with(options.clone()).await;
        if let Ok(pool) = pool
            && let Ok(mut listener) = PgListener::connect_with(&pool).await
            && listener.listen(&channel).await.is_ok()
        {
            wait = MIN_RECONNECT_PAUSE;
            let probe = Probe { options, channel: &channel, word: random_word() };
            // Notifications before the connection are unknown, so all loops look once.
            forget(&floors);
            wake.notify_waiters();
            probe.say().await;
            while let Some(payload) = received(&mut listener, &probe, &hears).await {
                if payload == probe.word {
                    hears.store(true, Ordering::Relaxed);
                }
                // Any payload but the empty one, and the words of listeners.
                if !payload.is_empty() && !payload.starts_with(PROBE_WORD) {
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

/// A word that the listener has to hear, said by another connection.
struct Probe<'a> {
    options: PgConnectOptions,
    channel: &'a str,
    word: String,
}

const PROBE_WORD: &str = "hear ";

/// Two listeners must not take each other's word for theirs.
fn random_word() -> String {
    format!("{PROBE_WORD}{:016x}", RandomState::new().build_hasher().finish())
}

impl Probe<'_> {
    /// Says it, within a bound. A failure is repeated after the next silence: until then loops poll.
    async fn say(&self) {
        let said = async {
            let mut connection = self.options.connect().await?;
            sqlx::query("select pg_notify($1, $2)")
                .persistent(false)
                .bind(self.channel)
                .bind(&self.word)
                .execute(&mut connection)
                .await?;
            connection.close().await
        };
        let _repeated = tokio::time::timeout(PING_TIMEOUT, said).await;
    }
}

/// Waits for a notification, and returns what it says; none when the connection is lost, or silent for too long.
async fn received(listener: &mut PgListener, probe: &Probe<'_>, hears: &AtomicBool) -> Option<String> {
    loop {
        match tokio::time::timeout(PING_AFTER, listener.try_recv()).await {
            Ok(received) => return received.ok().flatten().map(|notification| notification.payload().to_owned()),
            Err(_) => match tokio::time::timeout(PING_TIMEOUT, listener.execute("select 1")).await {
                Ok(Ok(_)) if hears.load(Ordering::Relaxed) => {}
                Ok(Ok(_)) => probe.say().await,
                _ => return None,
            },
        }
    }
}
