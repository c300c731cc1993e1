//! The server's end of a supervisor process, which never waits.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::SUBCOMMAND;

/// How long a new supervisor may take to read a part of the list.
const READ_TIMEOUT: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// A write of this size to a pipe is written whole or not at all.
pub(super) const ATOMIC_WRITE_BYTES: usize = 4096;

/// A supervisor and the pipe to it.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) child: Child,
    pub(super) pipe: Option<ChildStdin>,
}

impl Process {
    pub(super) fn start() -> io::Result<Process> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg(SUBCOMMAND)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Process::spawn(&mut command)
    }

    pub(super) fn spawn(command: &mut Command) -> io::Result<Process> {
        // Signals of a terminal are for the server, not for the supervisor.
        let mut child = command.process_group(0).spawn()?;
        let pipe = child.stdin.take();
        if let Some(pipe) = &pipe {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Process { child, pipe })
    }

    /// Writes at most [`ATOMIC_WRITE_BYTES`] bytes, whole or not at all, without waiting.
    pub(super) fn write_now(&mut self, text: &[u8]) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.pipe.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(text)
    }

    /// Writes as fast as the supervisor reads.
    pub(super) fn write_patiently(&mut self, text: &[u8]) -> io::Result<()> {
        let pipe = self.pipe.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut left = text;
        while !left.is_empty() {
            match pipe.write(left) {
                Ok(written) => left = &left[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if poll(&mut [PollFd::new(&*pipe, PollFlags::OUT)], Some(&READ_TIMEOUT))? == 0 {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Kills and reaps a useless supervisor before its pipe ends: it would take that for the end of the server, and end
    /// every group.
    pub(super) fn end(mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            tracing::warn!(%error, "could not end a supervisor that does not read");
        }
    }
}
