//! A minute in which many jobs fire at once: which they are, and how jitter would spread them. Nothing changes before the
//! effect was seen.

use std::collections::BTreeMap;
use std::time::Duration;

use askama::Template;
use axum::http::Method;
use everbell::JobRow;
use everbell_core::store::{JobFilter, JobSort};
use everbell_core::{JobStatus, fire_at};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::ahead::{Ahead, Known};
use super::{counted_jobs, org_schedules};
use crate::chart::counted;
use crate::clock::Clock;
use crate::markup::url_part;
use crate::{Frame, Section, UiRequest, UiResponse};
use everbell_http::access::{Role, expect_role};
use everbell_http::api::job_history::moment;
use everbell_http::internal_call::InternalCall;
use everbell_http::problem::Problem;
use everbell_wire::elapsed::took;
use everbell_wire::form::{Field, Kind, optional, required};

/// The jitter that can be chosen: as the API writes it, in words, in seconds.
const CHOICES: [(&str, &str, u64); 5] = [
    ("PT1M", "1 minute", 60),
    ("PT5M", "5 minutes", 300),
    ("PT10M", "10 minutes", 600),
    ("PT30M", "30 minutes", 1_800),
    ("PT1H", "1 hour", 3_600),
];
const DEFAULT_CHOICE: usize = 2;
const JITTER: Kind = Kind::Word(&["PT1M", "PT5M", "PT10M", "PT30M", "PT1H"]);
/// The most jobs that are changed at once.
const MAX_CHANGED: usize = 200;
const MINUTE: SignedDuration = SignedDuration::from_mins(1);

pub(crate) const QUERY: &[Field] = &[
    required("at", Kind::Time, "A time in the minute."),
    optional("jitter", JITTER, "The jitter whose effect is shown; 10 minutes if absent."),
];

#[derive(Template)]
#[template(path = "timeline_herd.html")]
struct HerdPage {
    frame: Frame,
    /// The minute, for the address and for people.
    at: String,
    minute: String,
    chosen: &'static str,
    /// The jitter in words.
    within: &'static str,
    lines: Vec<Line>,
    /// How many runs start in the minute, and how many in the busiest one with the jitter.
    before: String,
    after: String,
    /// How many jobs would change.
    changing: usize,
    /// Jobs that were not changed, and why.
    failed: Vec<(String, String)>,
    /// The reason why the actor may not change jobs.
    no_make: Option<String>,
}

/// A job that fires in the minute.
struct Line {
    key: String,
    part: String,
    /// For how many orgs, of a job that fires for each.
    orgs: Option<u64>,
    now: String,
    /// When it would fire; `None` if it has as much jitter already.
    then: Option<String>,
    /// The jitter that it has.
    jitter: Option<String>,
}

/// The fires of a job in the minute.
struct Fires {
    job: JobRow,
    at: Vec<Timestamp>,
    orgs: u64,
}

impl Fires {
    fn runs(&self) -> u64 {
        self.at.len() as u64 + self.orgs
    }

    /// Whether the jitter would spread it farther than it is.
    fn changes(&self, jitter: Duration) -> bool {
        self.job.job.definition.policies.jitter < jitter
    }
}

/// Shows the jobs of a minute, and the effect of jitter.
pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let mut form = request.query(QUERY);
    let at = moment(&mut form, "at", None)?.ok_or_else(|| Problem::at("parameter", "at", "is required"))?;
    let chosen = choice(form.text("jitter"));
    page(&request, at, chosen, Vec::new()).await
}

fn choice(word: Option<&str>) -> (&'static str, &'static str, u64) {
    CHOICES.into_iter().find(|(own, ..)| Some(*own) == word).unwrap_or(CHOICES[DEFAULT_CHOICE])
}

async fn page(
    request: &UiRequest,
    at: Timestamp,
    (chosen, within, seconds): (&'static str, &'static str, u64),
    failed: Vec<(String, String)>,
) -> Result<UiResponse, Problem> {
    let minute = Timestamp::from_second(at.as_second() - at.as_second().rem_euclid(60)).unwrap_or(at);
    let (clock, jitter) = (request.clock(), Duration::from_secs(seconds));
    let fires = in_minute(request, minute).await?;
    let page = HerdPage {
        frame: request.frame(Section::Timeline, "Jobs that start together").await,
        at: minute.to_string(),
        minute: clock.words(minute, None),
        before: counted(fires.iter().map(Fires::runs).sum(), "run"),
        after: counted(busiest(&fires, minute, jitter), "run"),
        changing: fires.iter().filter(|fires| fires.changes(jitter)).count(),
        lines: fires.iter().map(|fires| line(fires, jitter, within, &clock)).collect(),
        no_make: request.barred(Role::Admin),
        chosen,
        within,
        failed,
    };
    UiResponse::page(&page)
}

