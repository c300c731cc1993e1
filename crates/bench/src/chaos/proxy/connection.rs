//! One connection: two threads, one for each direction.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::wire::{Meaning, Messages, Requests};
use super::{Action, Network, Point, Shared, lock};
use crate::chaos::clock::pause;

/// The statements of the requests that are not answered yet, the oldest first.
type Unanswered = Mutex<VecDeque<Vec<Arc<str>>>>;

/// Carries everything until one side ends.
pub(super) fn carry(client: &TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    client.set_nodelay(true)?;
    if !shared.is_open() {
        return Ok(());
    }
    let server = UnixStream::connect(&shared.socket)?;
    lock(&shared.ends).push((client.try_clone()?, server.try_clone()?));
    let unanswered: Arc<Unanswered> = Arc::default();
    let answers = std::thread::spawn({
        let (client, server) = (client.try_clone()?, server.try_clone()?);
        let (shared, unanswered) = (Arc::clone(shared), Arc::clone(&unanswered));
        move || {
            let _ended = carry_answers(&client, &server, &shared, &unanswered);
            end(&client, &server, &shared);
        }
    });
    let _ended = carry_requests(client, &server, shared, &unanswered);
    end(client, &server, shared);
    let _panicked = answers.join();
    Ok(())
}

/// The end of one side is news for the other only if the network carries it.
fn end(client: &TcpStream, server: &UnixStream, shared: &Shared) {
    shared.is_open();
    let _ended = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
}

fn carry_requests(
    client: &TcpStream,
    mut server: &UnixStream,
    shared: &Shared,
    unanswered: &Unanswered,
) -> io::Result<()> {
    let mut messages = Messages::of_client(client);
    let mut requests = Requests::default();
    let mut held = messages.next()?.unwrap_or_default();
    shared.delay();
    server.write_all(&held)?;
    held.clear();
    while let Some(message) = messages.next()? {
        let meaning = requests.read(&message);
        held.extend_from_slice(&message);
        match meaning {
            Meaning::More => continue,
            Meaning::Other => {}
            Meaning::Whole(texts) => {
                shared.delay();
                shared.act(&texts, Point::Request, false);
                lock(unanswered).push_back(texts);
            }
        }
        if !shared.is_open() {
            return Ok(());
        }
        server.write_all(&held)?;
        held.clear();
    }
    Ok(())
}

fn carry_answers(
    mut client: &TcpStream,
    server: &UnixStream,
    shared: &Shared,
    unanswered: &Unanswered,
) -> io::Result<()> {
    let mut messages = Messages::of_server(server);
    let (mut held, mut has_rows) = (Vec::new(), false);
    while let Some(message) = messages.next()? {
        has_rows |= message[0] == b'D';
        held.extend_from_slice(&message);
        let is_end = message[0] == b'Z';
        // Without a request it is a notification or the greeting, which no client waits for.
        if !is_end && !lock(unanswered).is_empty() {
            continue;
        }
        let texts = if is_end { lock(unanswered).pop_front() } else { None };
        if let Some(texts) = texts {
            shared.act(&texts, Point::Answer, std::mem::take(&mut has_rows));
        }
        if !shared.is_open() {
            return Ok(());
        }
        client.write_all(&held)?;
        held.clear();
    }
    // The last words of a server that closes.
    if shared.is_open() { client.write_all(&held) } else { Ok(()) }
}

impl Shared {
    /// Waits for the latency of a request.
    fn delay(&self) {
        pause(Duration::from_millis(self.latency.load(Ordering::Relaxed)));
    }

    fn act(&self, texts: &[Arc<str>], point: Point, has_rows: bool) {
        let action = lock(&self.rules).iter().find_map(|rule| rule.take(texts, point, has_rows));
        match action {
            None => {}
            Some(Action::Delay(duration)) => pause(duration),
            Some(Action::Silence) => self.set(Network::Silent),
            Some(Action::Signal(signal)) => self.signal(signal),
            Some(Action::Kill) => {
                self.signal(Signal::KILL);
                self.set(Network::Cut);
            }
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = lock(&self.pid).and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        if let Some(pid) = pid {
            // It may have ended already.
            let _gone = kill_process(pid, signal);
        }
    }
}
