//! [`Supervisor`]: a second process, which ends the programs of this one when it cannot do so itself.
//!
//! A server that is killed (`SIGKILL`, no memory left) leaves the programs of its runs behind, and one that is frozen
//! (`SIGSTOP`, a debugger) cannot stop them before their leases end. They would go on while another instance starts the
//! next run of the job: two at once, against its overlap policy. So the server starts itself a second time, as a
//! supervisor at the end of a pipe, and writes a line for every group that starts, is renewed, or ends:
//!
//! ```text
//! +4711                     the group 4711 has started
//! +4711 5000000 5006000     the same; it gets SIGTERM and SIGKILL at these times unless a later line renews it
//! -4711                     the group has ended: written before its id can be reused by another process
//! ```
//!
//! When the pipe ends, the server is gone: the supervisor asks the remaining groups to end, kills those that do not, and
//! exits. The process itself is in [`groups`].
//!
//! The server never waits for its supervisor: the pipe does not block. A supervisor that does not read (it is stopped, or
//! starved) fills the pipe; a thread then ends it, starts another one and sends it the whole list.

mod groups;
mod process;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Pid;
use rustix::time::{ClockId, clock_gettime};

use self::process::{ATOMIC_WRITE_BYTES, Process};

/// The only argument of a supervisor.
const SUBCOMMAND: &str = "supervise-groups";

/// The pause before another try to start a supervisor.
const RESTART_PAUSE: Duration = Duration::from_secs(5);

/// The times at which a group gets its signals unless it is renewed, in milliseconds of [`uptime`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deadline {
    terminate_at: u64,
    kill_at: u64,
}

impl Deadline {
    /// The deadline of a run that its server stops in `stops_in` and drops in `gone_in`. The server acts first, if it can.
    pub(super) fn after(stops_in: Duration, gone_in: Duration) -> Deadline {
        let at = |left: Duration| uptime().saturating_add(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        let slack = gone_in.saturating_sub(stops_in);
        Deadline { terminate_at: at(stops_in + slack / 3), kill_at: at(gone_in) }
    }
}

/// Milliseconds on a clock that all processes of the machine share and that also counts the time of a suspended machine.
fn uptime() -> u64 {
    const CLOCK: ClockId = if cfg!(target_os = "linux") { ClockId::Boottime } else { ClockId::Monotonic };
    let now = clock_gettime(CLOCK);
    let part = |value: i64| u64::try_from(value).unwrap_or_default();
    part(now.tv_sec) * 1_000 + part(now.tv_nsec) / 1_000_000
}

/// A handle on the process that ends groups if this one dies or freezes. Clones share one supervisor process.
#[derive(Clone, Debug)]
pub(crate) struct Supervisor(Option<Arc<GroupTracker>>);

impl Supervisor {
    /// No supervisor: if this process is killed, its programs continue.
    pub(crate) fn none() -> Supervisor {
        Supervisor(None)
    }

    /// Starts a second process of this program. Targets work without it too, so a failure is only a warning.
    pub(crate) fn start() -> Supervisor {
        Supervisor::start_with(Process::start)
    }

    fn start_with(start: impl Fn() -> io::Result<Process> + Send + Sync + 'static) -> Supervisor {
        let tracker = Arc::new(GroupTracker { state: Mutex::default(), start: Box::new(start) });
        match (tracker.start)() {
            Ok(process) => tracker.locked().process = Some(process),
            Err(error) => tracker.replace(&mut tracker.locked(), &error),
        }
        Supervisor(Some(tracker))
    }

    /// Ends a group if this process dies before the returned value is dropped, or at the deadline.
    pub(super) fn track(&self, leader: Pid, deadline: Option<Deadline>) -> TrackedGroup {
        let tracked = TrackedGroup { supervisor: self.clone(), group: leader.as_raw_nonzero().get() };
        tracked.send(Change::Track(deadline));
        tracked
    }
}

/// A group that the supervisor knows. It must be dropped before its leader is reaped: until then its id belongs to it.
#[derive(Debug)]
pub(super) struct TrackedGroup {
    supervisor: Supervisor,
    group: i32,
}

impl TrackedGroup {
    /// Replaces the deadline.
    pub(super) fn renew(&self, deadline: Deadline) {
        self.send(Change::Track(Some(deadline)));
    }

