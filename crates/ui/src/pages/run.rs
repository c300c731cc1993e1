//! A run: its details, timeline, payload, result and output.

pub(crate) mod cancel;
mod neighbours;
pub(crate) mod rerun;
mod steps;

use askama::Template;
use everbell::{JobRow, RunFilter, RunRecord, RunStatus};
use everbell_core::store::{JobRef, PageRequest};
use everbell_core::{SkipReason, Trigger, Zone};
use jiff::{SignedDuration, Timestamp};

use super::runs::period::spelled;
use super::runs::row::{Hosts, JobName, OrgName};
use crate::clock::Clock;
use crate::clock::Face;
use crate::markup::{Markup, url_part};
use crate::pretty::pretty;
use crate::request::{Content, Flash, UiRequest, UiResponse};
use crate::{Frame, Section, badge};
use everbell_http::access::Role;
use everbell_http::problem::{Kind, Problem};
use everbell_wire::elapsed::took;
use steps::Step;

/// How far around a run its neighbours in time are shown.
const NEARBY_WINDOW: SignedDuration = SignedDuration::from_mins(10);

#[derive(Template)]
#[template(path = "run/run.html")]
struct RunPage {
    frame: Frame,
    id: String,
    job: Option<JobName>,
    target: String,
    /// The target as a part of a query.
    target_part: String,
    status: Markup,
    active: bool,
    running: bool,
    skipped: bool,
    notice: Option<Notice>,
    facts: Facts,
    steps: Vec<Step>,
    payload: String,
    result: Option<String>,
    details: Option<String>,
    output: Option<String>,
    around: String,
    previous: Option<String>,
    next: Option<String>,
    /// The reason why the actor may not act.
    no_act: Option<String>,
}

/// The message at the top of the page.
struct Notice {
    /// How it looks.
    tone: &'static str,
    code: Option<String>,
    text: String,
    /// The run in the way.
    blocking: Option<String>,
}

/// The details of a run.
struct Facts {
    trigger: String,
    /// The run of another job whose end started this one.
    upstream: Vec<String>,
    started: Vec<Started>,
    backfill: Option<String>,
    org: Option<OrgName>,
    /// In the zone of the job, in UTC, and the name of the zone.
    slot: Option<(Markup, Markup, String)>,
    /// The scheduled time, if the run was moved.
    moved: Option<Markup>,
    /// The day of its slot, if that moved to another day.
    rolled: Option<String>,
    /// The number of other slots that the run covers.
    folded: u64,
    caught_up: bool,
    attempt: u32,
    /// The number of attempts that count.
    used: u32,
    max_attempts: u32,
    /// The time of the next attempt.
    again: Option<Markup>,
    timeout: Option<String>,
    /// The id of the instance, and its name.
    instance: Option<(String, String)>,
    remote: Option<RemoteFacts>,
    idempotency_key: String,
    trace_id: Option<String>,
}

/// The remote side that works on a run.
struct RemoteFacts {
    /// When the run is lost without another heartbeat.
    lease_until: Option<Markup>,
    deadline: Markup,
    percent: Option<u16>,
    message: Option<String>,
}

impl RemoteFacts {
    fn new(run: &RunRecord, clock: &Clock) -> Option<RemoteFacts> {
        let remote = run.remote.as_ref()?;
        let progress = remote.progress.clone().unwrap_or_default();
        Some(RemoteFacts {
            lease_until: run.lease_until.map(|at| clock.at(at, None)),
            deadline: clock.at(remote.deadline, None),
            percent: progress.permille.map(|permille| permille / 10),
            message: progress.message,
        })
    }
}

/// The run that the path names, and its job if that is still there.
struct RunData {
    run: RunRecord,
    row: Option<JobRow>,
    zone: Option<Zone>,
}

impl RunData {
    async fn load(request: &UiRequest) -> Result<RunData, Problem> {
        let run = request.runs().get(request.to_api_request().run()?).await?;
        let row = match run.job_id {
            Some(job) => Some(request.jobs().get(JobRef::Id(job)).await?),
            None => None,
        };
        let zone = request.app.zone_of(&run).await?;
        Ok(RunData { run, row, zone })
    }

    /// The zone of its job, or of the org that it is for.
    fn zone(&self) -> Option<Zone> {
        self.zone.clone()
    }

    /// Where it is shown.
    fn path(&self) -> String {
        format!("/runs/{}", self.run.id)
    }

