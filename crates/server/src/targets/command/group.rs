//! [`Group`]: a program and everything that it started.
//!
//! A program leads its own process group, and signals go to all of it. Three rules keep them from reaching a stranger,
//! because the system reuses the ids of processes:
//!
//! - The end of the program is noticed without reaping it (`waitid` with `WNOWAIT`). Until it is reaped, its id and so
//!   the id of its group belong to it.
//! - Processes that it left behind are killed before it is reaped.
//! - After that, no signal is sent.
//!
//! Dropping a group kills it: a handler that is dropped leaves nothing behind. If this process is killed itself, or
//! frozen until the lease of the run nearly ends, its [supervisor](super::supervisor) kills the group. Only processes
//! that created their own group or session escape.

use std::io;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::signal::unix::{self, SignalKind};

use everbell::Lease;

use super::supervisor::{Deadline, Supervisor, TrackedGroup};

#[derive(Debug)]
pub(super) struct Group {
    child: Child,
    leader: Pid,
    /// Until it is reaped.
    kept: Option<TrackedGroup>,
    /// Signals that a child of this process has changed.
    changes: unix::Signal,
}

impl Group {
    /// Starts a program as the leader of its own group.
    pub(super) fn start(command: &mut Command, supervisor: &Supervisor, lease: &Lease) -> io::Result<Group> {
        // Before the program: its end must not be missed.
        let changes = unix::signal(SignalKind::child())?;
        command.process_group(0);
        if lease.is_nearly_over() {
            return Err(io::Error::other("the lease of its run was over before it started"));
        }
        let child = command.spawn()?;
        let leader = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let leader = leader.ok_or_else(|| io::Error::other("the program has no process id"))?;
        Ok(Group { child, leader, kept: Some(supervisor.track(leader, deadline(lease))), changes })
    }

    /// The ends of its pipes.
    pub(super) fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
    }

    /// Resolves when the program has ended; it is not reaped. Others of its group may live on.
    pub(super) async fn ended(&mut self) {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        // An error means that there is no such child any more.
        while let Ok(None) = waitid(WaitId::Pid(self.leader), look) {
            if self.changes.recv().await.is_none() {
                return;
            }
        }
    }

    /// Passes a renewed lease on to the supervisor.
    pub(super) fn renew(&self, lease: &Lease) {
        if let (Some(kept), Some(deadline)) = (&self.kept, deadline(lease)) {
            kept.renew(deadline);
        }
    }

    /// Asks all of it to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Kills the rest of the group, and returns how the program ended.
    pub(super) async fn reap(mut self) -> io::Result<ExitStatus> {
        self.kill();
        self.child.wait().await
    }

    fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.kept = None;
    }

    fn signal(&self, signal: Signal) {
        // There is no id once it is reaped. An error means that no process is left.
        if self.child.id().is_some() {
            let _nobody = kill_process_group(self.leader, signal);
        }
    }
}

/// Returns when the supervisor has to act, if this process cannot.
fn deadline(lease: &Lease) -> Option<Deadline> {
    Some(Deadline::after(lease.stops_in()?, lease.gone_in()?))
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