    fn send(&self, change: Change) {
        if let Some(tracker) = &self.supervisor.0 {
            tracker.send(self.group, change);
        }
    }
}

impl Drop for TrackedGroup {
    fn drop(&mut self) {
        self.send(Change::Over);
    }
}

/// A message about a group.
#[derive(Clone, Copy, Debug)]
enum Change {
    Track(Option<Deadline>),
    Over,
}

type Groups = BTreeMap<i32, Option<Deadline>>;

/// Tracks the groups, and keeps a supervisor process informed of them.
struct GroupTracker {
    state: Mutex<State>,
    /// Starts a supervisor.
    start: Box<dyn Fn() -> io::Result<Process> + Send + Sync>,
}

impl fmt::Debug for GroupTracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupTracker").field("state", &self.state).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    /// `None` while another one is being started.
    process: Option<Process>,
    /// The whole list, for another supervisor.
    groups: Groups,
    /// How many supervisors had to be replaced.
    replaced: u64,
}

impl GroupTracker {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(self: &Arc<GroupTracker>, group: i32, change: Change) {
        let mut state = self.locked();
        match change {
            Change::Track(deadline) => _ = state.groups.insert(group, deadline),
            Change::Over => _ = state.groups.remove(&group),
        }
        let Some(process) = &mut state.process else { return };
        let mut text = String::new();
        write_message(&mut text, group, change);
        if let Err(error) = process.write_now(text.as_bytes()) {
            self.replace(&mut state, &error);
        }
    }

    /// Ends the supervisor, if there is one, and starts another, on a thread that may wait.
    fn replace(self: &Arc<GroupTracker>, state: &mut State, why: &io::Error) {
        state.replaced += 1;
        let (last, tracker) = (state.process.take(), Arc::downgrade(self));
        tracing::warn!(%why, replaced = state.replaced, "the supervisor of programs does not respond; starting another one");
        let thread = std::thread::Builder::new().name("supervisor".to_owned());
        if let Err(error) = thread.spawn(move || start_another(last, &tracker)) {
            tracing::warn!(%error, "no supervisor is running: programs of command targets will continue if this server is killed");
        }
    }

