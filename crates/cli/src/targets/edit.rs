//! `everbell targets add|edit|rm`: targets that are kept in the database.

use clap::{Args, ValueEnum};
use everbell_client::wire;
use everbell_wire::body::target::value_from_text;
use everbell_wire::{printable, shell};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::confirm::confirmed;
use crate::error::RefusalContext;
use crate::output::{Mark, Output};
use crate::{CliError, Exit, OnlineArgs, Session};

pub(super) const ADD_EXAMPLES: &str = "\
Examples:
  everbell targets add hook --url https://hooks.example/run --header Authorization=env:HOOK_AUTH
  everbell targets add hook --url env:HOOK_URL --signing-key env:HOOK_KEY --timeout 2m --dry-run
  everbell targets add backup --env DEST=/srv/backup -- /usr/local/bin/backup --all";

pub(super) const EDIT_EXAMPLES: &str = "\
Examples:
  everbell targets edit hook --timeout 5m
  everbell targets edit hook --header X-Team=billing --clear signingKeys --reason 'unsigned now'
  everbell targets edit backup --dry-run -- /usr/local/bin/backup --all --verbose";

pub(super) const RM_EXAMPLES: &str = "\
Examples:
  everbell targets rm hook --yes
  everbell targets rm hook --force --yes
  everbell targets rm hook --yes -o name";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Method {
    Post,
    Put,
    Patch,
    Get,
    Delete,
}

/// The members of a definition.
#[derive(Debug, Args)]
struct DefinitionArgs {
    /// The URL to call, or `env:NAME` or `file:PATH` to read it from. Makes an `http` target.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The HTTP method; default: post.
    #[arg(long, value_name = "METHOD", ignore_case = true)]
    method: Option<Method>,
    /// A header, `NAME=VALUE`, whose value may be `env:NAME` or `file:PATH`; repeatable.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = pair)]
    headers: Vec<(String, String)>,
    /// A key for signatures, as `env:NAME` or `file:PATH`; repeatable, and each key signs.
    #[arg(long = "signing-key", value_name = "REFERENCE")]
    signing_keys: Vec<String>,
    /// Allow addresses of the machine and of private networks, if the configuration does.
    #[arg(long)]
    allow_private: bool,
    /// The working directory of the program.
    #[arg(long, value_name = "PATH")]
    cwd: Option<String>,
    /// The user to run the program as.
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// The group to run the program as.
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// A variable of the program, `NAME=VALUE`, whose value may be `env:NAME` or `file:PATH`; repeatable.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = pair)]
    env: Vec<(String, String)>,
    /// A variable of the server to pass on to the program; repeatable.
    #[arg(long = "pass-env", value_name = "NAME")]
    pass_env: Vec<String>,
    /// Statuses such as `200-299` or exit codes that count as success, separated by commas.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    success: Vec<String>,
    /// Time limit of a run, such as `30s`.
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// Maximum concurrent runs on each instance.
    #[arg(long, value_name = "N")]
    concurrency: Option<u32>,
    /// The program and its arguments, after `--`. Makes a `command` target.
    #[arg(last = true, value_name = "ARGV", conflicts_with = "url")]
    argv: Vec<String>,
}

