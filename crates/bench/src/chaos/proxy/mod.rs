//! A proxy between one instance and its PostgreSQL that acts on chosen statements.
//!
//! ```text
//! instance ── requests ──► [held until Sync; rules for requests] ──► PostgreSQL
//!          ◄─ answers ──── [held until ReadyForQuery; rules for answers] ◄──
//! ```
//!
//! It knows which text a prepared statement has, so a rule names a statement and not a count of bytes. Both directions of
//! a connection have a thread each: an answer that is kept back keeps nothing else back.

mod connection;
mod rule;
mod wire;

pub(crate) use rule::{Action, Armed, Point, Rule};

use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Outcome;

/// The state of the network between an instance and its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// Carries everything.
    Open,
    /// Refuses: connections are cut, and so is every new one.
    Cut,
    /// Black hole: connections stay, and nothing comes through in either direction, not even an end.
    Silent,
    /// For good: the experiment is over.
    Gone,
}

/// Listens on loopback until it is dropped.
pub(crate) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

/// The state that all threads of a proxy share.
struct Shared {
    socket: PathBuf,
    network: Mutex<Network>,
    changed: Condvar,
    rules: Mutex<Vec<Rule>>,
    /// The process behind the proxy, for rules that signal it.
    pid: Mutex<Option<u32>>,
    /// The latency of each request on its way to the server, in milliseconds.
    latency: AtomicU64,
    ends: Mutex<Vec<(TcpStream, UnixStream)>>,
}

impl Proxy {
    /// In front of the server with this socket.
    pub(crate) fn start(socket: PathBuf) -> Outcome<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            socket,
            network: Mutex::new(Network::Open),
            changed: Condvar::new(),
            rules: Mutex::default(),
            pid: Mutex::default(),
            latency: AtomicU64::new(0),
            ends: Mutex::default(),
        });
        std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Ok(Proxy { port, shared })
    }

    /// The address of a database behind it.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}?sslmode=disable", self.port)
    }

    /// Says which process is behind it.
    pub(crate) fn serves(&self, pid: u32) {
        *lock(&self.shared.pid) = Some(pid);
    }

    /// Adds a rule. The returned value records its actions.
    pub(crate) fn arm(&self, rule: Rule) -> Armed {
        let armed = rule.armed();
        lock(&self.shared.rules).push(rule);
        armed
    }

    /// Removes all rules.
    pub(crate) fn disarm(&self) {
        lock(&self.shared.rules).clear();
    }

    /// Changes the network.
    pub(crate) fn set(&self, network: Network) {
        self.shared.set(network);
    }

    /// Makes every request wait.
    pub(crate) fn delay_requests(&self, latency: Duration) {
        self.shared.latency.store(u64::try_from(latency.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.set(Network::Gone);
        // Wakes the thread that accepts.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

impl Shared {
    fn set(&self, network: Network) {
        *lock(&self.network) = network;
        self.changed.notify_all();
        if matches!(network, Network::Cut | Network::Gone) {
            for (client, server) in lock(&self.ends).drain(..) {
                // Either may have ended already.
                let _ended = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
            }
        }
    }

    /// Waits while the network is silent. Whether it carries anything afterwards.
    fn is_open(&self) -> bool {
        let mut network = lock(&self.network);
        while *network == Network::Silent {
            network = self.changed.wait(network).unwrap_or_else(PoisonError::into_inner);
        }
        *network == Network::Open
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while let Ok((client, _)) = listener.accept() {
        let network = *lock(&shared.network);
        match network {
            Network::Gone => return,
            Network::Cut => drop(client),
            Network::Open | Network::Silent => {
                let shared = Arc::clone(shared);
                std::thread::spawn(move || {
                    // Either side may end whenever it likes.
                    let _ended = connection::carry(&client, &shared);
                });
            }
        }
    }
}
