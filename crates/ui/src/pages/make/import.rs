//! A crontab, line by line: what becomes of each, and the jobs of those that are picked.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::{JobKey, JobStatus, StoreError};
use everbell_core::Zone;
use everbell_core::store::JobRef;
use serde_json::value::to_raw_value;

use super::expect_admin;
use super::offers::targets;
use crate::markup::url_part;
use crate::visit::{Reply, Visit};
use crate::{Frame, Section};
use everbell_http::body::off_workers;
use everbell_http::internal_call::InternalCall;
use everbell_http::problem::{Kind, Problem};
use everbell_wire::crontab::{self, Entry, Line, Verdict};
use everbell_wire::{self as wire, JobBody};

/// The most lines that become jobs at once: a form has no room for more.
const MOST: usize = 50;

#[derive(Template)]
#[template(path = "make/import.html")]
struct ImportPage {
    frame: Frame,
    text: String,
    zone: String,
    zone_fault: Option<String>,
    system: bool,
    /// For lines that say nothing else.
    target: String,
    targets: Vec<(String, String)>,
    zones: Vec<&'static str>,
    rows: Vec<Row>,
    /// Lines that have no room.
    left_out: usize,
    made: usize,
}

/// A line, and what becomes of it.
struct Row {
    number: usize,
    verdict: Verdict,
    detail: String,
    job: Option<Wanted>,
    outcome: Option<Outcome>,
}

/// The job that a line would become.
struct Wanted {
    entry: Entry,
    key: String,
    target: String,
    picked: bool,
}

/// What happened, or would.
enum Outcome {
    /// It would be made.
    Fine,
    Made {
        part: String,
    },
    Refused(String),
}

pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    expect_admin(&visit)?;
    let page = read(&visit, visit.choices.mine.name()).await?;
    Reply::page(&page)
}

pub(crate) async fn send(visit: Visit) -> Result<Reply, Problem> {
    expect_admin(&visit)?;
    let mut page = read(&visit, visit.sent("zone").unwrap_or("UTC")).await?;
    if page.zone_fault.is_some() {
        return Reply::refused(&page, StatusCode::BAD_REQUEST);
    }
    let (creates, is_first) = (visit.sent("do") == Some("create"), visit.sent("read").is_none());
    for row in &mut page.rows {
        let Some(job) = &mut row.job else { continue };
        let creates = creates && job.picked;
        let outcome = if creates { created(&visit, row.number, job).await? } else { foreseen(&visit, job).await? };
        // What is done is not picked again, and at first only what can be done.
        job.picked &= match outcome {
            Outcome::Fine => true,
            Outcome::Made { .. } => false,
            Outcome::Refused(_) => !is_first,
        };
        row.outcome = Some(outcome);
    }
    page.made = page.rows.iter().filter(|row| matches!(row.outcome, Some(Outcome::Made { .. }))).count();
    Reply::page(&page)
}

/// What was pasted, with what was chosen for each line.
async fn read(visit: &Visit, zone: &str) -> Result<ImportPage, Problem> {
    let targets = targets(visit).await?;
    let text = visit.sent("crontab").unwrap_or_default().replace("\r\n", "\n");
    let found = Zone::get(zone);
    let usual = visit.sent("target").or(targets.first().map(|(label, _)| label.as_str())).unwrap_or_default();
    let system = visit.sent("system").is_some();
    let mut rows = Vec::new();
    if let Ok(zone) = &found {
        let (pasted, zone) = (text.clone(), zone.clone());
        let lines = off_workers(text.len(), move || {
            crontab::check_length(&pasted).map_err(|reason| Problem::new(Kind::InvalidInput, reason))?;
            Ok(crontab::read(&pasted, &zone, system))
        });
        rows = lines.await?.into_iter().map(|line| Row::of(visit, line, usual)).collect();
    }
    let jobs = rows.iter().filter(|row| row.job.is_some()).count();
    if jobs > MOST {
        let end = rows.iter().enumerate().filter(|(_, row)| row.job.is_some()).nth(MOST).map(|(end, _)| end);
        rows.truncate(end.unwrap_or(MOST));
    }
    Ok(ImportPage {
        frame: visit.frame(Section::Jobs, "Import a crontab").await,
        text,
        zone: zone.to_owned(),
        zone_fault: found.err().map(|error| error.to_string()),
        system,
        target: usual.to_owned(),
        targets,
        zones: Zone::names().collect(),
        rows,
        left_out: jobs.saturating_sub(MOST),
        made: 0,
    })
}

impl Row {
    fn of(visit: &Visit, line: Line, usual: &str) -> Row {
        let Line { number, verdict, entry, detail } = line;
        // The first time, every line is picked.
        let chosen = visit.sent("read").is_some();
        let picks = visit.sent_all("pick");
        let job = entry.map(|entry| Wanted {
            key: visit.sent(&format!("key-{number}")).unwrap_or(&entry.key).to_owned(),
            target: visit.sent(&format!("target-{number}")).unwrap_or(usual).to_owned(),
            picked: !chosen || picks.contains(&number.to_string().as_str()),
            entry,
        });
        Row { number, verdict, detail, job, outcome: None }
    }
}

impl ImportPage {
    fn jobs(&self) -> usize {
        self.rows.iter().filter(|row| row.job.is_some()).count()
    }
}

/// What making it would say. Each key is looked up by itself: there are few, and no question names many.
async fn foreseen(visit: &Visit, job: &Wanted) -> Result<Outcome, Problem> {
    let key = match JobKey::new(&job.key) {
        Ok(key) => key,
        Err(invalid) => return Ok(Outcome::Refused(format!("key {}", invalid.reason))),
    };
    match visit.jobs().check_target(&job.target).await {
        Err(StoreError::Invalid(invalid)) => return Ok(Outcome::Refused(invalid.reason)),
        answer => answer?,
    }
    Ok(match visit.jobs().get(JobRef::Key(key)).await {
        Ok(row) if row.job.state.status != JobStatus::Retired => {
            Outcome::Refused(format!("Job `{}` is {} already.", job.key, row.job.state.status))
        }
        Ok(_) | Err(StoreError::NotFound { .. }) => Outcome::Fine,
        Err(error) => return Err(error.into()),
    })
}

/// Makes one job. What was sent twice is done once, line by line.
async fn created(visit: &Visit, number: usize, job: &Wanted) -> Result<Outcome, Problem> {
    let mut body = JobBody { payload: to_raw_value(&job.entry.payload()).ok(), ..JobBody::default() };
    for (name, text) in [
        ("jobKey", job.key.as_str()),
        ("target", &job.target),
        ("cronExpression", &job.entry.expression),
        ("timezone", job.entry.zone),
        ("description", &job.entry.command),
    ] {
        body.put(name, text);
    }
    let once = visit.sent("once").map(|once| format!("{once}-{number}"));
    let request = InternalCall { once: once.as_deref(), ..InternalCall::new(Method::POST, "/jobs", &[]) };
    match visit.ask::<wire::Job>(request, &body).await {
        Ok(made) => Ok(Outcome::Made { part: url_part(&made.job_key) }),
        Err(problem) if problem.status().is_client_error() => Ok(Outcome::Refused(problem.detail)),
        Err(problem) => Err(problem),
    }
}
