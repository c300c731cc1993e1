//! Importing a crontab, `CronJobs` of Kubernetes or timers of systemd: the result for each line or object, jobs for the
//! selected ones, and a button that starts them.

mod rows;

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::{JobFilter, JobKey, JobRow, JobStatus, StoreError};
use everbell_core::Zone;
use everbell_core::store::{JobRef, PageRequest};
use serde_json::json;

use self::rows::{Outcome, Row, Wanted, found_in};
use super::job_form::expect_admin;
use super::job_form::suggestions::targets;
use crate::markup::url_part;
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::body::off_workers;
use everbell_http::internal_call::InternalCall;
use everbell_http::problem::Problem;
use everbell_wire::crontab::{self, IMPORTED_LABEL, PAUSE_REASON, SHELL_TARGET, Verdict};
use everbell_wire::import::Kind;
use everbell_wire::job_body::{self, declared};
use everbell_wire::{self as wire, JobBody};

/// The most lines that become jobs at once: a form has no room for more.
const MAX_IMPORTED_LINES: usize = 50;

/// The most jobs that one click starts, as many as a bulk action changes.
const MAX_STARTED_JOBS: u32 = 1_000;

#[derive(Template)]
#[template(path = "import.html")]
struct ImportPage {
    frame: Frame,
    text: String,
    /// Why the text cannot be read.
    text_fault: Option<String>,
    /// `auto`, or the kind that was chosen.
    chosen: String,
    /// The kind of the text.
    kind: Kind,
    /// Whether suspended objects are imported too.
    suspended: bool,
    zone: String,
    zone_fault: Option<String>,
    /// `auto`, `yes` or `no`: whether a user precedes each command.
    system: String,
    /// Why the crontab is read as one with users, if that was detected.
    detected: Option<&'static str>,
    target: String,
    /// Why no job can have this target.
    target_fault: Option<String>,
    /// Whether the person confirms that another target than `shell` runs commands.
    reads_command: bool,
    /// As it was entered, so that another text can still get a name of its own.
    name: String,
    /// The value of the label of the jobs.
    file: String,
    targets: Vec<(String, String)>,
    zones: Vec<&'static str>,
    rows: Vec<Row>,
    /// The blocks of the configuration that mail failures as `MAILTO` did.
    mail: Option<String>,
    /// Lines that have no room.
    left_out: usize,
    made: usize,
    /// How many imported jobs were started.
    started: Option<u64>,
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_admin(&request)?;
    let page = read(&request, request.choices.mine.name()).await?;
    UiResponse::page(&page)
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_admin(&request)?;
    let mut page = read(&request, request.sent("zone").unwrap_or("UTC")).await?;
    if request.sent("do") == Some("start") {
        page.started = Some(start(&request, &page.file).await?);
        return UiResponse::page(&page);
    }
    if page.rows.is_empty() && page.zone_fault.is_none() && page.text_fault.is_none() {
        page.text_fault = Some("the text has no job: no line, no object and no timer to import".to_owned());
    }
    if page.zone_fault.is_some() || page.target_fault.is_some() || page.text_fault.is_some() {
        return UiResponse::with_status(&page, StatusCode::BAD_REQUEST);
    }
    let (target, file) = (page.target.clone(), page.file.clone());
    let (creates, is_first) = (request.sent("do") == Some("create"), request.sent("read").is_none());
    for row in &mut page.rows {
        let Some(job) = &mut row.job else { continue };
        let creates = creates && job.selected;
        let outcome = if creates {
            created(&request, row.number, job, (&target, &file)).await?
        } else {
            check(&request, job).await?
        };
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

/// Reads the pasted text and the choices made for each line or object.
async fn read(request: &UiRequest, zone: &str) -> Result<ImportPage, Problem> {
    let targets = targets(request).await?;
    let text = request.sent("text").unwrap_or_default().replace("\r\n", "\n");
    let found = Zone::get(zone);
    let target = request.sent("target").unwrap_or(SHELL_TARGET).to_owned();
    let reads_command = request.sent("reads").is_some();
    let target_fault = target_fault(&target, reads_command, &targets);
    let chosen = request.sent("kind").and_then(|word| Kind::ALL.into_iter().find(|kind| kind.word() == word));
    let kind = chosen.unwrap_or_else(|| Kind::detect(&text));
    let (system, detected) = match kind {
        Kind::Crontab => {
            let system = request.sent("system").filter(|word| ["yes", "no"].contains(word)).unwrap_or("auto");
            (system, crontab::system_reason(None, &text).filter(|_| system == "auto"))
        }
        Kind::CronJob | Kind::Timers => ("auto", None),
    };
    let has_users = system == "yes" || detected.is_some();
    let (suspended, now) = (request.sent("suspended").is_some(), request.app.bell.now());
    let (mut rows, mail, text_fault) = match &found {
        Ok(zone) => {
            let (pasted, zone) = (text.clone(), zone.clone());
            match off_workers(text.len(), move || Ok(found_in(&pasted, kind, &zone, (has_users, suspended), now)))
                .await?
            {
                Ok((rows, mail)) => (rows, mail, None),
                Err(why) => (Vec::new(), None, Some(why)),
            }
        }
        Err(_) => (Vec::new(), None, None),
    };
    for row in &mut rows {
        row.choose(request);
    }
    let jobs = rows.iter().filter(|row| row.job.is_some()).count();
    if jobs > MAX_IMPORTED_LINES {
        let end =
            rows.iter().enumerate().filter(|(_, row)| row.job.is_some()).nth(MAX_IMPORTED_LINES).map(|(end, _)| end);
        rows.truncate(end.unwrap_or(MAX_IMPORTED_LINES));
    }
    let name = request.sent("file").map(str::trim).unwrap_or_default();
    Ok(ImportPage {
        frame: request.frame(Section::Jobs, "Import jobs").await,
        name: name.to_owned(),
        file: file_label(name, &text, kind),
        text,
        text_fault,
        chosen: chosen.map_or("auto", Kind::word).to_owned(),
        kind,
        suspended,
        zone: zone.to_owned(),
        zone_fault: found.err().map(|error| error.to_string()),
        system: system.to_owned(),
        detected,
        target,
        target_fault,
        reads_command,
        targets,
        zones: Zone::names().collect(),
        mail,
        rows,
        left_out: jobs.saturating_sub(MAX_IMPORTED_LINES),
        made: 0,
        started: None,
    })
}

/// The label of the jobs: the name in the form, or the kind, as the command line calls standard input.
fn file_label(name: &str, text: &str, kind: Kind) -> String {
    match name {
        "" if text.is_empty() => String::new(),
        "" => kind.word().to_owned(),
        name => crontab::file_label(name),
    }
}

impl ImportPage {
    /// Whether the target is one to choose.
    fn is_served(&self) -> bool {
        self.targets.iter().any(|(label, _)| *label == self.target)
    }

    /// The head of the column that says what a row is about.
    fn column(&self) -> &'static str {
        match self.kind {
            Kind::Crontab => "Line",
            Kind::CronJob => "Object",
            Kind::Timers => "Timer",
        }
    }

    fn jobs(&self) -> usize {
        self.rows.iter().filter(|row| row.job.is_some()).count()
    }
}

/// Returns why the commands would not run with a target: once, and not for every line.
fn target_fault(target: &str, reads_command: bool, targets: &[(String, String)]) -> Option<String> {
    let is_served = targets.iter().any(|(label, _)| label == target);
    match (target == SHELL_TARGET, is_served) {
        (true, true) => None,
        (true, false) => Some(
            "No live instance serves the target `shell`. Set `allow = true` in `[shell]` of the configuration, then \
             run `everbell reload`."
                .to_owned(),
        ),
        (false, false) => Some(format!("No live instance serves the target `{target}`.")),
        (false, true) if reads_command => None,
        (false, true) => Some(format!(
            "`{target}` is not the built-in target `shell`, so the commands would not run. Confirm below if it runs \
             `command` of its payload."
        )),
    }
}

/// Checks whether a job could be created. Each key is looked up separately, because there are few.
async fn check(request: &UiRequest, job: &Wanted) -> Result<Outcome, Problem> {
    let key = &job.key;
    let checked = match JobKey::new(key) {
        Ok(key) => key,
        Err(invalid) => return Ok(Outcome::Refused(format!("key {}", invalid.reason))),
    };
    Ok(match request.jobs().get(JobRef::Key(checked)).await {
        Ok(row) if row.job.state.status != JobStatus::Retired => {
            Outcome::Refused(format!("Job `{key}` already exists and is {}.", row.job.state.status))
        }
        Ok(_) | Err(StoreError::NotFound { .. }) => Outcome::Fine,
        Err(error) => return Err(error.into()),
    })
}

/// Creates one job, paused. What was sent twice is done once, line by line.
async fn created(
    request: &UiRequest,
    number: usize,
    job: &Wanted,
    (target, file): (&str, &str),
) -> Result<Outcome, Problem> {
    let definition = match declared(&job.draft(target, file), request.app.bell.now()) {
        Ok(definition) => definition,
        Err(why) => return Ok(Outcome::Refused(why)),
    };
    let members = job_body::body(&definition).as_object().cloned().unwrap_or_default();
    let body = JobBody::from(members).with("pauseReason", PAUSE_REASON);
    let once = request.sent("once").map(|once| format!("{once}-{number}"));
    let call = InternalCall { once: once.as_deref(), ..InternalCall::new(Method::POST, "/jobs", &[]) };
    match request.ask::<wire::Job>(call, &body).await {
        Ok(made) => Ok(Outcome::Made { part: url_part(&made.job_key) }),
        Err(problem) if problem.status().is_client_error() => Ok(Outcome::Refused(problem.detail)),
        Err(problem) => Err(problem),
    }
}

/// Resumes the jobs that were imported under this name and are still paused by the import. Returns how many.
async fn start(request: &UiRequest, file: &str) -> Result<u64, Problem> {
    let filter = JobFilter {
        status: vec![JobStatus::Paused],
        label: Some((IMPORTED_LABEL.to_owned(), Some(file.to_owned()))),
        ..JobFilter::default()
    };
    let page = request.jobs().list(&filter, &PageRequest { limit: MAX_STARTED_JOBS, after: None }).await?;
    let is_new = |row: &&JobRow| row.job.state.pause.as_ref().is_some_and(|pause| pause.reason == PAUSE_REASON);
    let keys: Vec<&str> = page.items.iter().filter(is_new).map(|row| row.job.definition.key.as_str()).collect();
    if keys.is_empty() {
        return Ok(0);
    }
    let body = json!({ "action": "resume", "jobKeys": keys, "reason": "imported jobs were started" });
    let call = InternalCall { once: request.sent("once"), ..InternalCall::new(Method::POST, "/jobs/bulk", &[]) };
    Ok(request.ask::<wire::Bulk>(call, &body).await?.changed)
}
