//! The `command` target: runs a program, never a shell.
//!
//! The payload is on its standard input, the run in its environment; what it prints is the output of the run, and a last
//! line in JSON its result. It ends with everything that it started: see [`group`].

mod environment;
mod failure;
mod group;
pub(super) mod keeper;
mod last_line;

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use everbell::{Action, IntoOutcome, Lease, Run, RunError};
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, Command};

use self::environment::{environment, name_problem};
use self::failure::{MAX_COMPLAINT, failed, not_started, unknown_end};
use self::group::Group;
use self::keeper::Keeper;
use self::last_line::LastLine;
use super::{CommandSettings, Problem, result};

/// How long pipes are read after the program has ended. Its group is gone by then, so whoever still holds them got away.
const DRAIN: Duration = Duration::from_millis(500);

pub(super) fn action(settings: &CommandSettings, keeper: &Keeper) -> Result<Action, Problem> {
    if let Some(problem) = problems(settings).into_iter().next() {
        return Err(problem);
    }
    let shared = Arc::new((settings.clone(), keeper.clone()));
    Ok(Arc::new(move |run| {
        let shared = Arc::clone(&shared);
        Box::pin(async move { perform(&shared.0, &shared.1, &run).await.into_outcome() })
    }))
}

/// Everything that is wrong with the settings. A program that does not exist is found out when a run begins.
pub(super) fn problems(settings: &CommandSettings) -> Vec<Problem> {
    let mut problems: Vec<Problem> = Vec::new();
    if settings.argv.first().is_none_or(String::is_empty) {
        problems.push(("argv", "must begin with a program".to_owned()));
    }
    if settings.argv.iter().any(|argument| argument.contains('\0')) {
        problems.push(("argv", "must not contain NUL".to_owned()));
    }
    if settings.cwd.as_ref().is_some_and(|cwd| cwd.as_os_str().as_encoded_bytes().contains(&0)) {
        problems.push(("cwd", "must not contain NUL".to_owned()));
    }
    problems.extend(settings.env.keys().filter_map(|name| Some(("env", name_problem(name)?))));
    for (name, _) in settings.env.iter().filter(|(_, value)| value.reveal().contains('\0')) {
        problems.push(("env", format!("the value of `{}` must not contain NUL", name.escape_debug())));
    }
    problems.extend(settings.pass_env.iter().filter_map(|name| Some(("pass_env", name_problem(name)?))));
    if settings.success.is_empty() {
        problems.push(("success", "must name at least one exit code, such as 0".to_owned()));
    }
    for code in settings.success.iter().filter(|code| !(0..=255).contains(*code)) {
        problems.push(("success", format!("must be exit codes from 0 to 255: {code} is none")));
    }
    problems
}

async fn perform(settings: &CommandSettings, keeper: &Keeper, run: &Run) -> Result<Option<Box<RawValue>>, RunError> {
    // There is one: the settings were checked.
    let program = settings.argv.first().map_or("", String::as_str);
    let mut command = Command::new(program);
    command.args(settings.argv.iter().skip(1)).env_clear().envs(environment(settings, run));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(folder) = &settings.cwd {
        command.current_dir(folder);
    }
    let lease = run.lease();
    let group = Group::start(&mut command, keeper, &lease);
    let group = group.map_err(|error| not_started(program, settings.cwd.as_deref(), &error))?;
    let mut printed = Printed { said: LastLine::new(result::MAX_BYTES), complained: LastLine::new(MAX_COMPLAINT) };
    let status = attend(group, run, lease, &mut printed).await.map_err(|error| unknown_end(program, &error))?;
    // The keeper ends programs of a server that stood still for too long. Whether one was done before, nobody can tell.
    let may_be_ended = run.lease().stops_in().is_some_and(|left| left.is_zero());
    match status.code() {
        Some(code) if settings.success.contains(&code) && !may_be_ended => {
            Ok(printed.said.text().as_deref().and_then(result::json))
        }
        _ => Err(failed(program, status, printed.complained.text())),
    }
}

/// The ends of what a program prints.
struct Printed {
    said: LastLine,
    complained: LastLine,
}

/// Feeds and reads a program until it has ended. Asked to stop, it is asked in turn; whoever loses patience drops this,
/// and the group with it.
async fn attend(mut group: Group, run: &Run, mut lease: Lease, printed: &mut Printed) -> io::Result<ExitStatus> {
    let (stdin, stdout, stderr) = group.pipes();
    let payload = run.payload().as_str().as_bytes();
    let pipes = async {
        tokio::join!(
            feed(stdin, payload),
            copy(stdout, run, &mut printed.said),
            copy(stderr, run, &mut printed.complained)
        )
    };
    tokio::pin!(pipes);
    let (mut drained, mut asked) = (false, false);
    loop {
        tokio::select! {
            () = group.ended() => break,
            _ = &mut pipes, if !drained => drained = true,
            () = lease.renewed() => group.renew(&lease),
            () = run.canceled(), if !asked => {
                asked = true;
                group.terminate();
            }
        }
    }
    let status = group.reap().await;
    if !drained {
        // What is read until then counts, whether or not all of it came.
        let _late = tokio::time::timeout(DRAIN, pipes).await;
    }
    status
}

/// Writes the payload. A program that does not read all of it does not want it.
async fn feed(stdin: Option<ChildStdin>, payload: &[u8]) {
    if let Some(mut stdin) = stdin {
        let _unwanted = stdin.write_all(payload).await;
    }
}

/// Reads a pipe to its end, into the output of the run.
async fn copy(pipe: Option<impl AsyncRead + Unpin>, run: &Run, last: &mut LastLine) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
        run.write_output(&buffer[..read]);
        last.push(&buffer[..read]);
    }
}
