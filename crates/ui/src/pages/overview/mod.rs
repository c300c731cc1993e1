//! The first page: what needs attention, what is going on, what comes next, how the day went.

pub(crate) mod attention;
mod charts;
mod read;

use std::time::Duration;

use askama::Template;
use everbell::{JobRow, JobStatus, RunRecord, Scope};
use everbell_core::freeze::Freeze;
use jiff::{SignedDuration, Timestamp};

use self::attention::group_failures;
use self::charts::{Day, Tile};
use self::read::{History, MAX_LISTED_CONCERNS, OverviewData};
use crate::chart::{Gauge, gauge};
use crate::clock::Clock;
use crate::markup::{Markup, url_part};
use crate::{Frame, Section, UiRequest, UiResponse};
use everbell_http::access::Role;
use everbell_http::problem::Problem;
use everbell_wire::elapsed::wait;

const DAY: SignedDuration = SignedDuration::from_hours(24);
#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    freezes: Vec<FreezeLine>,
    frame: Frame,
    tiles: Vec<Tile>,
    /// `None` if the role may not read runs.
    day: Option<Day>,
    concerns: Vec<Concern>,
    on_time: u64,
    failures: Vec<Failures>,
    coming: Vec<Coming>,
    running: Vec<Running>,
    no_act: Option<String>,
    no_make: Option<String>,
    none_yet: bool,
    top_card: Markup,
}

/// Something that needs attention.
struct Concern {
    /// The class and icon, and a word.
    sign: (&'static str, &'static str),
    name: String,
    href: String,
    text: String,
    since: Option<Markup>,
    /// A job that could be paused.
    pause: Option<String>,
}

struct Failures {
    target: String,
    code: String,
    message: String,
    count: usize,
    first: Markup,
    last: Markup,
    jobs: Vec<(String, String)>,
    href: String,
    run: String,
}

/// A freeze that is in force, or one that will be.
struct FreezeLine {
    jobs: String,
    from: Option<Markup>,
    until: Markup,
    reason: String,
}

struct Coming {
    key: String,
    part: String,
    at: Markup,
    away: Markup,
    text: String,
}

struct Running {
    id: String,
    name: String,
    part: Option<String>,
    since: Markup,
    gauge: Markup,
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let read = OverviewData::load(&request).await?;
    let (clock, frame) = (request.clock(), request.frame(Section::Overview, "Overview").await);
    let freezes = request.app.bell.freezes().list().await?;
    let living = frame.nav_counts.as_ref().map_or(0, |nav_counts| nav_counts.jobs);
    let concerns = concerns(&read, &clock);
    let history = read.history.as_ref();
    let failed = history.map_or(&[][..], |history| &history.failed);
    let page = Overview {
        tiles: charts::tiles(history, frame.nav_counts.as_ref(), request.now),
        day: history.map(|history| charts::day(&history.buckets, &clock)),
        on_time: living.saturating_sub(concerns.len() as u64),
        failures: group_failures(failed)
            .into_iter()
            .take(MAX_LISTED_CONCERNS as usize)
            .map(|group| failures(group, &clock, request.now))
            .collect(),
        coming: read.next.iter().filter_map(|row| coming(row, &clock)).collect(),
        running: history.map_or_else(Vec::new, |history| running(history, &clock)),
        freezes: freezes.into_iter().map(|freeze| freeze_line(freeze, &clock)).collect(),
        no_act: request.barred(Role::Operator),
        no_make: request.barred(Role::Admin),
        none_yet: frame.nav_counts.as_ref().is_some_and(|nav_counts| nav_counts.jobs == 0),
        top_card: crate::pages::top::card(&request).await,
        concerns,
        frame,
    };
    UiResponse::page(&page)
}

fn freeze_line(freeze: Freeze, clock: &Clock) -> FreezeLine {
    let jobs = freeze.label_text().map_or_else(|| "all jobs".to_owned(), |label| format!("jobs with {label}"));
    let from = (!freeze.is_in_force(clock.now)).then(|| clock.at(freeze.starts_at, None));
    FreezeLine { jobs, from, until: clock.at(freeze.ends_at, None), reason: freeze.reason }
}

