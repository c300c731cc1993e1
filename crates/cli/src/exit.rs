//! [`Exit`]: the exit codes of all commands.

use std::process::ExitCode;

/// The exit codes of every command.
///
/// | code | meaning |
/// |---|---|
/// | 0 | success |
/// | 1 | the operation failed, or a check found an error |
/// | 2 | usage or validation error; nothing was changed |
/// | 3 | not found |
/// | 4 | not authenticated or not allowed |
/// | 5 | conflict |
/// | 6 | waited for a run, and it failed |
/// | 7 | timed out, or the server cannot be reached |
/// | 130 | interrupted |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The command succeeded.
    Success = 0,
    /// The command failed for another reason.
    Failed = 1,
    /// The command line, an expression or a file is not valid.
    Usage = 2,
    /// The named object does not exist.
    NotFound = 3,
    /// The token is missing or not valid, or its role is too low.
    Denied = 4,
    /// The object has changed in the meantime, or another run is active.
    Conflict = 5,
    /// The run that the command waited for failed.
    RunFailed = 6,
    /// The server cannot be reached, or a wait timed out.
    Unreachable = 7,
    /// The user interrupted the command.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
