//! [`Keeper`]: a second process, which ends the programs of this one when it cannot do so itself.
//!
//! A server that is killed (`SIGKILL`, no memory left) leaves the programs of its runs behind. They would go on while
//! another instance, or the same one started again, begins those runs anew: two of a job at once, against its overlap
//! policy. So the server starts itself a second time, as a keeper at the end of a pipe. It tells the keeper every group
//! that begins (`+4711`) and every one that is over (`-4711`), before the number can be given to somebody else. When the
//! pipe ends, the server is gone: the keeper asks the groups that are left to end, kills what does not, and goes too.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// The only argument of a keeper.
const WORD: &str = "keep-groups";

/// How often a keeper looks whether groups that were asked to end have ended, and how long: five seconds. Leases are
/// longer, so nobody has begun their runs anew by then.
const GLANCES: (u32, Duration) = (100, Duration::from_millis(50));

/// Knows what is to be ended if this process dies. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Keeper(Option<Arc<Mutex<Line>>>);

impl Keeper {
    /// None at all: if this process is killed, programs go on.
    pub(crate) fn none() -> Keeper {
        Keeper(None)
    }

    /// A second process of this program. Everything works without it too, so a failure is only a warning.
    pub(crate) fn start() -> Keeper {
        let mut line = Line { keeper: None, groups: BTreeSet::new() };
        line.begin_or_warn();
        Keeper(Some(Arc::new(Mutex::new(line))))
    }

    /// Has a group ended if this process dies before the answer is dropped.
    pub(super) fn keep(&self, leader: Pid) -> Kept {
        let kept = Kept { keeper: self.clone(), group: leader.as_raw_nonzero().get() };
        self.tell('+', kept.group);
        kept
    }

    fn tell(&self, sign: char, group: i32) {
        if let Some(line) = &self.0 {
            line.lock().unwrap_or_else(PoisonError::into_inner).tell(sign, group);
        }
    }
}

/// A group that is kept an eye on. Dropped before its leader is reaped: until then its number is its own.
#[derive(Debug)]
pub(super) struct Kept {
    keeper: Keeper,
    group: i32,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.keeper.tell('-', self.group);
    }
}

/// The near end of the pipe.
#[derive(Debug)]
struct Line {
    keeper: Option<Child>,
    /// What the keeper knows, for another one.
    groups: BTreeSet<i32>,
}

impl Line {
    fn tell(&mut self, sign: char, group: i32) {
        if sign == '+' {
            self.groups.insert(group);
        } else {
            self.groups.remove(&group);
        }
        let told = self.keeper.as_mut().map(|keeper| say(keeper, sign, group));
        if !matches!(told, Some(Ok(()))) {
            self.begin_or_warn();
        }
    }

    /// The first keeper, or another one when somebody has ended it.
    fn begin_or_warn(&mut self) {
        if let Err(error) = self.begin() {
            tracing::warn!(%error, "there is no keeper: programs of command targets go on if this server is killed");
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        if let Some(mut last) = self.keeper.take() {
            // It does not listen, so there is nothing to lose. Reaped, it is no zombie.
            last.kill()?;
            last.wait()?;
        }
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg(WORD)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // What a terminal sends to the server is not for the keeper.
        let mut keeper = command.process_group(0).spawn()?;
        for group in &self.groups {
            say(&mut keeper, '+', *group)?;
        }
        self.keeper = Some(keeper);
        Ok(())
    }
}

fn say(keeper: &mut Child, sign: char, group: i32) -> io::Result<()> {
    let pipe = keeper.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
    pipe.write_all(format!("{sign}{group}\n").as_bytes())
}

/// Is the keeper of a server, if that is what this process was started as.
pub(crate) fn answered(args: &[OsString]) -> bool {
    if args.len() != 2 || args[1] != WORD {
        return false;
    }
    end(left(io::stdin().lock()));
    true
}

/// The groups that are left when the pipe ends.
fn left(pipe: impl BufRead) -> Vec<Pid> {
    let mut groups = BTreeSet::new();
    // A pipe that cannot be read has ended too.
    for line in pipe.lines().map_while(Result::ok) {
        match (line.get(..1), line.get(1..).and_then(|number| number.parse::<i32>().ok())) {
            (Some("+"), Some(group)) => _ = groups.insert(group),
            (Some("-"), Some(group)) => _ = groups.remove(&group),
            _ => {}
        }
    }
    // 1 would be everybody's, and nothing below is a group.
    groups.into_iter().filter(|group| *group > 1).filter_map(Pid::from_raw).collect()
}

/// Asks groups to end, and kills those that do not.
fn end(mut groups: Vec<Pid>) {
    signal(&groups, Signal::TERM);
    let (glances, pause) = GLANCES;
    for _ in 0..glances {
        groups.retain(|group| test_kill_process_group(*group).is_ok());
        if groups.is_empty() {
            return;
        }
        sleep(pause);
    }
    signal(&groups, Signal::KILL);
}

fn signal(groups: &[Pid], signal: Signal) {
    for group in groups {
        // An error means that nobody is left.
        let _nobody = kill_process_group(*group, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_of(words: &str) -> Vec<i32> {
        left(words.as_bytes()).into_iter().map(|group| group.as_raw_nonzero().get()).collect()
    }

    #[test]
    fn what_began_and_is_not_over_is_left() {
        assert_eq!(left_of(""), [0; 0]);
        assert_eq!(left_of("+12\n+13\n-12\n+14\n"), [13, 14]);
        assert_eq!(left_of("+12\n-12\n+12\n"), [12], "a number comes back");
        assert_eq!(left_of("-12\n+12\n+13"), [12, 13]);
    }

    #[test]
    fn nobody_else_is_ever_meant() {
        assert_eq!(left_of("+1\n+0\n+-1\n+-5\n+\n12\n*12\n+ 12\n+12x\n+99999999999\n\n"), [0; 0]);
    }
}
