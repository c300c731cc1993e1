//! `everbell jobs edit KEY` without flags: the job as TOML in the editor of the user.

use std::fs::{self, OpenOptions};
use std::io::{IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Command;

use everbell_client::{Response, WithJson};
use everbell_core::Definition;
use everbell_core::cron::Expression;
use everbell_wire as wire;
use everbell_wire::job_body::{body, declared, patch, read_definition};
use everbell_wire::job_toml::block;
use everbell_wire::{JobBody, shell};
use jiff::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;

use super::new_version::report;
use crate::error::{RefusalContext, note};
use crate::output::printable;
use crate::{CliError, Exit, Program, Session};

/// The comment above the job. Lines that begin like this are comments of TOML, so they need not be removed.
const HEADER: &str = "\
# Edit the job, save the file and leave the editor. A file that is empty or unchanged changes nothing.
# Fields that are not here have their defaults.
";

/// Marks the comments that explain why a text was refused.
const ERROR: &str = "# error: ";

/// Opened when neither VISUAL nor EDITOR names an editor.
const DEFAULT_EDITOR: &str = "vi";

/// Whether an editor can be opened: one is named, or there is a terminal for the default one.
pub(super) fn is_available() -> bool {
    named_editor().is_some() || (std::io::stdin().is_terminal() && std::io::stdout().is_terminal())
}

fn named_editor() -> Option<String> {
    let named = |name: &str| std::env::var(name).ok().filter(|text| !text.trim().is_empty());
    named("VISUAL").or_else(|| named("EDITOR"))
}

/// The file that is edited. It is removed unless it is kept.
struct Draft {
    path: PathBuf,
    kept: bool,
}

impl Draft {
    /// Creates a file that only the user can read: payloads may hold secrets.
    fn create(key: &str, text: &str) -> Result<Draft, CliError> {
        let name: String = key.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(60).collect();
        let path = std::env::temp_dir().join(format!("everbell-{name}-{}.toml", std::process::id()));
        let mut options = OpenOptions::new();
        let opened = options.write(true).create_new(true).mode(0o600).open(&path);
        let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| failed(format!("cannot write `{}`: {error}", path.display())))?;
        Ok(Draft { path, kept: false })
    }

    fn write(&self, text: &str) -> Result<(), CliError> {
        fs::write(&self.path, text).map_err(|error| failed(format!("cannot write `{}`: {error}", self.path.display())))
    }

    /// Opens the editor and returns the text that it left.
    fn edit(&self) -> Result<String, CliError> {
        let editor = named_editor().unwrap_or_else(|| DEFAULT_EDITOR.to_owned());
        // The variable may hold flags, as in `code --wait`, so a shell reads it; the path is an argument of its own.
        let status = Command::new("sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(&self.path).status();
        let status = status.map_err(|error| failed(format!("cannot start the editor `{editor}`: {error}")))?;
        if !status.success() {
            return Err(failed(format!("the editor `{}` failed ({status}); nothing was changed", printable(&editor))));
        }
        fs::read_to_string(&self.path)
            .map_err(|error| failed(format!("cannot read `{}`: {error}", self.path.display())))
    }

    /// Leaves the file and says where it is.
    fn keep(mut self, message: &str) {
        self.kept = true;
        note(format!("{message}; your text is in {}", self.path.display()));
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.kept {
            // A file that is gone already is as good.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn failed(message: String) -> CliError {
    CliError::Failed { message, hint: None }
}

/// Opens the editor until the text is a job that the server takes, or nothing is changed.
pub(super) fn edit(
    session: &mut Session<'_>,
    name: &str,
    reason: Option<&str>,
    program: Program,
) -> Result<Exit, CliError> {
    let now = session.now;
    let answer = session.client.send(session.client.jobs().get(name).read_as::<WithJson<wire::Job>>());
    let current = answer.with_action(|| format!("edit job `{name}`")).or_list()?.document;
    let job = &current.document;
    let original =
        read_definition(&current.json, now).and_then(|definition| block(&definition, now)).map_err(|why| {
            let message = format!("job `{}` cannot be written as TOML: {}", printable(&job.job_key), printable(&why));
            let hint = format!("change single fields: everbell jobs edit {} --description TEXT", shell(&job.job_key));
            CliError::Invalid { message, hint: Some(hint) }
        })?;
    let before = parse(&original, job, program, now)?;
    let draft = Draft::create(&job.job_key, &format!("{HEADER}\n{original}"))?;
    let mut refused: Option<String> = None;
    loop {
        let text = without_errors(&draft.edit()?);
        if is_empty(&text) {
            note("the file is empty; nothing was changed");
            return Ok(Exit::Success);
        }
        let tried = parse(&text, job, program, now).and_then(|after| send(session, job, (&before, &after), reason));
        match tried {
            Ok(None) => {
                note("nothing was changed");
                return Ok(Exit::Success);
            }
            Ok(Some(created)) => {
                if let Some(created) = session.for_people(created, |created| &created.job.job_key)? {
                    report(session, &created, true)?;
                }
                return Ok(Exit::Success);
            }
            // The same mistake twice: the user has given up, or the editor is a program.
            Err(error) if error.exit() == Exit::Usage && refused.as_ref() != Some(&text) => {
                error.report();
                draft.write(&format!("{}{text}", in_comments(&error)))?;
                refused = Some(text);
            }
            Err(error) => {
                error.report();
                let message = if error.exit() == Exit::Conflict {
                    changed_meanwhile(session, job)
                } else {
                    "the job was not changed".to_owned()
                };
                draft.keep(&message);
                return Ok(error.exit());
            }
        }
    }
}

/// Reads the text as the one job that is edited.
fn parse(text: &str, job: &wire::Job, program: Program, now: Timestamp) -> Result<Definition, CliError> {
    // The place in an expression says more than the line of the file.
    let drafts = (program.read_jobs)("the edited job", text).map_err(|error| bad_expression(text).unwrap_or(error))?;
    let [draft] = drafts.as_slice() else {
        let message = format!("the file must hold exactly one `[[job]]` block, not {}", drafts.len());
        return Err(CliError::invalid(message));
    };
    if draft.key != job.job_key {
        return Err(CliError::Invalid {
            message: format!("job_key: a job keeps its key, which is `{}`", printable(&job.job_key)),
            hint: Some("create another job with `everbell jobs create`, and retire this one".to_owned()),
        });
    }
    declared(draft, now).map_err(CliError::invalid)
}

/// The error of the cron expression, if that is what is wrong.
fn bad_expression(text: &str) -> Option<CliError> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix("cron_expression")?.trim().strip_prefix('='))?;
    let expression = value.trim().strip_prefix('"')?.split('"').next()?;
    Expression::parse(expression).err().map(CliError::Expression)
}

/// Sends what differs, if anything does. The job must still be the one that was read.
fn send(
    session: &Session<'_>,
    job: &wire::Job,
    (before, after): (&Definition, &Definition),
    reason: Option<&str>,
) -> Result<Option<Response<wire::NewVersion>>, CliError> {
    let Value::Object(mut members) = patch(&body(before), &body(after)) else { return Ok(None) };
    if members.remove("payload").is_none() && members.is_empty() {
        return Ok(None);
    }
    let payload = (before.payload != after.payload).then(|| RawValue::from_string(after.payload.as_str().to_owned()));
    let payload = payload.transpose().map_err(|error| CliError::invalid(format!("payload: {error}")))?;
    let mut body = JobBody { members, payload };
    if let Some(reason) = reason {
        body.put("reason", reason);
    }
    let call = session.client.jobs().create_version(&job.job_key, &body).if_match(job.revision);
    session.client.send(call).with_action(|| format!("edit job `{}`", job.job_key)).map(Some)
}

/// Says who changed the job while it was edited.
fn changed_meanwhile(session: &Session<'_>, job: &wire::Job) -> String {
    let key = printable(&job.job_key);
    match session.client.send(session.client.jobs().get(&job.job_key)) {
        Ok(answer) => {
            let wire::Job { version, updated_by, updated_at, .. } = answer.document;
            let since = crate::times::away(updated_at, session.now);
            format!("job `{key}` was changed by {} ({since}), and is at v{version} now", printable(&updated_by))
        }
        // Why it cannot be read matters less than that the edit was refused.
        Err(_) => format!("job `{key}` has changed in the meantime"),
    }
}

/// Whether a text has no line besides comments.
fn is_empty(text: &str) -> bool {
    text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#'))
}

/// An error as comments above the text that it is about.
fn in_comments(error: &CliError) -> String {
    error.to_string().lines().flat_map(|line| [ERROR, line, "\n"]).collect()
}

fn without_errors(text: &str) -> String {
    text.lines().skip_while(|line| line.starts_with(ERROR)).flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn errors_are_comments_that_go_away() {
    let error = CliError::invalid("job_key: is empty\n  second line");
    let text = format!("{}# mine\n[[job]]\n", in_comments(&error));
    assert!(text.starts_with("# error: job_key: is empty\n# error:   second line\n# mine\n"), "{text}");
    assert_eq!(without_errors(&text), "# mine\n[[job]]\n");
    assert!(is_empty("\n# a\n  # b\n") && !is_empty("# a\nx = 1"));
    let shown = |text: &str| bad_expression(text).map(|error| error.to_string());
    assert!(shown("a = 1\ncron_expression = \"99 8 * * *\"\n").is_some_and(|text| text.contains("\n   ^^ minute: 99")));
    assert_eq!((shown("cron_expression = \"0 8 * * *\""), shown("run_at = \"99\"")), (None, None));
}