    /// The key of its job, or the target of a trial.
    fn name(&self) -> String {
        self.run.job_key.as_ref().map_or_else(|| self.run.target.to_string(), ToString::to_string)
    }
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let found = RunData::load(&request).await?;
    let (run, zone, clock) = (&found.run, found.zone(), request.clock());
    let hosts = Hosts::new(&request.app.bell.instances().await?);
    let (previous, next) = neighbours::load(&request, run).await?;
    let shown = RunPage {
        frame: request.frame(Section::Runs, format!("Run of {}", found.name())).await,
        id: run.id.to_string(),
        job: JobName::new(run),
        target: run.target.to_string(),
        target_part: url_part(run.target.as_str()),
        status: badge::run(run.status),
        active: !run.status.is_terminal(),
        running: run.status == RunStatus::Running,
        skipped: run.status == RunStatus::Skipped,
        notice: notice(&request, run).await?,
        facts: Facts { started: started(&request, run).await?, ..Facts::new(&found, &clock, &hosts) },
        steps: steps::steps(run, &clock, zone.as_ref()),
        payload: pretty(run.payload.as_str()),
        result: run.result.as_ref().map(|result| pretty(result.as_str())),
        details: run.failure.as_ref().and_then(|failure| failure.details.as_ref()).map(|json| pretty(json.as_str())),
        output: run.output.clone(),
        around: around(run.id.time(), &clock.zone(None)),
        previous,
        next,
        no_act: request.barred(Role::Operator),
    };
    UiResponse::page(&shown)
}

/// Downloads the output of a run.
pub(crate) async fn output(request: UiRequest) -> Result<UiResponse, Problem> {
    let run = request.runs().get(request.to_api_request().run()?).await?;
    let Some(output) = run.output else {
        return Err(Problem::new(Kind::NotFound, format!("Run {} has no stored output.", run.id)));
    };
    let response = UiResponse::new(Content::Text("text/plain; charset=utf-8", output));
    Ok(response.header("content-disposition", format!("attachment; filename=\"run-{}.txt\"", run.id)))
}

/// The runs around a time.
fn around(at: Timestamp, zone: &Zone) -> String {
    let bound = |at: Result<Timestamp, _>| at.ok().map(|at: Timestamp| url_part(&spelled(at, zone)));
    let bounds = bound(at.checked_sub(NEARBY_WINDOW)).zip(bound(at.checked_add(NEARBY_WINDOW)));
    bounds.map_or_else(|| "/runs".to_owned(), |(from, to)| format!("/runs?from={from}&to={to}"))
}

async fn notice(request: &UiRequest, run: &RunRecord) -> Result<Option<Notice>, Problem> {
    let plain = |tone, text: String| Notice { tone, code: None, text, blocking: None };
    if let Some(skip) = &run.skip {
        return Ok(Some(match skip {
            SkipReason::Overlap { blocking } => Notice {
                blocking: Some(blocking.to_string()),
                ..plain("warn", "An earlier run was still active, so this run did not start.".to_owned())
            },
            other => plain("warn", format!("This run did not start: {other}.")),
        }));
    }
    let Some(failure) = &run.failure else {
        return Ok(match run.status {
            RunStatus::Pending if run.held => {
                Some(plain("off", "Waiting until the active runs of the job have ended.".to_owned()))
            }
            RunStatus::Running => match &run.cancel_by {
                Some(by) => Some(plain("off", format!("{by} requested a stop{}.", why(request, run).await?))),
                None => None,
            },
            _ => None,
        });
    };
    let (code, text) = (Some(failure.code.as_str().to_owned()), failure.message.clone());
    Ok(Some(match run.status {
        RunStatus::Canceled => plain("off", format!("This run was {text}{}.", why(request, run).await?)),
        RunStatus::Pending | RunStatus::Running => {
            let attempt = run.attempt - u32::from(run.status == RunStatus::Running && run.attempt > 0);
            let ended = match failure.code.as_str() {
                "lost" => "was lost",
                "shutdown" => "was stopped",
                _ => "failed",
            };
            Notice { code, ..plain("warn", format!("Attempt {attempt} {ended}: {text}")) }
        }
        _ => Notice { code, ..plain("bad", text) },
    }))
}

/// Returns the reason of a cancellation. Only operators may read the audit trail.
async fn why(request: &UiRequest, run: &RunRecord) -> Result<String, Problem> {
    if request.barred(Role::Operator).is_some() {
        return Ok(String::new());
    }
    let object = format!("run:{}", run.id);
    let trail = request.app.bell.store().list_audit(Some(&object), &PageRequest { limit: 20, after: None }).await?;
    let reason = trail.items.into_iter().filter(|entry| entry.action == "run.cancel").find_map(|entry| entry.reason);
    Ok(reason.map(|why| format!(": {why}")).unwrap_or_default())
}

