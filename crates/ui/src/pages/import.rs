//! Importing a crontab: the result for each line, and jobs for the selected ones.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::{JobKey, JobStatus, StoreError};
use everbell_core::Zone;
use everbell_core::store::JobRef;
use serde_json::value::to_raw_value;

use super::job_form::expect_admin;
use super::job_form::suggestions::targets;
use crate::markup::url_part;
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::body::off_workers;
use everbell_http::internal_call::InternalCall;
use everbell_http::problem::{Kind, Problem};
use everbell_wire::crontab::{self, Entry, Line, Verdict};
use everbell_wire::{self as wire, JobBody};

/// The most lines that become jobs at once: a form has no room for more.
const MAX_IMPORTED_LINES: usize = 50;

#[derive(Template)]
#[template(path = "import.html")]
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

/// A line and its result.
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
    selected: bool,
}

/// The actual or expected result of a line.
enum Outcome {
    /// It would be made.
    Fine,
    Made {
        part: String,
    },
    Refused(String),
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_admin(&request)?;
    let page = read(&request, request.choices.mine.name()).await?;
    UiResponse::page(&page)
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_admin(&request)?;
    let mut page = read(&request, request.sent("zone").unwrap_or("UTC")).await?;
    if page.zone_fault.is_some() {
        return UiResponse::with_status(&page, StatusCode::BAD_REQUEST);
    }
    let (creates, is_first) = (request.sent("do") == Some("create"), request.sent("read").is_none());
    for row in &mut page.rows {
        let Some(job) = &mut row.job else { continue };
        let creates = creates && job.selected;
        let outcome = if creates { created(&request, row.number, job).await? } else { check(&request, job).await? };
        // What is done is not picked again, and at first only what can be done.
        job.selected &= match outcome {
            Outcome::Fine => true,
            Outcome::Made { .. } => false,
            Outcome::Refused(_) => !is_first,
        };
        row.outcome = Some(outcome);
    }
    page.made = page.rows.iter().filter(|row| matches!(row.outcome, Some(Outcome::Made { .. }))).count();
    UiResponse::page(&page)
}

/// Reads the pasted crontab and the choices made for each line.
async fn read(request: &UiRequest, zone: &str) -> Result<ImportPage, Problem> {
    let targets = targets(request).await?;
    let text = request.sent("crontab").unwrap_or_default().replace("\r\n", "\n");
    let found = Zone::get(zone);
    let usual = request.sent("target").or(targets.first().map(|(label, _)| label.as_str())).unwrap_or_default();
    let system = request.sent("system").is_some();
    let mut rows = Vec::new();
    if let Ok(zone) = &found {
        let (pasted, zone) = (text.clone(), zone.clone());
        let lines = off_workers(text.len(), move || {
            crontab::check_length(&pasted).map_err(|reason| Problem::new(Kind::InvalidInput, reason))?;
            Ok(crontab::read(&pasted, &zone, system))
        });
        rows = lines.await?.into_iter().map(|line| Row::new(request, line, usual)).collect();
    }
    let jobs = rows.iter().filter(|row| row.job.is_some()).count();
    if jobs > MAX_IMPORTED_LINES {
        let end =
            rows.iter().enumerate().filter(|(_, row)| row.job.is_some()).nth(MAX_IMPORTED_LINES).map(|(end, _)| end);
        rows.truncate(end.unwrap_or(MAX_IMPORTED_LINES));
    }
    Ok(ImportPage {
        frame: request.frame(Section::Jobs, "Import crontab").await,
        text,
        zone: zone.to_owned(),
        zone_fault: found.err().map(|error| error.to_string()),
        system,
        target: usual.to_owned(),
        targets,
        zones: Zone::names().collect(),
        rows,
        left_out: jobs.saturating_sub(MAX_IMPORTED_LINES),
        made: 0,
    })
}

impl Row {
    fn new(request: &UiRequest, line: Line, usual: &str) -> Row {
        let Line { number, verdict, entry, detail } = line;
        // The first time, every line is picked.
        let chosen = request.sent("read").is_some();
        let selection = request.sent_all("pick");
        let job = entry.map(|entry| Wanted {
            key: request.sent(&format!("key-{number}")).unwrap_or(&entry.key).to_owned(),
            target: request.sent(&format!("target-{number}")).unwrap_or(usual).to_owned(),
            selected: !chosen || selection.contains(&number.to_string().as_str()),
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

/// Checks whether a job could be created. Each key is looked up separately, because there are few.
async fn check(request: &UiRequest, job: &Wanted) -> Result<Outcome, Problem> {
    let key = match JobKey::new(&job.key) {
        Ok(key) => key,
        Err(invalid) => return Ok(Outcome::Refused(format!("key {}", invalid.reason))),
    };
    match request.jobs().check_target(&job.target).await {
        Err(StoreError::Invalid(invalid)) => return Ok(Outcome::Refused(invalid.reason)),
        answer => {
            answer?;
        }
    }
    Ok(match request.jobs().get(JobRef::Key(key)).await {
        Ok(row) if row.job.state.status != JobStatus::Retired => {
            Outcome::Refused(format!("Job `{}` already exists and is {}.", job.key, row.job.state.status))
        }
        Ok(_) | Err(StoreError::NotFound { .. }) => Outcome::Fine,
        Err(error) => return Err(error.into()),
    })
}

/// Makes one job. What was sent twice is done once, line by line.
async fn created(request: &UiRequest, number: usize, job: &Wanted) -> Result<Outcome, Problem> {
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
    let once = request.sent("once").map(|once| format!("{once}-{number}"));
    let call = InternalCall { once: once.as_deref(), ..InternalCall::new(Method::POST, "/jobs", &[]) };
    match request.ask::<wire::Job>(call, &body).await {
        Ok(made) => Ok(Outcome::Made { part: url_part(&made.job_key) }),
        Err(problem) if problem.status().is_client_error() => Ok(Outcome::Refused(problem.detail)),
        Err(problem) => Err(problem),
    }
}
