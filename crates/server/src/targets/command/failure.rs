//! How a program fails: it cannot start, it ends badly, or something ends it.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use everbell::{FailureCode, RunError};
use rustix::io::Errno;
use rustix::process::Signal;
use serde_json::json;

use crate::targets::CommandSettings;

/// The code of a program that could not even begin.
const SPAWN_FAILED: &str = "spawn_failed";

/// The longest last line of what a program complained about that the message of its failure shows.
pub(super) const MAX_LAST_LINE_BYTES: usize = 500;

/// Errors that pass: the machine is short of something, or the program is just being replaced. Another attempt may
/// start.
const PASSING: [Errno; 5] = [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE, Errno::TXTBSY];

/// The user that the program should run as does not exist.
pub(super) fn no_identity(program: &str, why: &str) -> RunError {
    RunError::fail(SPAWN_FAILED, format!("`{program}` cannot start: {why}")).fatal()
}

pub(super) fn not_started(program: &str, settings: &CommandSettings, error: &io::Error) -> RunError {
    if let Some(user) = settings.user.as_ref().filter(|_| Errno::from_io_error(error) == Some(Errno::PERM)) {
        let why = format!(
            "the server may not run it as `{user}`: start the server as root, or give it CAP_SETUID, CAP_SETGID and CAP_KILL"
        );
        return no_identity(program, &why);
    }
    let folder = settings.cwd.as_deref();
    let why = match (error.kind(), folder.filter(|folder| !folder.is_dir())) {
        (_, Some(folder)) => format!("there is no folder {}", folder.display()),
        (io::ErrorKind::NotFound, None) => "there is no such program".to_owned(),
        (io::ErrorKind::PermissionDenied, None) => "it may not be executed".to_owned(),
        (_, None) => error.to_string(),
    };
    let passes = Errno::from_io_error(error).is_some_and(|errno| PASSING.contains(&errno));
    let error = RunError::fail(SPAWN_FAILED, format!("`{program}` cannot start: {why}"));
    if passes { error } else { error.fatal() }
}

pub(super) fn unknown_end(program: &str, error: &io::Error) -> RunError {
    RunError::fail(FailureCode::HANDLER_ERROR.as_str(), format!("cannot determine how `{program}` ended: {error}"))
}

pub(super) fn failed(program: &str, status: ExitStatus, complained: Option<String>) -> RunError {
    let last = complained.map_or_else(String::new, |line| format!(": {line}"));
    if let Some(signal) = status.signal() {
        let name = signal_name(signal);
        let message = format!("`{program}` was ended by {name}{last}");
        return RunError::fail(FailureCode::SIGNAL.as_str(), message)
            .details(json!({ "signal": signal, "name": name }));
    }
    let code = status.code();
    let shown = code.map_or_else(|| "an unknown exit code".to_owned(), |code| format!("the exit code {code}"));
    let message = format!("`{program}` ended with {shown}{last}");
    RunError::fail(FailureCode::EXIT_CODE.as_str(), message).details(json!({ "exitCode": code }))
}

/// `SIGKILL` for 9.
fn signal_name(number: i32) -> String {
    const NAMES: [(Signal, &str); 14] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::SYS, "SIGSYS"),
    ];
    let named = NAMES.iter().find(|(signal, _)| signal.as_raw() == number);
    named.map_or_else(|| format!("signal {number}"), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_passes_is_tried_again() {
        for (errno, said, again) in [
            (Errno::NOENT, "there is no such program", false),
            (Errno::ACCESS, "it may not be executed", false),
            (Errno::TOOBIG, "Argument list too long", false),
            (Errno::NOEXEC, "Exec format error", false),
            (Errno::AGAIN, "Resource temporarily unavailable", true),
            (Errno::MFILE, "Too many open files", true),
        ] {
            let error = not_started("prog", &CommandSettings::new(Vec::new()), &errno.into());
            assert!(error.message().starts_with(&format!("`prog` cannot start: {said}")), "{error}");
            assert_eq!((error.code().as_str(), error.is_retryable()), (SPAWN_FAILED, again), "{error}");
        }
    }

    #[test]
    fn a_user_that_the_server_may_not_become_is_named() {
        let settings = CommandSettings { user: Some("backup".to_owned()), ..CommandSettings::new(Vec::new()) };
        let error = not_started("prog", &settings, &Errno::PERM.into());
        assert!(error.message().contains("the server may not run it as `backup`"), "{error}");
        assert!(!error.is_retryable());
    }

    #[test]
    fn an_end_is_told_with_the_last_complaint() {
        let failed =
            |raw, line: Option<&str>| failed("prog", ExitStatus::from_raw(raw), line.map(str::to_owned)).to_string();
        assert_eq!(failed(3 << 8, None), "exit_code: `prog` ended with the exit code 3");
        assert_eq!(failed(1 << 8, Some("no disk")), "exit_code: `prog` ended with the exit code 1: no disk");
        assert_eq!(failed(9, None), "signal: `prog` was ended by SIGKILL");
        assert_eq!(failed(40, None), "signal: `prog` was ended by signal 40");
    }
}