/// How a definition is written.
#[derive(Debug, Args)]
struct WriteArgs {
    /// Only check the definition, and report whether the server could serve it.
    #[arg(long)]
    dry_run: bool,
    /// The reason, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// The label that jobs name.
    #[arg(value_name = "LABEL")]
    target: String,
    #[command(flatten)]
    definition: DefinitionArgs,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
pub(super) struct EditArgs {
    /// The label of the target.
    #[arg(value_name = "LABEL")]
    target: String,
    #[command(flatten)]
    definition: DefinitionArgs,
    /// Remove a member of the definition, such as `headers` or `signingKeys`; repeatable.
    #[arg(long, value_name = "MEMBER")]
    clear: Vec<String>,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
pub(super) struct RmArgs {
    /// The label of the target.
    #[arg(value_name = "LABEL")]
    target: String,
    /// Delete it even if jobs name it. They do not fire until it is defined again.
    #[arg(long)]
    force: bool,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    online: OnlineArgs,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl DefinitionArgs {
    /// Puts what was given into a definition. Headers and variables are added to those that are there.
    fn put_into(&self, definition: &mut Map<String, Value>) {
        let mut set = |name: &str, value: Value| drop(definition.insert(name.to_owned(), value));
        self.url.iter().for_each(|url| set("url", value_from_text(url)));
        if !self.argv.is_empty() {
            set("argv", json!(self.argv));
        }
        let method = self.method.map(|method| format!("{method:?}").to_ascii_uppercase());
        let texts = [
            ("method", method.as_ref()),
            ("cwd", self.cwd.as_ref()),
            ("user", self.user.as_ref()),
            ("group", self.group.as_ref()),
            ("timeout", self.timeout.as_ref()),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                set(name, json!(text));
            }
        }
        if let Some(runs) = self.concurrency {
            set("concurrency", json!(runs));
        }
        if self.allow_private {
            set("allowPrivate", json!(true));
        }
        if !self.signing_keys.is_empty() {
            set("signingKeys", self.signing_keys.iter().map(|key| value_from_text(key)).collect());
        }
        if !self.pass_env.is_empty() {
            set("passEnv", json!(self.pass_env));
        }
        if !self.success.is_empty() {
            // Exit codes are numbers, and so may statuses be.
            let number =
                |text: &String| text.trim().parse::<i64>().map_or_else(|_| json!(text.trim()), |code| json!(code));
            set("success", self.success.iter().map(number).collect());
        }
        for (name, pairs) in [("headers", &self.headers), ("env", &self.env)] {
            if !pairs.is_empty() {
                let members = definition.entry(name).or_insert_with(|| json!({}));
                for (name, value) in pairs {
                    members[name] = value_from_text(value);
                }
            }
        }
    }
}

pub(super) fn add(args: &AddArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut definition = Map::new();
    let kind = if args.definition.argv.is_empty() { "http" } else { "command" };
    definition.insert("type".to_owned(), json!(kind));
    args.definition.put_into(&mut definition);
    let mut session = Session::new(&args.online, now, output)?;
    write(&mut session, &args.target, definition, Some(0), &args.write)
}

pub(super) fn edit(args: &EditArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let target = session.client.send(session.client.targets().get(&args.target));
    let target = target.with_action(|| format!("edit target `{}`", args.target));
    let target = target.or_hint(404, || "list them: everbell targets".to_owned())?.document;
    let Some(Value::Object(mut definition)) = target.definition else {
        let message = format!("cannot edit target `{}`", printable(&args.target));
        let hint = if target.source == Some(wire::Source::Config) {
            "the configuration file defines it: edit its `[[target]]` block, then run: everbell reload"
        } else {
            "it needs an admin token, and a target that was made with: everbell targets add"
        };
        return Err(CliError::Failed { message, hint: Some(hint.to_owned()) });
    };
    for name in &args.clear {
        definition.remove(name);
    }
    args.definition.put_into(&mut definition);
    write(&mut session, &args.target, definition, target.revision, &args.write)
}

fn write(
    session: &mut Session<'_>,
    label: &str,
    mut definition: Map<String, Value>,
    revision: Option<u32>,
    args: &WriteArgs,
) -> Result<Exit, CliError> {
    args.reason.iter().for_each(|reason| drop(definition.insert("reason".to_owned(), json!(reason))));
    let call = session.client.targets().put(label, &Value::Object(definition), revision, args.dry_run);
    let answer = session.client.send(call).with_action(|| format!("write target `{label}`"));
    let edit = || match revision {
        Some(0) => format!("edit it: everbell targets edit {}", shell(label)),
        _ => "another request has changed it in the meantime: look at it, then edit it again".to_owned(),
    };
    let answer = answer.or_hint(412, edit)?;
    let Some(written) = session.for_people(answer, name_of)? else { return Ok(Exit::Success) };
    let shown = printable(label);
    if written.dry_run {
        let verb = if written.created { "created" } else { "changed" };
        session.done(Mark::Waiting, &format!("Target {shown} would be {verb} (dry run)"))?;
    } else {
        let verb = if written.created { "Created" } else { "Changed" };
        session.done(Mark::Good, &format!("{verb} target {shown}"))?;
    }
    if let Some(problem) = &written.problem {
        session.detail(&printable(&format!("the server that responded cannot serve it: {problem}")))?;
    } else if !written.dry_run {
        session.advise(&format!("try it: everbell targets try {} --wait", shell(label)))?;
    }
    Ok(Exit::Success)
}

fn name_of(written: &wire::TargetWritten) -> &str {
    written.target.as_ref().map_or("", |target| target.target.as_str())
}

pub(super) fn rm(args: &RmArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let label = shell(&args.target);
    let force = if args.force { " --force" } else { "" };
    let command = format!("everbell targets rm {label}{force} --yes");
    if !args.yes && !confirmed(&format!("Delete target {label}?"), &command)? {
        return Ok(Exit::Failed);
    }
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.send(session.client.targets().delete(&args.target, args.force));
    let answer = answer.with_action(|| format!("delete target `{}`", args.target));
    answer.or_hint(404, || "list them: everbell targets".to_owned())?;
    if session.is_for_people(&args.target)? {
        session.done(Mark::Ended, &format!("Deleted target {}", printable(&args.target)))?;
    }
    Ok(Exit::Success)
}
