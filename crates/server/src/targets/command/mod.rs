//! The `command` target: runs a program, never a shell.
//!
//! The payload is on its standard input, the run in its environment; what it prints is the output of the run, and a last
//! line in JSON its result. It ends with everything that it started: see [`group`].

mod environment;
mod failure;
mod group;
pub(super) mod identity;
mod last_line;
pub(super) mod supervisor;

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use everbell::{Action, IntoOutcome, Lease, Run, RunError};
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, Command};

pub(crate) use self::environment::passed_environment;
use self::environment::{environment, name_problem};
use self::failure::{MAX_LAST_LINE_BYTES, failed, no_identity, not_started, unknown_end};
use self::group::Group;
use self::identity::Identity;
use self::last_line::LastLine;
use self::supervisor::Supervisor;
use super::redact::{RedactedStream, Redactor};
use super::{CommandSettings, Problem, result};

/// How long pipes are read after the program has ended. Its group is gone by then, so only processes that escaped it
/// still hold them.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

pub(super) fn action(settings: &CommandSettings, supervisor: &Supervisor) -> Result<Action, Problem> {
    if let Some(problem) = problems(settings).into_iter().next() {
        return Err(problem);
    }
    let program = Arc::new(Program {
        settings: settings.clone(),
        supervisor: supervisor.clone(),
        redactor: Redactor::for_command(settings),
    });
    Ok(Arc::new(move |run| {
        let program = Arc::clone(&program);
        Box::pin(async move { program.perform(&run).await.into_outcome() })
    }))
}

/// Everything that is wrong with the settings. A program that does not exist is found out when a run begins.
pub(crate) fn problems(settings: &CommandSettings) -> Vec<Problem> {
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
    problems.extend(identity::problems(settings));
    problems.extend(settings.env.keys().filter_map(|name| Some(("env", name_problem(name)?))));
    for (name, _) in settings.env.iter().filter(|(_, value)| value.reveal().contains('\0')) {
        problems.push(("env", format!("the value of `{}` must not contain NUL", name.escape_debug())));
    }
    problems.extend(settings.pass_env.iter().filter_map(|name| Some(("pass_env", name_problem(name)?))));
    if settings.success.is_empty() {
        problems.push(("success", "must name at least one exit code, such as 0".to_owned()));
    }
    for code in settings.success.iter().filter(|code| !(0..=255).contains(*code)) {
        problems.push(("success", format!("must be exit codes from 0 to 255, not {code}")));
    }
    problems
}

/// Makes a program run as the user of the settings, or says why that cannot be.
pub(crate) fn run_as(settings: &CommandSettings, command: &mut Command) -> Result<(), String> {
    if let Some(identity) = Identity::resolve(settings)? {
        identity.apply(settings, command);
    }
    Ok(())
}

/// Hides the secrets of the settings in what a program printed.
pub(crate) fn redact(settings: &CommandSettings, printed: &[u8], whole: bool) -> Vec<u8> {
    Redactor::for_command(settings).redact(printed, whole)
}

/// A program that can be run.
struct Program {
    settings: CommandSettings,
    supervisor: Supervisor,
    redactor: Redactor,
}

impl Program {
    async fn perform(&self, run: &Run) -> Result<Option<Box<RawValue>>, RunError> {
        let Program { settings, supervisor, redactor } = self;
        // There is one: the settings were checked.
        let name = settings.argv.first().map_or("", String::as_str);
        let input = run.payload().as_str().as_bytes();
        Invocation { settings, name, input, supervisor, redactor }.perform(run).await
    }
}

/// A program that is started for one run, from its start to its end.
pub(super) struct Invocation<'a> {
    /// Checked settings.
    pub(super) settings: &'a CommandSettings,
    /// The name of the program in the failure of a run that ended badly.
    pub(super) name: &'a str,
    /// Its standard input.
    pub(super) input: &'a [u8],
    pub(super) supervisor: &'a Supervisor,
    pub(super) redactor: &'a Redactor,
}

impl Invocation<'_> {
    /// Runs the program. A last line of its output that is JSON is the result.
    pub(super) async fn perform(&self, run: &Run) -> Result<Option<Box<RawValue>>, RunError> {
        let settings = self.settings;
        let program = settings.argv.first().map_or("", String::as_str);
        let mut command = Command::new(program);
        command.args(settings.argv.iter().skip(1)).env_clear().envs(environment(settings, run));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(folder) = &settings.cwd {
            command.current_dir(folder);
        }
        if let Some(identity) = Identity::resolve(settings).map_err(|why| no_identity(program, &why))? {
            identity.apply(settings, &mut command);
        }
        let lease = run.lease();
        let group = Group::start(&mut command, self.supervisor, &lease);
        let group = group.map_err(|error| not_started(program, settings, &error))?;
        let printed = |most| Printed { last: LastLine::new(most), stream: self.redactor.stream() };
        let (mut said, mut complained) = (printed(result::MAX_BYTES), printed(MAX_LAST_LINE_BYTES));
        let status = attend(group, run, lease, self.input, (&mut said, &mut complained)).await;
        let status = status.map_err(|error| unknown_end(self.name, &error))?;
        // The supervisor ends programs of a server that was suspended for too long. Whether this one had finished is
        // unknown.
        let may_be_ended = run.lease().stops_in().is_some_and(|left| left.is_zero());
        match status.code() {
            Some(code) if settings.success.contains(&code) && !may_be_ended => {
                Ok(said.last.text().as_deref().and_then(result::json))
            }
            _ => Err(failed(self.name, status, complained.last.text())),
        }
    }
}

/// The output of a program to one of its pipes.
struct Printed {
    last: LastLine,
    stream: RedactedStream,
}

impl Printed {
    /// Shows what has no secret in it.
    fn show(&mut self, clean: &[u8], run: &Run) {
        run.write_output(clean);
        self.last.push(clean);
    }
}

/// Feeds and reads a program until it has ended. Passes on a request to stop; dropping this kills the group.
async fn attend(
    mut group: Group,
    run: &Run,
    mut lease: Lease,
    input: &[u8],
    (said, complained): (&mut Printed, &mut Printed),
) -> io::Result<ExitStatus> {
    let (stdin, stdout, stderr) = group.pipes();
    let pipes = async { tokio::join!(feed(stdin, input), copy(stdout, run, said), copy(stderr, run, complained)) };
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
        let _late = tokio::time::timeout(DRAIN_TIMEOUT, pipes).await;
    }
    status
}

/// Writes the input. A program that does not read all of it does not want it.
async fn feed(stdin: Option<ChildStdin>, input: &[u8]) {
    if let Some(mut stdin) = stdin {
        let _unwanted = stdin.write_all(input).await;
    }
}

/// Reads a pipe to its end, into the output of the run.
async fn copy(pipe: Option<impl AsyncRead + Unpin>, run: &Run, printed: &mut Printed) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
        let clean = printed.stream.push(&buffer[..read]);
        printed.show(&clean, run);
    }
    let rest = printed.stream.finish();
    printed.show(&rest, run);
}
