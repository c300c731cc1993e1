//! The supervisor's own process: reads the list of groups, and ends them at their deadlines or at the end of the server.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::thread::sleep;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::{Deadline, uptime};

/// How often a supervisor checks whether groups that were asked to end have ended, and the pause between two checks: five
/// seconds in all. Leases are longer, so no other instance has started their runs again by then.
const MAX_EXIT_CHECKS: u32 = 100;
const EXIT_CHECK_PAUSE: Duration = Duration::from_millis(50);

/// The longest wait for the pipe while a group has a deadline: the timer of `poll` stands still in a suspended machine.
const MAX_WAIT_MS: u64 = 1_000;

/// Watches groups until the pipe ends, then ends the remaining ones.
pub(super) fn supervise(pipe: &impl AsFd) {
    let (mut list, mut buffer) = (List::default(), [0; 16 * 1024]);
    loop {
        let wait = list.next().map(|at| at.saturating_sub(uptime()).min(MAX_WAIT_MS));
        let wait = wait.map(Duration::from_millis).and_then(|wait| Timespec::try_from(wait).ok());
        match poll(&mut [PollFd::new(pipe, PollFlags::IN)], wait.as_ref()) {
            // Only when everything is read: a renewal may be among it.
            Ok(0) => list.signal_due(uptime()),
            Ok(_) => match rustix::io::read(pipe, &mut buffer) {
                Ok(read @ 1..) => list.read(&buffer[..read]),
                Err(Errno::INTR) => {}
                // A pipe that cannot be read has ended too.
                Ok(0) | Err(_) => break,
            },
            Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    end(list.into_remaining());
}

/// The groups that have started and not ended.
#[derive(Debug, Default)]
struct List {
    groups: BTreeMap<i32, Entry>,
    /// The start of a line whose rest has not arrived.
    partial: Vec<u8>,
}

#[derive(Debug)]
struct Entry {
    deadline: Option<Deadline>,
    terminated: bool,
}

impl List {
    fn read(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
        let whole = self.partial.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let lines: Vec<u8> = self.partial.drain(..whole).collect();
        for line in String::from_utf8_lossy(&lines).lines() {
            self.apply(line);
        }
    }

    /// Applies a line. One that cannot be read is ignored.
    fn apply(&mut self, line: &str) -> Option<()> {
        let (sign, rest) = line.split_at_checked(1)?;
        let mut words = rest.split(' ');
        // Group 1 would mean every process, and lower numbers are no groups.
        let group = words.next()?.parse::<i32>().ok().filter(|group| *group > 1)?;
        let times: Vec<u64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
        match (sign, times.as_slice()) {
            ("-", []) => _ = self.groups.remove(&group),
            ("+", []) => _ = self.groups.insert(group, Entry { deadline: None, terminated: false }),
            ("+", [terminate_at, kill_at]) => {
                let deadline = Some(Deadline { terminate_at: *terminate_at, kill_at: *kill_at });
                self.groups.insert(group, Entry { deadline, terminated: false });
            }
            _ => {}
        }
        Some(())
    }

    /// Returns when the next signal is due.
    fn next(&self) -> Option<u64> {
        let due = |entry: &Entry| {
            let deadline = entry.deadline?;
            Some(if entry.terminated { deadline.kill_at } else { deadline.terminate_at })
        };
        self.groups.values().filter_map(due).min()
    }

    /// Signals the groups whose server has not renewed them: it is frozen or stuck.
    fn signal_due(&mut self, now: u64) {
        for (group, which) in self.take_due(now) {
            signal(&[group], which);
        }
    }

    /// The signals that are due. A group that was killed stays until the server says that it has ended.
    fn take_due(&mut self, now: u64) -> Vec<(Pid, Signal)> {
        let mut due = Vec::new();
        for (group, entry) in &mut self.groups {
            let (Some(deadline), Some(pid)) = (entry.deadline, Pid::from_raw(*group)) else { continue };
            if now >= deadline.kill_at {
                entry.deadline = None;
                due.push((pid, Signal::KILL));
            } else if now >= deadline.terminate_at && !entry.terminated {
                entry.terminated = true;
                due.push((pid, Signal::TERM));
            }
        }
        due
    }

    /// The groups that remain when the pipe ends. A last line without a line end counts.
    fn into_remaining(mut self) -> Vec<Pid> {
        let last = std::mem::take(&mut self.partial);
        self.apply(&String::from_utf8_lossy(&last));
        self.groups.into_keys().filter_map(Pid::from_raw).collect()
    }
}

/// Asks groups to end, and kills those that do not.
fn end(mut groups: Vec<Pid>) {
    signal(&groups, Signal::TERM);
    for _ in 0..MAX_EXIT_CHECKS {
        groups.retain(|group| test_kill_process_group(*group).is_ok());
        if groups.is_empty() {
            return;
        }
        sleep(EXIT_CHECK_PAUSE);
    }
    signal(&groups, Signal::KILL);
}

fn signal(groups: &[Pid], signal: Signal) {
    for group in groups {
        // An error means that no process is left.
        let _gone = kill_process_group(*group, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &str) -> List {
        let mut list = List::default();
        // In two parts, wherever they part.
        let (first, second) = words.as_bytes().split_at(words.len() / 2);
        list.read(first);
        list.read(second);
        list
    }

    fn remaining(words: &str) -> Vec<i32> {
        list(words).into_remaining().into_iter().map(|group| group.as_raw_nonzero().get()).collect()
    }

    #[test]
    fn groups_that_started_and_did_not_end_remain() {
        assert_eq!(remaining(""), [0; 0]);
        assert_eq!(remaining("+12\n+13\n-12\n+14\n"), [13, 14]);
        assert_eq!(remaining("+12\n-12\n+12\n"), [12], "a number comes back");
        assert_eq!(remaining("-12\n+12 5 9\n+13"), [12, 13]);
    }

    #[test]
    fn lines_that_name_no_group_are_ignored() {
        assert_eq!(
            remaining("+1\n+0\n+-1\n+-5\n+\n12\n*12\n+ 12\n+12x\n+99999999999\n+12 5\n+12 5 x\n+12 5 6 7\n\n"),
            [0; 0]
        );
    }

    #[test]
    fn a_group_that_is_not_renewed_is_asked_to_end_and_killed() {
        let due = |list: &mut List, now| -> Vec<(i32, i32)> {
            list.take_due(now).into_iter().map(|(pid, signal)| (pid.as_raw_nonzero().get(), signal.as_raw())).collect()
        };
        let (term, kill) = (Signal::TERM.as_raw(), Signal::KILL.as_raw());
        let mut list = list("+12 100 200\n+13\n+14 300 400\n");
        assert_eq!(list.next(), Some(100));
        assert_eq!(due(&mut list, 99), []);
        assert_eq!(due(&mut list, 100), [(12, term)]);
        assert_eq!((due(&mut list, 150), list.next()), (vec![], Some(200)));
        list.read(b"+14 500 600\n");
        assert_eq!(due(&mut list, 350), [(12, kill)], "the other one was renewed");
        assert_eq!(due(&mut list, 1_000), [(14, kill)], "too late to ask");
        assert_eq!((due(&mut list, 2_000), list.next()), (vec![], None));
        list.read(b"-14\n");
        let remaining: Vec<i32> = list.into_remaining().into_iter().map(|group| group.as_raw_nonzero().get()).collect();
        assert_eq!(remaining, [12, 13], "the server has not said that they are over");
    }
}
