//! `everbell doctor`: checks a server from outside, and suggests fixes.

mod checks;

use std::time::Duration;

use clap::Args;
use everbell_client::{Call, JobQuery, Method, Pages, RunQuery};
use everbell_wire as wire;
use everbell_wire::job::JobStatus;
use everbell_wire::run::RunStatus;
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::online::{Format, OnlineArgs};
use super::output::{Mark, Output, printable};
use super::{CliError, Exit, Session};
use crate::clock;

/// The most jobs, and the most runs, that are checked.
const MAX_ITEMS: usize = 1_000;
/// No request starts later than this after the first.
const LAST_REQUEST_AFTER: Duration = Duration::from_secs(8);
/// Together with [`LAST_REQUEST_AFTER`] at most ten seconds.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell doctor
  everbell doctor --json
  everbell doctor --server http://127.0.0.1:7070";

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    online: OnlineArgs,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    Warning,
    Error,
}

/// The result of a check.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Finding {
    /// A stable word for programs.
    check: &'static str,
    level: Level,
    detail: String,
    /// A suggested fix.
    #[serde(rename = "try")]
    next: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, detail: impl Into<String>) -> Finding {
        Finding { check, level: Level::Ok, detail: detail.into(), next: None }
    }

    fn warning(check: &'static str, detail: impl Into<String>, next: impl Into<String>) -> Finding {
        Finding { check, level: Level::Warning, detail: detail.into(), next: Some(next.into()) }
    }

    fn error(check: &'static str, detail: impl Into<String>, next: impl Into<String>) -> Finding {
        Finding { check, level: Level::Error, detail: detail.into(), next: Some(next.into()) }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    ok: bool,
    findings: &'a [Finding],
}

pub(crate) fn run(args: &DoctorArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let args = &args.online;
    let online = OnlineArgs {
        server: args.server.clone(),
        context: args.context.clone(),
        token_file: args.token_file.clone(),
        request_timeout: args.request_timeout.min(REQUEST_TIMEOUT),
        json: args.json,
        output: args.output,
        color: args.color,
        quiet: args.quiet,
    };
    let session = Session::new(&online, now, output)?;
    let mut diagnosis = Diagnosis { session: &session, started_at: clock::wall(), findings: Vec::new() };
    diagnosis.check_everything();
    let findings = diagnosis.findings;
    let ok = findings.iter().all(|finding| finding.level != Level::Error);
    if matches!(session.format, Some(Format::Json | Format::Jsonl)) {
        session.out.json(&Document { ok, findings: &findings })?;
    } else {
        for finding in &findings {
            let mark = match finding.level {
                Level::Ok if session.quiet => continue,
                Level::Ok => Mark::Good,
                Level::Warning => Mark::Warning,
                Level::Error => Mark::Bad,
            };
            let mark = session.out.mark(mark);
            session.out.line(&format!("{mark} {}", printable(&finding.detail)))?;
            if let Some(next) = &finding.next {
                session.out.line(&format!("  {}", printable(next)))?;
            }
        }
    }
    Ok(if ok { Exit::Success } else { Exit::Failed })
}

/// A diagnosis of a server.
struct Diagnosis<'a, 'o> {
    session: &'a Session<'o>,
    started_at: Timestamp,
    findings: Vec<Finding>,
}