/// The jobs that fire in a minute, without those that fire all the time.
async fn in_minute(request: &UiRequest, minute: Timestamp) -> Result<Vec<Fires>, Problem> {
    let end = minute.checked_add(MINUTE).unwrap_or(minute);
    let current = JobFilter { status: vec![JobStatus::Active, JobStatus::Paused], ..JobFilter::default() };
    let (jobs, _) = counted_jobs(request, &JobFilter { sort: JobSort::NextRunAt, ..current }).await?;
    let freezes = request.app.bell.freezes().list().await?;
    let orgs = org_schedules(request, &jobs, end).await?;
    let known = Known { freezes: &freezes, orgs: &orgs, now: request.now };
    let in_minute = |job: &JobRow| {
        let ahead = Ahead::new(job, &known);
        let ahead = ahead.filter(|ahead| !ahead.is_frequent(minute.max(request.now)));
        let (mut at, mut orgs) = (Vec::new(), 0);
        for fire in ahead.iter().flat_map(|ahead| ahead.fires(minute, end)) {
            if fire.orgs.is_none() {
                at.extend(std::iter::repeat_n(fire.at, fire.runs as usize));
            } else {
                let starts = fire.starts().into_iter().filter(|(at, _)| (minute..end).contains(at));
                orgs += starts.map(|(_, runs)| runs).sum::<u64>();
            }
        }
        (at, orgs)
    };
    let fires = jobs.into_iter().map(|job| {
        let (at, orgs) = in_minute(&job);
        Fires { job, at, orgs }
    });
    Ok(fires.filter(|fires| fires.runs() > 0).collect())
}

/// How many of these runs start in the busiest minute if each job has at least this jitter.
fn busiest(fires: &[Fires], minute: Timestamp, jitter: Duration) -> u64 {
    let mut minutes: BTreeMap<i64, u64> = BTreeMap::new();
    let number = |at: Timestamp| at.as_second().div_euclid(60);
    for fires in fires {
        for at in &fires.at {
            *minutes.entry(number(then(&fires.job, *at, jitter))).or_default() += 1;
        }
        // Which orgs they are does not matter: they are spread evenly.
        let spread = if fires.changes(jitter) { jitter.as_secs().div_ceil(60).max(1) } else { 1 };
        for (offset, _) in (0..spread).enumerate().take_while(|_| fires.orgs > 0) {
            *minutes.entry(number(minute) + offset as i64).or_default() += fires.orgs.div_ceil(spread);
        }
    }
    minutes.into_values().max().unwrap_or(0)
}

/// When a fire would happen with this jitter.
fn then(job: &JobRow, at: Timestamp, jitter: Duration) -> Timestamp {
    let definition = &job.job.definition;
    let Ok(spec) = &definition.spec else { return at };
    if definition.policies.jitter >= jitter {
        return at;
    }
    let slot = spec.prev_at_or_before(at).unwrap_or(at);
    fire_at(spec, definition.id, None, slot, jitter)
}

fn line(fires: &Fires, jitter: Duration, within: &str, clock: &Clock) -> Line {
    let definition = &fires.job.job.definition;
    let zone = clock.zone(None);
    let face = |at: Timestamp| at.to_zoned(zone.as_jiff().clone()).strftime("%H:%M:%S").to_string();
    let own = definition.policies.jitter;
    let first = fires.at.first();
    Line {
        key: definition.key.to_string(),
        part: url_part(definition.key.as_str()),
        orgs: (fires.orgs > 0).then_some(fires.orgs),
        now: first.map_or_else(String::new, |at| face(*at)),
        then: fires.changes(jitter).then(|| match first {
            Some(at) => format!("about {}", face(then(&fires.job, *at, jitter))),
            None => format!("spread over {within}"),
        }),
        jitter: (!own.is_zero()).then(|| took(i64::try_from(own.as_millis()).unwrap_or(i64::MAX))),
    }
}

/// Gives the chosen jobs jitter, each as its next version.
pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_role(&request.actor, Role::Admin)?;
    let at = request.sent("at").and_then(|at| at.parse().ok());
    let at: Timestamp = at.ok_or_else(|| Problem::at("parameter", "at", "must be a time"))?;
    let chosen = choice(request.sent("jitter"));
    let (mut changed, mut failed) = (0, Vec::new());
    let keys = request.sent_all("key");
    for key in keys.iter().take(MAX_CHANGED) {
        let job = format!("key:{key}");
        let path = [("jobId", job.as_str())];
        // Without the idempotency key of the form, which is good for one job: a job that has the jitter stays as it is.
        let call = InternalCall::new(Method::PATCH, "/jobs/{jobId}", &path);
        match request.ask::<Value>(call, &json!({ "policies": { "jitter": chosen.0 } })).await {
            Ok(_) => changed += 1,
            Err(problem) => failed.push(((*key).to_owned(), problem.detail.clone())),
        }
    }
    failed.extend(keys.iter().skip(MAX_CHANGED).map(|key| ((*key).to_owned(), "was not reached".to_owned())));
    if failed.is_empty() && changed > 0 {
        let verb = if changed == 1 { "starts" } else { "start" };
        let done = format!("{} now {verb} with up to {} of jitter.", counted(changed, "job"), chosen.1);
        return Ok(UiResponse::done("/timeline", done));
    }
    page(&request, at, chosen, failed).await
}