/// Everything that needs attention, the worst first.
fn concerns(read: &OverviewData, clock: &Clock) -> Vec<Concern> {
    let of_job = |sign, row: &JobRow, text: String| {
        let key = row.job.definition.key.to_string();
        let part = url_part(&key);
        let active = row.job.state.status == JobStatus::Active;
        Concern {
            sign,
            name: key,
            href: format!("/jobs/{part}"),
            text,
            since: None,
            pause: active.then(|| format!("/jobs/{part}/pause")),
        }
    };
    let errored = read
        .errored
        .iter()
        .map(|row| of_job(("warn", "Cannot fire"), row, row.job.state.error.clone().unwrap_or_default()));
    let failing = read.failing.iter().map(|row| {
        let count = row.job.state.consecutive_failures;
        let last_run = row.last_run.as_ref().filter(|_| read.history.is_some());
        let failure = last_run.and_then(|run| run.failure.as_ref());
        let why =
            failure.map_or_else(String::new, |failure| format!(": {}: {}", failure.code.as_str(), failure.message));
        let times =
            if count == 1 { "the last run failed".to_owned() } else { format!("failed {count} times in a row") };
        let since = last_run.map(|run| clock.away(run.scheduled_at));
        let paused = if row.job.state.status == JobStatus::Paused { "paused; " } else { "" };
        Concern { since, ..of_job(("bad", "Failing"), row, format!("{paused}{times}{why}")) }
    });
    let unserved = read.unserved.iter().map(|(target, jobs)| Concern {
        sign: ("warn", "No instance"),
        name: target.clone(),
        href: "/targets".to_owned(),
        text: format!(
            "no live instance serves this target; {jobs} {} not fire",
            if *jobs == 1 { "job does" } else { "jobs do" }
        ),
        since: None,
        pause: None,
    });
    let (running, too_slow) = read.history.as_ref().map_or((&[][..], &[][..]), |own| (&own.running, &own.too_slow));
    let long = running.iter().filter_map(|run| too_long(run, read.history.as_ref()?, clock));
    let slow = too_slow.iter().map(|(key, count)| Concern {
        sign: ("skip", "Too slow"),
        href: format!("/jobs/{}", url_part(key)),
        text: format!(
            "{count} {} in 24 hours because a run was still active: it runs less often than scheduled",
            if *count == 1 { "slot was skipped" } else { "slots were skipped" }
        ),
        name: key.clone(),
        since: None,
        pause: None,
    });
    let unarmed = read.unarmed.iter().map(|row| of_job(("off", "No next run"), row, nothing_next(row).to_owned()));
    errored
        .chain(orgs(read.errored_orgs))
        .chain(failing)
        .chain(unserved)
        .chain(long)
        .chain(slow)
        .chain(unarmed)
        .collect()
}

fn nothing_next(row: &JobRow) -> &'static str {
    match row.job.definition.scope {
        Scope::Global => "active, but its schedule has no more runs",
        Scope::PerOrg => "active, but it fires for no org",
    }
}

/// Timers of orgs that cannot fire, as one.
fn orgs(errored: u32) -> Option<Concern> {
    let timers = if errored == 1 { "1 org timer".to_owned() } else { format!("{errored} org timers") };
    (errored > 0).then(|| Concern {
        sign: ("warn", "Cannot fire"),
        name: timers,
        href: "/orgs?errored=true".to_owned(),
        text: "a time zone or an override cannot be read".to_owned(),
        since: None,
        pause: None,
    })
}

fn too_long(run: &RunRecord, history: &History, clock: &Clock) -> Option<Concern> {
    let (key, started) = (run.job_key.as_ref()?, run.started_at?);
    let usual = history.usual(key.as_str())?;
    let elapsed = Duration::try_from(clock.now.duration_since(started)).ok()?;
    let text = |time: Duration| wait(time.as_secs() as i64);
    usual.is_far_beyond(elapsed).then(|| Concern {
        sign: ("run", "Long run"),
        name: key.to_string(),
        href: format!("/runs/{}", run.id),
        text: format!("running for {}; 95 % of earlier runs took at most {}", text(elapsed), text(usual.most)),
        since: Some(clock.away(started)),
        pause: None,
    })
}

fn failures(group: attention::FailureGroup, clock: &Clock, now: Timestamp) -> Failures {
    let since = now.checked_sub(DAY).unwrap_or(now);
    let query = format!(
        "status=failed&failureCode={}&target={}&from={}",
        url_part(&group.code),
        url_part(&group.target),
        url_part(&since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
    );
    Failures {
        first: clock.away(group.first),
        last: clock.away(group.last),
        jobs: group.jobs.iter().map(|key| (key.clone(), url_part(key))).collect(),
        href: format!("/runs?{query}"),
        target: group.target,
        code: group.code,
        message: group.message,
        count: group.count,
        run: group.run,
    }
}

fn coming(row: &JobRow, clock: &Clock) -> Option<Coming> {
    let at = row.next_run_at()?;
    let definition = &row.job.definition;
    let zone = definition.spec.as_ref().ok().map(|spec| spec.zone().clone());
    let text = definition
        .spec
        .as_ref()
        .ok()
        .and_then(|spec| spec.expression())
        .map_or_else(|| "once".to_owned(), everbell_core::cron::Expression::describe);
    Some(Coming {
        key: definition.key.to_string(),
        part: url_part(definition.key.as_str()),
        at: clock.at(at, zone.as_ref()),
        away: clock.away(at),
        text,
    })
}

fn running(history: &History, clock: &Clock) -> Vec<Running> {
    history.running.iter().enumerate().map(|(number, run)| running_row(number, run, history, clock)).collect()
}

fn running_row(number: usize, run: &RunRecord, history: &History, clock: &Clock) -> Running {
    let key = run.job_key.as_ref().map(ToString::to_string);
    let started = run.started_at.unwrap_or(run.created_at);
    let name = key.clone().unwrap_or_else(|| format!("trial of {}", run.target));
    let expected = key.as_deref().and_then(|key| history.usual(key)).map(|usual| usual.half.as_millis() as i64);
    let elapsed = clock.now.duration_since(started).as_millis() as i64;
    let picture =
        gauge(&Gauge { id: &format!("gauge-{number}"), job: &name, elapsed_ms: elapsed.max(0), expected_ms: expected });
    Running {
        id: run.id.to_string(),
        part: key.map(|key| url_part(&key)),
        since: clock.since(started),
        gauge: Markup::from_html(picture),
        name,
    }
}
