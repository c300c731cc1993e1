//! [`Notifier`]: notifies systemd of the state of the service (`Type=notify`, `WatchdogSec=`).
//!
//! Sends datagrams of `NAME=value` lines to the socket that `NOTIFY_SOCKET` names. Without the variable nothing is
//! sent, and errors here stop nothing. The crate `sd-notify` does not support abstract sockets and blocks while systemd
//! does not read, so it is not used.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tracing::warn;

/// The socket of systemd, if there is one.
#[derive(Debug, Default)]
pub struct Notifier {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
    complained: AtomicBool,
}

impl Notifier {
    /// As the environment of this process says.
    pub fn from_env() -> Notifier {
        let mine = |pid: OsString| pid.to_str().and_then(|pid| pid.parse().ok()) == Some(std::process::id());
        let usec = env::var_os("WATCHDOG_USEC").filter(|_| env::var_os("WATCHDOG_PID").is_none_or(mine));
        Notifier::new(env::var_os("NOTIFY_SOCKET").as_deref(), usec.as_deref())
    }

    /// A path, or `@` and an abstract name; and microseconds.
    fn new(socket: Option<&OsStr>, watchdog_usec: Option<&OsStr>) -> Notifier {
        let Some(name) = socket.filter(|name| !name.is_empty()) else { return Notifier::default() };
        let usec = watchdog_usec.and_then(OsStr::to_str).and_then(|usec| usec.parse().ok()).filter(|usec| *usec > 0);
        let mut notifier = Notifier { watchdog: usec.map(Duration::from_micros), ..Notifier::default() };
        match connect(name) {
            Ok(socket) => notifier.socket = Some(socket),
            Err(error) => notifier.complain(&error),
        }
        notifier
    }

    /// The service has begun: it answers, and looks for work.
    pub fn ready(&self) {
        self.send("READY=1");
    }

    /// It takes no more work and will end.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// It lives. To be said every [`Notifier::watchdog_interval`].
    pub fn watchdog(&self) {
        self.send("WATCHDOG=1");
    }

    /// Sets the text that `systemctl status` shows.
    pub fn status(&self, text: &str) {
        // A line end would begin another variable.
        self.send(&format!("STATUS={}", text.replace(['\n', '\r'], " ")));
    }

    /// Half of the time after which systemd loses its patience; `None` if it does not watch.
    pub fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog.map(|watchdog| watchdog / 2)
    }

    fn send(&self, state: &str) {
        let Some((socket, address)) = &self.socket else { return };
        if let Err(error) = socket.send_to_addr(state.as_bytes(), address) {
            self.complain(&error);
        }
    }

    /// Logs an error once: it would repeat every few seconds.
    fn complain(&self, error: &io::Error) {
        if !self.complained.swap(true, Ordering::Relaxed) {
            warn!(%error, "cannot notify systemd of the service state; continuing without it");
        }
    }
}

fn connect(name: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let socket = UnixDatagram::unbound()?;
    // A listener that does not read must not hold up the service.
    socket.set_nonblocking(true)?;
    Ok((socket, address(name)?))
}

fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(name),
        _ => Err(io::Error::other("NOTIFY_SOCKET is neither a path nor an abstract name")),
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::os::linux::net::SocketAddrExt;
    use std::sync::atomic::AtomicU32;

    use super::*;

    fn unique() -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        format!("everbell-notify-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
    }

    fn heard(socket: &UnixDatagram) -> String {
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut buffer = [0; 1_000];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    fn says_everything(notifier: &Notifier, listener: &UnixDatagram) {
        notifier.ready();
        assert_eq!(heard(listener), "READY=1");
        notifier.status("3 runs at work\nREADY=0");
        assert_eq!(heard(listener), "STATUS=3 runs at work READY=0");
        notifier.watchdog();
        assert_eq!(heard(listener), "WATCHDOG=1");
        notifier.stopping();
        assert_eq!(heard(listener), "STOPPING=1");
    }

    #[test]
    fn a_socket_with_a_path_hears_everything() {
        let path = env::temp_dir().join(unique());
        let listener = UnixDatagram::bind(&path).unwrap();
        let notifier = Notifier::new(Some(path.as_os_str()), Some(OsStr::new("30000000")));
        says_everything(&notifier, &listener);
        assert_eq!(notifier.watchdog_interval(), Some(Duration::from_secs(15)));
        drop(listener);
        std::fs::remove_file(&path).unwrap();
        notifier.watchdog();
        assert!(notifier.complained.load(Ordering::Relaxed), "nobody listens any more, and the service goes on");
    }

    #[test]
    fn an_abstract_socket_hears_everything() {
        let name = unique();
        let listener = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let notifier = Notifier::new(Some(OsStr::new(&format!("@{name}"))), None);
        says_everything(&notifier, &listener);
        assert_eq!(notifier.watchdog_interval(), None);
    }

    #[test]
    fn without_a_socket_nothing_is_told() {
        for socket in [None, Some(OsStr::new(""))] {
            let notifier = Notifier::new(socket, Some(OsStr::new("30000000")));
            notifier.ready();
            assert_eq!(notifier.watchdog_interval(), None, "nobody would hear it");
            assert!(!notifier.complained.load(Ordering::Relaxed));
        }
    }

    #[test]
    fn a_socket_that_cannot_be_is_told_once_and_harms_nobody() {
        let notifier = Notifier::new(Some(OsStr::new("vsock:2:1234")), Some(OsStr::new("soon")));
        assert!(notifier.complained.load(Ordering::Relaxed));
        notifier.ready();
        assert_eq!(notifier.watchdog_interval(), None);
    }
}