impl Diagnosis<'_, '_> {
    fn check_everything(&mut self) {
        let Some(status) = self.status() else { return };
        // The time that counts is the database's.
        let now = status.now;
        let client = std::rc::Rc::clone(&self.session.client);
        let call: Call<()> = client.request(Method::GET, "/readyz").parameter("verbose", "true");
        if let Some(response) = self.ask("readiness", |session| session.client.run(call.exchange())) {
            self.findings.extend(checks::readiness(&response.text));
        }
        let instances = self.ask("instances", |session| session.client.send(session.client.instances().list()));
        let instances = instances.map(|list| list.document.items);
        let since = instances.as_deref().and_then(checks::scheduling_since);
        self.findings.extend(checks::status(&status, since, now));
        let active = JobQuery { status: vec![JobStatus::Active], ..JobQuery::default() };
        let without_timer = JobQuery { scheduled: Some(false), ..active.clone() };
        let without_timer = self.pages("timers", client.jobs().list(&without_timer).read_as());
        self.findings.extend(without_timer.map(|(items, _)| checks::jobs_without_timer(&items, now)));
        self.findings.extend(instances.into_iter().flat_map(|all| checks::instances(&all, now)));
        let targets = self.ask("targets", |session| session.client.send(session.client.targets().list()));
        self.findings.extend(targets.into_iter().flat_map(|list| checks::targets(&list.document.items)));
        let running = RunQuery { status: vec![RunStatus::Running], ..RunQuery::default() };
        let running = self.pages("leases", client.runs().list(&running));
        self.findings.extend(running.map(|(items, _)| checks::leases(&items, since, now)));
        let newest = self.pages("slots", client.runs().list(&RunQuery::default()));
        self.findings.extend(newest.map(|(items, _)| checks::slots(&items)));
        let jobs = self.pages("dst", client.jobs().list(&active).read_as());
        self.findings.extend(jobs.map(|(items, more)| checks::clock_changes(&items, more, now)));
    }

    /// Checks that there is a server, and that it accepts the token.
    fn status(&mut self) -> Option<wire::Status> {
        let server = self.session.client.server();
        let server = match self.session.client.context() {
            Some(context) => format!("{server} (context `{context}`)"),
            None => server.to_owned(),
        };
        let answer = match self.session.client.send(self.session.client.status()) {
            Ok(answer) => answer,
            Err(CliError::Refused(refusal)) => {
                self.findings.push(Finding::ok("server", format!("server {server} answers")));
                let message = CliError::Refused(refusal).to_string();
                let (what, next) =
                    message.split_once("\n  hint: ").unwrap_or((&message, "see `everbell help environment`"));
                self.findings.push(Finding::error("access", what, next));
                return None;
            }
            Err(error) => {
                let message = error.to_string();
                let (what, next) =
                    message.split_once("\n  hint: ").unwrap_or((&message, "check that a server is running there"));
                self.findings.push(Finding::error("server", what, next));
                return None;
            }
        };
        let took = clock::wall().duration_since(self.started_at).as_millis();
        let status = answer.document;
        let wire::Status { version, actor, role, .. } = &status;
        self.findings.push(Finding::ok("server", format!("server {server} answers ({took} ms), everbell {version}")));
        self.findings.push(Finding::ok("access", format!("authenticated as {actor}, {role}")));
        Some(status)
    }

    /// Reads the first items of a list, and whether there are more. A failure becomes a finding.
    fn pages<T: DeserializeOwned>(&mut self, check: &'static str, mut pages: Pages<T>) -> Option<(Vec<T>, bool)> {
        let (mut items, mut has_more) = (Vec::new(), true);
        // The clock is checked before each page.
        while has_more && items.len() < MAX_ITEMS {
            let page = self.ask(check, |session| session.client.run(pages.next()))??;
            items.extend(page.items);
            has_more = page.next_cursor.is_some();
        }
        Some((items, has_more))
    }

    fn ask<T>(&mut self, check: &'static str, question: impl FnOnce(&Session<'_>) -> Result<T, CliError>) -> Option<T> {
        let late = clock::wall().duration_since(self.started_at) > LAST_REQUEST_AFTER.try_into().unwrap_or_default();
        let asked = if late { Err("no time left".to_owned()) } else { Ok(question(self.session)) };
        let why = match asked {
            Ok(Ok(answer)) => return Some(answer),
            Ok(Err(error)) => error.to_string().lines().next().unwrap_or_default().to_owned(),
            Err(why) => why,
        };
        let next = "use a token with a higher role, or try again when the server responds faster";
        self.findings.push(Finding::warning(check, format!("cannot check {check}: {why}"), next));
        None
    }
}
