//! Starting the server, or joining the one that runs.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::folder::Folder;
use super::programs::{Programs, User};

const WATCHDOG: &str = include_str!("watchdog.sh");

/// How much a crash of the machine may lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Everything: nothing waits for the disk. For tests.
    Fast,
    /// Nothing: PostgreSQL's own defaults. For benches.
    Durable,
}

impl Durability {
    fn kind(self) -> &'static str {
        match self {
            Durability::Fast => "test",
            Durability::Durable => "bench",
        }
    }

    fn settings(self) -> &'static str {
        match self {
            Durability::Fast => "-c fsync=off -c synchronous_commit=off -c full_page_writes=off",
            Durability::Durable => "",
        }
    }
}

/// A running server, and this process's say that it is needed.
pub(super) struct Server {
    url: String,
    _use: File,
}

/// A server for one test alone, which may treat it badly. It is gone a few seconds after the test.
pub struct OwnServer {
    server: Server,
    folder: Folder,
}

/// How an [`OwnServer`] differs from the usual one.
#[derive(Clone, Debug, Default)]
pub struct OwnSetup {
    /// Settings of PostgreSQL, such as `("max_connections", "100")`.
    pub settings: Vec<(String, String)>,
    /// Variables of its environment, such as those of a library that changes its clock.
    pub environment: Vec<(String, String)>,
}

impl OwnServer {
    /// Starts one that keeps what it has promised. Panics with the reason when there is no server to be had.
    pub fn start() -> OwnServer {
        OwnServer::start_with(&OwnSetup::default())
    }

    /// Starts a server with its own settings and environment. Panics with the reason if that fails.
    pub fn start_with(setup: &OwnSetup) -> OwnServer {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let start = || {
            // The first one of a process may still be in use when the next one starts.
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let folder = Folder::shared(&format!("own{}-{number}", std::process::id()))?;
            let server = Server::join_in(&folder, Durability::Durable, setup)?;
            Ok(OwnServer { server, folder })
        };
        start().unwrap_or_else(|reason: String| panic!("{reason}"))
    }

    /// Its address.
    pub fn url(&self) -> &str {
        self.server.url()
    }

    /// The process id of the server, if it runs.
    pub fn pid(&self) -> Option<u32> {
        let text = fs::read_to_string(self.folder.path().join("server/data/postmaster.pid")).ok()?;
        text.lines().next()?.parse().ok()
    }

    /// Ends it like a crash, and starts it again: every connection is cut, and it recovers from its log.
    pub fn crash_and_restart(&self) {
        let restart = || {
            let server = self.folder.path().join("server");
            let inside = |name: &str| server.join(name).display().to_string();
            let (data, log) = (inside("data"), inside("log"));
            let restart = ["-D", &data, "-l", &log, "-m", "immediate", "-t", "60", "-w", "restart"];
            let user = User::unprivileged(self.folder.uid)?;
            Programs::find()?.run("pg_ctl", &user, &restart, &[], &server.join("said"))
        };
        restart().unwrap_or_else(|reason: String| panic!("{reason}"));
    }
}

impl std::fmt::Debug for OwnServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnServer").field("url", &self.url()).finish()
    }
}

impl Server {
    pub(super) fn join(durability: Durability) -> Result<Server, String> {
        Server::join_in(&Folder::shared(durability.kind())?, durability, &OwnSetup::default())
    }

    fn join_in(folder: &Folder, durability: Durability, setup: &OwnSetup) -> Result<Server, String> {
        let _door = folder.lock_start()?;
        let in_use = folder.lock_use()?;
        let server = folder.path().join("server");
        let listens = UnixStream::connect(server.join(".s.PGSQL.5432")).is_ok();
        // The watchdog comes first: whatever happens from here on, it cleans up.
        if !folder.is_watched() {
            watch(folder.path())?;
        }
        if !listens {
            start(&server, folder.uid, durability, setup)?;
        }
        let url = format!("postgres://postgres@localhost/postgres?host={}", server.display());
        Ok(Server { url, _use: in_use })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

/// Starts the watchdog in a new session, so that no signal to the tests reaches it, and without their standard streams,
/// which a test runner reads to their end.
fn watch(folder: &Path) -> Result<(), String> {
    let mut command = Command::new("setsid");
    command.args(["--fork", "sh", "-c", WATCHDOG, "everbell-watchdog"]).arg(folder).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().map_err(|e| format!("cannot run setsid: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("setsid failed: {status}")) }
}

fn start(server: &Path, uid: u32, durability: Durability, setup: &OwnSetup) -> Result<(), String> {
    let programs = Programs::find()?;
    let user = User::unprivileged(uid)?;
    // What a machine that crashed left behind.
    if server.exists() {
        fs::remove_dir_all(server).map_err(|e| format!("{}: {e}", server.display()))?;
    }
    DirBuilder::new().mode(0o700).create(server).map_err(|e| format!("{}: {e}", server.display()))?;
    user.own(server)?;
    let inside = |name: &str| server.join(name).display().to_string();
    let (data, log, said) = (inside("data"), inside("log"), server.join("said"));
    let initdb = ["-D", &data, "-U", "postgres", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"];
    programs.run("initdb", &user, &initdb, &[], &said)?;
    // No network: the folder of the socket is closed to other users, so trust is enough.
    let more: Vec<String> = setup.settings.iter().map(|(name, value)| format!("-c {name}={value}")).collect();
    let settings = format!(
        "-k {} -c listen_addresses='' -c port=5432 -c max_connections=200 {} {}",
        server.display(),
        durability.settings(),
        more.join(" ")
    );
    let pg_ctl = ["-D", &data, "-o", &settings, "-l", &log, "-t", "60", "-w", "start"];
    let started = programs.run("pg_ctl", &user, &pg_ctl, &setup.environment, &said);
    started.map_err(|said| format!("{said}\n{}", fs::read_to_string(&log).unwrap_or_default()))
}
