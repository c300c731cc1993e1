//! The built-in `shell` target: runs the command of the payload as cron would.
//!
//! Off unless the configuration allows it, because it turns the right to create jobs into the right to run commands as
//! the user of the server. A command gets the environment that cron gives: `SHELL`, `HOME`, `LOGNAME`, `USER` and a
//! short `PATH`, then the variables of the configuration and of the payload. It starts in `HOME`. Everything else,
//! from the process group to the limits on output, is as for `command` targets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use everbell::{Action, FailureCode, IntoOutcome, Json, Run, RunError};
use everbell_wire::secret::Secret;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::command::identity::Account;
use super::command::supervisor::Supervisor;
use super::command::{self, Invocation};
use super::redact::Redactor;
use super::{CommandSettings, Problem, ShellSettings};

/// The shell of a payload that names none, as cron's.
const DEFAULT_SHELL: &str = "/bin/sh";
/// The `PATH` of cron.
const DEFAULT_PATH: &str = "/usr/bin:/bin";
/// The most characters of a command in a failure.
const MAX_NAME_CHARS: usize = 80;

/// The payload of a job of this target.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct ShellPayload {
    command: String,
    shell: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    user: Option<String>,
    stdin: Option<String>,
}

impl ShellPayload {
    /// Reads and checks a payload. The error continues "the payload is".
    fn parse(payload: &Json) -> Result<ShellPayload, String> {
        let read: Result<ShellPayload, _> = serde_json::from_str(payload.as_str());
        let read = read.map_err(|error| format!("no shell command: {error}"))?;
        let refused = |member: &str, problem: &str| Err(format!("no shell command: `{member}` {problem}"));
        if read.command.trim().is_empty() {
            return refused("command", "must not be blank");
        }
        if let Some(shell) = read.shell.as_deref().filter(|shell| !Path::new(shell).is_absolute()) {
            return refused("shell", &format!("must be an absolute path such as `/bin/bash`, not `{shell}`"));
        }
        if read.cwd.as_deref().is_some_and(|cwd| !Path::new(cwd).is_absolute()) {
            return refused("cwd", "must be an absolute path");
        }
        // Everything else is held to the rules of `command` targets.
        match command::problems(&read.settings(&ShellSettings::default(), None)).into_iter().next() {
            Some((member, problem)) => refused(if member == "argv" { "command" } else { member }, &problem),
            None => Ok(read),
        }
    }

    /// Returns the program of this payload. `account` is the user that it runs as, if that is known.
    fn settings(&self, given: &ShellSettings, account: Option<&Account>) -> CommandSettings {
        let shell = self.shell.as_deref().unwrap_or(DEFAULT_SHELL);
        let mut env: BTreeMap<String, Secret> = BTreeMap::new();
        let mut set = |name: &str, value: &str| drop(env.insert(name.to_owned(), Secret::new(value)));
        set("PATH", DEFAULT_PATH);
        if let Some(Account { name, home }) = account {
            set("HOME", home);
            set("LOGNAME", name);
            set("USER", name);
        }
        given.env.iter().for_each(|(name, value)| set(name, value.reveal()));
        self.env.iter().for_each(|(name, value)| set(name, value));
        set("SHELL", shell);
        let home = env.get("HOME").map(|home| PathBuf::from(home.reveal())).filter(|home| home.is_dir());
        CommandSettings {
            cwd: self.cwd.as_ref().map(PathBuf::from).or(home),
            user: self.user.clone(),
            env,
            ..CommandSettings::new([shell, "-c", &self.command].map(str::to_owned).to_vec())
        }
    }

    /// The first word of the command. The rest may hold a password, and many people can read failures.
    fn name(&self) -> String {
        let word = self.command.split_whitespace().next().unwrap_or_default();
        match word.char_indices().nth(MAX_NAME_CHARS) {
            Some((end, _)) => format!("{}…", &word[..end]),
            None => word.to_owned(),
        }
    }
}

/// Refuses a payload that is no command, or whose user is not allowed, when its job is written.
pub(super) fn check_payload(settings: &ShellSettings, payload: &Json) -> Result<(), String> {
    let payload = ShellPayload::parse(payload)?;
    // A user that this machine does not know may exist on the one that runs the command.
    let account = Account::find(payload.user.as_deref()).unwrap_or_default();
    settings.check_user(&payload, account.as_ref()).map_err(|why| format!("not allowed: {why}"))
}

impl ShellSettings {
    /// Refuses a user that is not one of `users`, if there is such a list.
    fn check_user(&self, payload: &ShellPayload, account: Option<&Account>) -> Result<(), String> {
        let Some(allowed) = &self.users else { return Ok(()) };
        let user = account.map(|account| account.name.as_str()).or(payload.user.as_deref());
        if user.is_some_and(|user| allowed.iter().any(|allowed| allowed == user)) {
            return Ok(());
        }
        let (user, allowed) = (user.unwrap_or("the user of the server"), allowed.join(", "));
        Err(format!("`user`: commands may not run as `{user}` here; allowed: {allowed}"))
    }
}

/// Everything that is wrong with the settings.
pub(super) fn problems(settings: &ShellSettings) -> Vec<Problem> {
    // The variables are held to the rules of `command` targets.
    let alike = CommandSettings { env: settings.env.clone(), ..CommandSettings::new(vec![DEFAULT_SHELL.to_owned()]) };
    let mut problems = command::problems(&alike);
    if settings.users.as_ref().is_some_and(|users| users.iter().any(String::is_empty)) {
        problems.push(("users", "must be names of users".to_owned()));
    }
    problems
}