    /// Sends the whole list to a new supervisor, then the changes made meanwhile.
    fn hand_over(&self, mut process: Process) -> io::Result<()> {
        let handed_over = self.bring_up_to_date(&mut process);
        match handed_over {
            Ok(mut state) => state.process = Some(process),
            Err(error) => {
                process.end();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns the lock on the list, held from the moment at which the supervisor knows all of it.
    fn bring_up_to_date(&self, process: &mut Process) -> io::Result<MutexGuard<'_, State>> {
        let mut known = Groups::new();
        loop {
            let text = {
                let state = self.locked();
                let text = difference(&known, &state.groups);
                if text.len() <= ATOMIC_WRITE_BYTES {
                    process.write_now(text.as_bytes())?;
                    return Ok(state);
                }
                known.clone_from(&state.groups);
                text
            };
            process.write_patiently(text.as_bytes())?;
        }
    }
}

fn start_another(last: Option<Process>, tracker: &Weak<GroupTracker>) {
    // It does not read, so there is nothing to lose.
    if let Some(last) = last {
        last.end();
    }
    while let Some(tracker) = tracker.upgrade() {
        match (tracker.start)().and_then(|process| tracker.hand_over(process)) {
            Ok(()) => return,
            Err(error) => {
                tracing::warn!(%error, "no supervisor is running: programs of command targets will continue if this server is killed");
            }
        }
        drop(tracker);
        sleep(RESTART_PAUSE);
    }
}

/// The lines that turn one list into another.
fn difference(known: &Groups, wanted: &Groups) -> String {
    let mut text = String::new();
    for group in known.keys().filter(|group| !wanted.contains_key(group)) {
        write_message(&mut text, *group, Change::Over);
    }
    for (group, deadline) in wanted.iter().filter(|(group, deadline)| known.get(group) != Some(deadline)) {
        write_message(&mut text, *group, Change::Track(*deadline));
    }
    text
}

fn write_message(text: &mut String, group: i32, change: Change) {
    let line = match change {
        Change::Track(Some(Deadline { terminate_at, kill_at })) => format!("+{group} {terminate_at} {kill_at}\n"),
        Change::Track(None) => format!("+{group}\n"),
        Change::Over => format!("-{group}\n"),
    };
    text.push_str(&line);
}

/// Runs as the supervisor of a server, if this process was started as one.
pub(crate) fn ran_as_supervisor(args: &[OsString]) -> bool {
    if args.len() != 2 || args[1] != SUBCOMMAND {
        return false;
    }
    groups::supervise(&io::stdin());
    true
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// A supervisor that never reads, then one that writes down what it reads.
    fn stopped_then_writing(file: &std::path::Path) -> impl Fn() -> io::Result<Process> + Send + Sync + use<> {
        let (file, starts) = (file.to_owned(), AtomicU32::new(0));
        move || {
            let mut command = match starts.fetch_add(1, Ordering::Relaxed) {
                0 => Command::new("sleep"),
                _ => Command::new("sh"),
            };
            if command.get_program() == "sleep" {
                command.arg("1000");
            } else {
                command.args(["-c", "exec cat > \"$0\""]).arg(&file);
            }
            Process::spawn(command.stdin(Stdio::piped()))
        }
    }

    #[test]
    fn a_supervisor_that_does_not_read_is_replaced_and_blocks_nobody() {
        let file = std::env::temp_dir().join(format!("everbell-supervisor-{}", std::process::id()));
        let supervisor = Supervisor::start_with(stopped_then_writing(&file));
        let group = |number: i32| Pid::from_raw(number).unwrap();
        let group_4711 = supervisor.track(group(4_711), SOON);
        // More than any pipe holds: a write that waits would wait for ever.
        for number in 0..200_000 {
            drop(supervisor.track(group(10_000 + number % 1_000), None));
        }
        let tracker = supervisor.0.clone().unwrap();
        while tracker.locked().process.is_none() {
            sleep(Duration::from_millis(10));
        }
        assert!(tracker.locked().replaced >= 1);
        // The end of the pipe ends the process that writes.
        let process = tracker.locked().process.take().unwrap();
        let Process { mut child, pipe } = process;
        drop(pipe);
        child.wait().unwrap();
        let read = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(read.lines().next(), Some("+4711 5 7"), "it knows what the first one knew");
        drop(group_4711);
    }

    const SOON: Option<Deadline> = Some(Deadline { terminate_at: 5, kill_at: 7 });

    #[test]
    fn a_list_is_brought_up_to_another_one() {
        let known = Groups::from([(2, None), (3, None), (4, SOON)]);
        let wanted = Groups::from([(3, SOON), (4, SOON), (5, None)]);
        assert_eq!(difference(&Groups::new(), &known), "+2\n+3\n+4 5 7\n");
        assert_eq!(difference(&known, &wanted), "-2\n+3 5 7\n+5\n");
        assert_eq!(difference(&wanted, &wanted), "");
    }

    #[test]
    fn a_server_that_can_act_is_first() {
        let before = uptime();
        let deadline = Deadline::after(Duration::from_secs(45), Duration::from_secs(57));
        let after = uptime();
        assert!((before + 49_000..=after + 49_000).contains(&deadline.terminate_at), "{deadline:?}");
        assert!((before + 57_000..=after + 57_000).contains(&deadline.kill_at), "{deadline:?}");
    }
}
