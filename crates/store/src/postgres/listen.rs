//! `LISTEN` and `NOTIFY`: an accelerator. Loops poll; this only makes them look sooner.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, Executor};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::connect::KEEPALIVE_SETTINGS;
use super::floors::Floors;

/// Waits between attempts to connect again: doubled each time, up to this.
const MAX_RECONNECT_PAUSE: Duration = Duration::from_secs(30);
const MIN_RECONNECT_PAUSE: Duration = Duration::from_millis(200);
/// After so much silence the server is asked whether it is still there, and how long it may take to answer.
const PING_AFTER: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// The wait before a probe is repeated that was not heard: doubled each time, up to the maximum.
const MIN_PROBE_PAUSE: Duration = Duration::from_secs(2);
const MAX_PROBE_PAUSE: Duration = Duration::from_mins(10);

/// How to connect at this moment: to the server that is used now, with the password that holds now.
pub(super) type Options = Box<dyn Fn() -> PgConnectOptions + Send + Sync>;

/// A dedicated connection that wakes waiting loops.
#[derive(Debug)]
pub(super) struct Listener {
    task: JoinHandle<()>,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    is_connected: AtomicBool,
    hears: AtomicBool,
    /// Notified when a caller asks whether the listener receives messages.
    asked: Notify,
}

impl Listener {
    pub(super) fn start(options: Options, channel: String, wake: Arc<Notify>, floors: [Arc<Floors>; 2]) -> Listener {
        let state = Arc::new(State::default());
        let task = tokio::spawn(listen(options, channel, wake, floors, Arc::clone(&state)));
        Listener { task, state }
    }

    /// Whether it is connected at this moment.
    pub(super) fn is_connected(&self) -> bool {
        self.state.is_connected.load(Ordering::Relaxed)
    }

    /// Whether it is connected, and has heard what another connection said: a pooler may accept `LISTEN` for a connection
    /// that it then gives to another client. The first to ask makes it find out.
    pub(super) fn hears(&self) -> bool {
        let hears = self.state.hears.load(Ordering::Relaxed);
        if !hears {
            self.state.asked.notify_one();
        }
        hears
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(options: Options, channel: String, wake: Arc<Notify>, floors: [Arc<Floors>; 2], state: Arc<State>) {
    let mut wait = MIN_RECONNECT_PAUSE;
    loop {
        // A pool of one, so that the listener never takes a connection from the verbs.
        let pool = PgPoolOptions::new().max_connections(1).connect_with(options().options(KEEPALIVE_SETTINGS)).await;
        if let Ok(pool) = pool
            && let Ok(mut listener) = PgListener::connect_with(&pool).await
            && listener.listen(&channel).await.is_ok()
        {
            wait = MIN_RECONNECT_PAUSE;
            state.is_connected.store(true, Ordering::Relaxed);
            // Notifications before the connection are unknown, so all loops look once.
            forget(&floors);
            wake.notify_waiters();
            let mut probe = Probe::new(&options, &channel);
            while let Some(payload) = received(&mut listener, &mut probe, &state).await {
                if payload == probe.word {
                    state.hears.store(true, Ordering::Relaxed);
                }
                // Any payload but the empty one, and the words of listeners.
                if !payload.is_empty() && !payload.starts_with(PROBE_WORD) {
                    forget(&floors);
                }
                wake.notify_waiters();
            }
            state.is_connected.store(false, Ordering::Relaxed);
            state.hears.store(false, Ordering::Relaxed);
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
    options: &'a Options,
    channel: &'a str,
    word: String,
    said_at: Option<Instant>,
    pause: Duration,
}

const PROBE_WORD: &str = "hear ";

impl<'a> Probe<'a> {
    /// Two listeners must not take each other's word for theirs.
    fn new(options: &'a Options, channel: &'a str) -> Probe<'a> {
        let word = format!("{PROBE_WORD}{:016x}", RandomState::new().build_hasher().finish());
        Probe { options, channel, word, said_at: None, pause: MIN_PROBE_PAUSE }
    }

    /// Says it, within a bound and not too often. If it fails, loops poll until it is asked for again.
    async fn say(&mut self) {
        if self.said_at.is_some_and(|at| at.elapsed() < self.pause) {
            return;
        }
        if self.said_at.is_some() {
            self.pause = (self.pause * 2).min(MAX_PROBE_PAUSE);
        }
        let said = async {
            let mut connection = (self.options)().connect().await?;
            sqlx::query("select pg_notify($1, $2)")
                .persistent(false)
                .bind(self.channel)
                .bind(&self.word)
                .execute(&mut connection)
                .await?;
            connection.close().await
        };
        let _repeated = tokio::time::timeout(PING_TIMEOUT, said).await;
        self.said_at = Some(Instant::now());
    }
}

/// Waits for a notification, and returns what it says; none when the connection is lost, or silent for too long.
async fn received(listener: &mut PgListener, probe: &mut Probe<'_>, state: &State) -> Option<String> {
    let mut silent_since = Instant::now();
    loop {
        let silence = PING_AFTER.saturating_sub(silent_since.elapsed());
        tokio::select! {
            received = listener.try_recv() => {
                return received.ok().flatten().map(|notification| notification.payload().to_owned());
            }
            () = state.asked.notified() => {
                if !state.hears.load(Ordering::Relaxed) {
                    probe.say().await;
                }
            }
            () = tokio::time::sleep(silence) => {
                let answer = tokio::time::timeout(PING_TIMEOUT, listener.execute("select 1")).await;
                let Ok(Ok(_)) = answer else { return None };
                silent_since = Instant::now();
            }
        }
    }
}