impl Facts {
    fn new(found: &RunData, clock: &Clock, hosts: &Hosts) -> Facts {
        let (run, zone) = (&found.run, found.zone());
        let policies = found.row.as_ref().map(|row| &row.job.definition.policies);
        let seconds = |time: std::time::Duration| took(i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
        let (local, utc) = (clock.with(Face::Schedule), clock.with(Face::Utc));
        let slot = run.slot_at.map(|at| {
            let name = zone.as_ref().map_or("UTC", |zone| zone.name()).to_owned();
            (local.day(at, Some(zone.as_ref().unwrap_or(&Zone::utc()))), utc.at(at, None), name)
        });
        Facts {
            trigger: trigger(run),
            upstream: run.trigger.upstream().iter().map(ToString::to_string).collect(),
            started: Vec::new(),
            backfill: match &run.trigger {
                Trigger::Backfill(id) => Some(id.to_string()),
                _ => None,
            },
            org: OrgName::new(run),
            slot,
            moved: run
                .slot_at
                .filter(|slot| *slot != run.scheduled_at)
                .map(|_| clock.at(run.scheduled_at, zone.as_ref())),
            rolled: rolled(found, zone.as_ref()),
            folded: run.folded,
            caught_up: run.catch_up,
            attempt: run.attempt,
            used: run.attempts_used(),
            max_attempts: policies.map_or(1, |policies| policies.max_attempts),
            again: run.next_attempt_at.map(|at| clock.at(at, zone.as_ref())),
            timeout: policies.map(|policies| seconds(policies.timeout)),
            instance: run
                .claimed
                .filter(|_| !run.is_handed_over())
                .map(|(_, id)| (id.to_string(), hosts.name(&id.to_string()))),
            remote: RemoteFacts::new(run, clock),
            idempotency_key: run.idempotency_key(),
            trace_id: run.trace_context.as_ref().map(|context| context.trace_id().to_owned()),
        }
    }
}

/// The day that its slot was moved from, because a calendar excludes it.
fn rolled(found: &RunData, zone: Option<&Zone>) -> Option<String> {
    let slot = found.run.slot_at?;
    let spec = found.row.as_ref()?.job.definition.spec.as_ref().ok()?;
    // Of a run for an org the days are those of its zone.
    let spec = zone.map_or_else(|| spec.clone(), |zone| spec.in_zone(zone.clone()));
    let moved = spec.moved_to(spec.fires_at(slot).filter(|at| *at != slot)?);
    moved.into_iter().find(|moved| moved.slot == slot).map(|moved| moved.day())
}

/// A run that this one started when it ended.
struct Started {
    id: String,
    job: String,
    badge: Markup,
}

async fn started(request: &UiRequest, run: &RunRecord) -> Result<Vec<Started>, Problem> {
    let started = |run: RunRecord| Started {
        id: run.id.to_string(),
        job: run.job_key.as_ref().map(ToString::to_string).unwrap_or_default(),
        badge: badge::run(run.status),
    };
    Ok(request.runs().started_by(run).await?.into_iter().map(started).collect())
}

/// Describes the trigger of a run.
fn trigger(run: &RunRecord) -> String {
    match &run.trigger {
        Trigger::Schedule(expression) if expression == "once" => "schedule, one-time".to_owned(),
        Trigger::Schedule(expression) => format!("schedule, {expression}"),
        Trigger::Manual(actor) => format!("manual, {actor}"),
        Trigger::Backfill(_) => "backfill".to_owned(),
        Trigger::AdHoc(actor) => format!("trial, {actor}"),
        Trigger::After(_) => "another run ended".to_owned(),
        Trigger::AfterAll(_) => "other runs ended".to_owned(),
        other => other.to_string(),
    }
}

/// The active runs of the job of a run. All active ones are few, those of a job are found among them.
async fn active_beside(request: &UiRequest, run: &RunRecord) -> Result<Vec<RunRecord>, Problem> {
    let filter = RunFilter { status: vec![RunStatus::Pending, RunStatus::Running], ..RunFilter::default() };
    let page = request.runs().list(&filter, &PageRequest { limit: 1_000, after: None }).await?;
    let beside = |other: &RunRecord| other.job_key.is_some() && other.job_key == run.job_key && other.org == run.org;
    Ok(page.items.into_iter().filter(beside).collect())
}

/// Back to a run, with what could not be done.
fn back(place: String, text: impl Into<String>) -> UiResponse {
    UiResponse::new(Content::Redirect { to: place, flash: Some(Flash { good: false, text: text.into() }) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_around_a_time_are_a_filter() {
        let at = "2026-11-15T12:00:00Z".parse().unwrap();
        let paris = Zone::get("Europe/Paris").unwrap();
        let expected = "/runs?from=2026-11-15T12%3A50%3A00%2B01%3A00&to=2026-11-15T13%3A10%3A00%2B01%3A00";
        assert_eq!(around(at, &paris), expected);
    }
}