pub(super) fn action(settings: &ShellSettings, supervisor: &Supervisor) -> Action {
    let secrets: Vec<&str> = settings.env.values().map(Secret::reveal).collect();
    let shell = Arc::new(Shell {
        redactor: Redactor::new(secrets),
        settings: settings.clone(),
        supervisor: supervisor.clone(),
    });
    Arc::new(move |run| {
        let shell = Arc::clone(&shell);
        Box::pin(async move { shell.perform(&run).await.into_outcome() })
    })
}

struct Shell {
    settings: ShellSettings,
    supervisor: Supervisor,
    redactor: Redactor,
}

impl Shell {
    async fn perform(&self, run: &Run) -> Result<Option<Box<RawValue>>, RunError> {
        let refused = |why: String| RunError::fail(FailureCode::INVALID_PAYLOAD.as_str(), why).fatal();
        let payload = ShellPayload::parse(run.payload()).map_err(|why| refused(format!("the payload is {why}")))?;
        let account = Account::find(payload.user.as_deref()).map_err(refused)?;
        self.settings.check_user(&payload, account.as_ref()).map_err(refused)?;
        let settings = payload.settings(&self.settings, account.as_ref());
        let (name, input) = (payload.name(), payload.stdin.as_deref().unwrap_or_default().as_bytes());
        let Shell { supervisor, redactor, .. } = self;
        Invocation { settings: &settings, name: &name, input, supervisor, redactor }.perform(run).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(payload: &str) -> Result<ShellPayload, String> {
        ShellPayload::parse(&Json::parse("payload", payload).unwrap())
    }

    #[test]
    fn payload_that_is_no_command_is_refused_with_its_member() {
        for (payload, refusal) in [
            ("{}", "missing field `command`"),
            (r#"{"comand": "x"}"#, "unknown field `comand`, expected one of `command`, `shell`, `env`"),
            (r#"{"command": " "}"#, "`command` must not be blank"),
            (
                r#"{"command": "x", "shell": "bash"}"#,
                "`shell` must be an absolute path such as `/bin/bash`, not `bash`",
            ),
            (r#"{"command": "x", "cwd": "tmp"}"#, "`cwd` must be an absolute path"),
            (r#"{"command": "x", "user": "a:b"}"#, "`user` must be a name or a number"),
            (r#"{"command": "x", "env": {"A=B": "c"}}"#, "`env` `A=B` is not a valid variable name"),
            (r#"{"command": "x", "env": {"EVERBELL_RUN_ID": "c"}}"#, "`env` `EVERBELL_RUN_ID` is reserved"),
            (r#"{"command": "x", "env": {"A": 1}}"#, "invalid type: integer `1`, expected a string"),
            ("\"x\"", "invalid type: string"),
        ] {
            let refused = parse(payload).unwrap_err();
            assert!(refused.starts_with("no shell command: ") && refused.contains(refusal), "{payload}: {refused}");
        }
    }

    #[test]
    fn environment_is_that_of_cron_and_the_payload_decides() {
        let payload =
            parse(r#"{"command": "x", "shell": "/bin/bash", "env": {"PATH": "/opt/bin", "A": "2"}}"#).unwrap();
        let account = Account { name: "ana".to_owned(), home: "/".to_owned() };
        let given = [("A", "1"), ("B", "1")].map(|(name, value)| (name.to_owned(), Secret::new(value)));
        let given = ShellSettings { env: given.into(), users: None };
        let settings = payload.settings(&given, Some(&account));
        let found: Vec<(&str, &str)> =
            settings.env.iter().map(|(name, value)| (name.as_str(), value.reveal())).collect();
        let expected = [
            ("A", "2"),
            ("B", "1"),
            ("HOME", "/"),
            ("LOGNAME", "ana"),
            ("PATH", "/opt/bin"),
            ("SHELL", "/bin/bash"),
            ("USER", "ana"),
        ];
        assert_eq!(found, expected);
        assert_eq!(
            (settings.argv, settings.cwd),
            (["/bin/bash", "-c", "x"].map(str::to_owned).to_vec(), Some("/".into()))
        );
        let plain = parse(r#"{"command": "x"}"#).unwrap().settings(&ShellSettings::default(), None);
        assert_eq!(plain.env["PATH"].reveal(), DEFAULT_PATH);
        assert_eq!((plain.env["SHELL"].reveal(), plain.cwd), (DEFAULT_SHELL, None));
    }

    #[test]
    fn user_that_is_not_allowed_is_refused_when_the_job_is_written() {
        let settings = ShellSettings { env: BTreeMap::new(), users: Some(vec!["nobody".to_owned()]) };
        let check = |payload: &str| check_payload(&settings, &Json::parse("payload", payload).unwrap());
        let refused = check(r#"{"command": "id", "user": "no-such-user"}"#).unwrap_err();
        assert_eq!(refused, "not allowed: `user`: commands may not run as `no-such-user` here; allowed: nobody");
        assert_eq!(check(r#"{"command": "id", "user": "nobody"}"#), Ok(()));
        assert!(check(r#"{"command": "id"}"#).is_err(), "the user of the server is none of them");
        let any = ShellSettings::default();
        assert_eq!(check_payload(&any, &Json::parse("payload", r#"{"command": "id"}"#).unwrap()), Ok(()));
    }

    #[test]
    fn failure_names_the_first_word_of_the_command() {
        assert_eq!(parse(r#"{"command": " dump -psecret\nc"}"#).unwrap().name(), "dump");
        let long = format!(r#"{{"command": "{}"}}"#, "é".repeat(81));
        assert_eq!(parse(&long).unwrap().name(), format!("{}…", "é".repeat(80)));
    }
}
