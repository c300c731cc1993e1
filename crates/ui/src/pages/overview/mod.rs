//! The first page: whether all is well, what is wrong and why, what comes next, what is going on.

pub(crate) mod attention;
mod backfills;
mod causes;
mod charts;
mod concerns;
mod groups;
mod outage;
mod read;
mod start_here;

use std::time::Duration;

use askama::Template;
use everbell::{JobRow, JobStatus, RunRecord, Scope};
use everbell_core::freeze::Freeze;
use jiff::Timestamp;

use self::attention::group_failures;
use self::backfills::BackfillCard;
use self::causes::{Cause, Health};
use self::charts::Day;
use self::groups::GroupCard;
use self::outage::OutageCard;
use self::read::{History, OverviewData};
use self::start_here::StartHere;
use crate::chart::{Gauge, counted, gauge};
use crate::clock::Clock;
use crate::frame::Stuck;
use crate::frozen::Frozen;
use crate::label_groups::GROUP;
use crate::links::Chip;
use crate::markup::{Markup, url_part};
use crate::pages::runs::row::brief_failure;
use crate::{Frame, Links, Section, UiRequest, UiResponse};
use everbell_http::access::Role;
use everbell_http::problem::Problem;
use everbell_wire::elapsed::wait;
use everbell_wire::form::{Field, TEXT, optional};

pub(crate) const QUERY: &[Field] =
    &[optional("label", TEXT, "Only jobs with this label: `name` or `name=value`."), GROUP];

/// More lines are folded.
const MAX_SHOWN_PROBLEMS: usize = 10;
/// More jobs of a line are counted.
const MAX_NAMED_JOBS: usize = 2;

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    links: Links,
    /// The filters that are set.
    chips: Vec<Chip>,
    /// Jobs by the values of a label.
    groups: Option<GroupCard>,
    /// Whether the role may read runs.
    has_runs: bool,
    freezes: Vec<FreezeLine>,
    /// Backfills that are not over.
    backfills: Option<BackfillCard>,
    /// The last outage, if it ended lately.
    outage: Option<OutageCard>,
    frame: Frame,
    health: Health,
    /// Since when the oldest problem is known.
    since: Option<Markup>,
    /// How many runs failed in the last day, and where they are listed.
    failed: Option<(u64, String)>,
    /// `None` if the role may not read runs.
    day: Option<Day>,
    /// Those that are shown, and those that are folded.
    problems: [Vec<ProblemLine>; 2],
    /// Failures of the day that no problem covers.
    others: Vec<ProblemLine>,
    /// `22 other failures`.
    other_failures: String,
    coming: Vec<Coming>,
    running: Vec<Running>,
    /// How many more runs are running.
    more_running: u64,
    start_here: Option<StartHere>,
    no_act: Option<String>,
    no_make: Option<String>,
    top_card: Markup,
}

/// One problem: whose, why, how often, since when, and what can be done.
struct ProblemLine {
    /// The class and icon, and a word.
    sign: (&'static str, &'static str),
    /// Names and addresses.
    names: Vec<(String, String)>,
    /// How many more jobs have it.
    more: usize,
    /// All of the reason, and what is worth a line.
    reason: String,
    brief: String,
    count: String,
    since: Option<Timestamp>,
    since_text: Option<Markup>,
    /// A list of its runs.
    runs: Option<String>,
    /// The form that pauses its job.
    pause: Option<String>,
}

impl ProblemLine {
    fn new(sign: (&'static str, &'static str), name: String, href: String, reason: String) -> ProblemLine {
        ProblemLine {
            sign,
            names: vec![(name, href)],
            more: 0,
            brief: reason.clone(),
            reason,
            count: String::new(),
            since: None,
            since_text: None,
            runs: None,
            pause: None,
        }
    }

    fn of_job(sign: (&'static str, &'static str), row: &JobRow, reason: String) -> ProblemLine {
        let key = row.job.definition.key.to_string();
        let part = url_part(&key);
        let pause = (row.job.state.status == JobStatus::Active).then(|| format!("/jobs/{part}/pause"));
        ProblemLine { pause, ..ProblemLine::new(sign, key, format!("/jobs/{part}"), reason) }
    }

    fn since(self, at: Option<Timestamp>, clock: &Clock) -> ProblemLine {
        ProblemLine { since: at, since_text: at.map(|at| clock.away(at)), ..self }
    }

    /// The names that fit into a line.
    fn named(keys: &[String]) -> (Vec<(String, String)>, usize) {
        let names = keys.iter().take(MAX_NAMED_JOBS).map(|key| (key.clone(), format!("/jobs/{}", url_part(key))));
        (names.collect(), keys.len().saturating_sub(MAX_NAMED_JOBS))
    }
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
    at: String,
    away: Markup,
    text: String,
    /// The freeze that keeps it from happening.
    frozen: Option<Frozen>,
}

struct Running {
    id: String,
    name: String,
    part: Option<String>,
    since: Markup,
    gauge: Markup,
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let form = request.query(QUERY);
    let label = form.text("label");
    let read = OverviewData::load(&request, label).await?;
    let (clock, frame) = (request.clock(), request.frame(Section::Overview, "Overview").await);
    let freezes = request.app.bell.freezes().list().await?;
    let history = read.history.as_ref();
    let failures = group_failures(history.map_or(&[][..], |history| &history.failed));
    let causes = causes::causes(&read.failing, &failures, history.is_some());
    let others = causes::others(failures, &causes);
    let from = day_start(request.now);
    let mut problems = problems(&read, &causes, frame.stuck.as_ref(), &clock);
    // The runs of an hour are not counted by label.
    let runs = history.filter(|_| label.is_none()).map(|history| charts::totals(&history.buckets));
    let nav_counts = frame.nav_counts.as_ref();
    let (jobs, errored) = match read.labeled_jobs {
        Some(jobs) => (Some(jobs), read.errored.len() as u64),
        None => (nav_counts.map(|counts| counts.jobs), nav_counts.map_or(0, |counts| counts.errored)),
    };
    let health = concerns::health(&read, problems.len(), errored, jobs, runs);
    let since = problems.iter().filter_map(|line| line.since).min();
    let running_now = nav_counts.map_or(0, |counts| counts.running);
    let links = Links::new("/", &request.query);
    let listed = history.map_or(0, |history| history.running.len() as u64);
    let whole = label.is_none();
    let page = Overview {
        chips: links.chips(&[("label", "Label"), ("group", "Grouped by")]),
        groups: match form.text("group") {
            Some(name) => Some(GroupCard::load(&request, name).await?),
            None => None,
        },
        links,
        has_runs: history.is_some(),
        // Of a list that was cut, the oldest is not known.
        since: since.filter(|_| !health.more && !history.is_some_and(|own| own.more_failed)).map(|at| clock.short(at)),
        health,
        failed: runs.filter(|runs| runs.1 > 0).map(|runs| (runs.1, format!("/runs?status=failed&from={from}"))),
        day: history.filter(|_| whole).map(|history| charts::day(&history.buckets, &clock)),
        other_failures: causes::other_failures(&others, history.is_some_and(|own| own.more_failed)),
        others: others.iter().map(|group| other_line(group, &clock, &from)).collect(),
        coming: read.next.iter().filter_map(|row| coming(row, &freezes, &clock)).collect(),
        running: history.map_or_else(Vec::new, |history| running(history, &clock)),
        more_running: if history.is_some_and(History::has_more_running) {
            running_now.saturating_sub(listed).max(1)
        } else {
            0
        },
        freezes: freezes.into_iter().map(|freeze| freeze_line(freeze, &clock)).collect(),
        backfills: if whole { backfills::card(&request, &clock).await? } else { None },
        outage: if whole { outage::card(&request, &clock).await? } else { None },
        start_here: match jobs {
            Some(jobs) if whole => StartHere::load(&request, jobs).await?,
            _ => None,
        },
        no_act: request.barred(Role::Operator),
        no_make: request.barred(Role::Admin),
        problems: {
            let folded = problems.split_off(problems.len().min(MAX_SHOWN_PROBLEMS));
            [problems, folded]
        },
        top_card: if whole { crate::pages::top::card(&request).await } else { Markup::from_html(String::new()) },
        frame,
    };
    UiResponse::page(&page)
}

/// Where the day begins, as a part of an address.
fn day_start(now: Timestamp) -> String {
    url_part(&charts::since(now).strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

fn freeze_line(freeze: Freeze, clock: &Clock) -> FreezeLine {
    let jobs = freeze.label_text().map_or_else(|| "all jobs".to_owned(), |label| format!("jobs with {label}"));
    let from = (!freeze.is_in_force(clock.now)).then(|| clock.at(freeze.starts_at, None));
    FreezeLine { jobs, from, until: clock.at(freeze.ends_at, None), reason: freeze.reason }
}

/// Every problem, the worst first.
fn problems(read: &OverviewData, causes: &[Cause], stuck: Option<&Stuck>, clock: &Clock) -> Vec<ProblemLine> {
    let errored = read
        .errored
        .iter()
        .map(|row| ProblemLine::of_job(("warn", "Cannot fire"), row, row.job.state.error.clone().unwrap_or_default()));
    let from = day_start(clock.now);
    let failing = causes.iter().map(|cause| failing_line(cause, clock, &from));
    let unserved = read.unserved.iter().map(|(target, jobs)| {
        let verb = if *jobs == 1 { "does" } else { "do" };
        let reason = format!("no live instance serves this target; {} {verb} not fire", counted(*jobs, "job"));
        ProblemLine::new(("warn", "No instance"), target.clone(), "/targets".to_owned(), reason)
    });
    let (running, too_slow) = read.history.as_ref().map_or((&[][..], &[][..]), |own| (&own.running, &own.too_slow));
    let long = running.iter().filter_map(|run| too_long(run, read.history.as_ref()?, clock));
    let slow = too_slow.iter().map(|(key, count)| {
        let slots = if *count == 1 { "slot was" } else { "slots were" };
        let reason = format!("{count} {slots} skipped in 24 hours because a run was still active");
        ProblemLine::new(("skip", "Too slow"), key.clone(), format!("/jobs/{}", url_part(key)), reason)
    });
    let unarmed =
        read.unarmed.iter().map(|row| ProblemLine::of_job(("off", "No next run"), row, nothing_next(row).to_owned()));
    concerns::stuck_line(read, stuck)
        .into_iter()
        .chain(errored)
        .chain(orgs(read.errored_orgs))
        .chain(failing)
        .chain(concerns::open_lines(read, causes, clock))
        .chain(unserved)
        .chain(long)
        .chain(slow)
        .chain(unarmed)
        .collect()
}

fn failing_line(cause: &Cause, clock: &Clock, from: &str) -> ProblemLine {
    let paused = if cause.paused { "paused; " } else { "" };
    let single = cause.jobs.len() == 1;
    let reason = match &cause.reason {
        Some((_, code, message)) => format!("{paused}{code}: {message}"),
        None if cause.count == 1 => format!("{paused}the last run failed"),
        None => format!("{paused}failed {} times in a row", cause.count),
    };
    let brief = cause.reason.as_ref().map(|(_, code, message)| format!("{paused}{}", brief_failure(code, message)));
    let (names, more) = ProblemLine::named(&cause.jobs);
    let runs = cause.reason.as_ref().map(|(target, code, _)| failed_runs(target, code, from));
    let active = single && !cause.paused;
    let line = ProblemLine {
        sign: ("bad", "Failing"),
        pause: names.first().filter(|_| active).map(|(_, href)| format!("{href}/pause")),
        names,
        more,
        brief: brief.unwrap_or_else(|| reason.clone()),
        reason,
        count: match (cause.reason.is_some(), single) {
            (true, true) if cause.count > 1 => format!("{} in a row", cause.count),
            (true, false) => format!("{} jobs", cause.jobs.len()),
            _ => String::new(),
        },
        since: None,
        since_text: None,
        runs,
    };
    line.since(cause.since, clock)
}

/// Where failed runs of the last day are listed.
fn failed_runs(target: &str, code: &str, from: &str) -> String {
    format!("/runs?status=failed&failureCode={}&target={}&from={from}", url_part(code), url_part(target))
}

fn other_line(group: &attention::FailureGroup, clock: &Clock, from: &str) -> ProblemLine {
    let (names, more) = ProblemLine::named(&group.jobs);
    let line = ProblemLine {
        sign: ("bad", "Failed"),
        names,
        more,
        brief: brief_failure(&group.code, &group.message),
        reason: format!("{}: {}", group.code, group.message),
        count: counted(group.count as u64, "run"),
        since: None,
        since_text: None,
        runs: Some(failed_runs(&group.target, &group.code, from)),
        pause: None,
    };
    line.since(Some(group.last), clock)
}

fn nothing_next(row: &JobRow) -> &'static str {
    match row.job.definition.scope {
        Scope::Global => "active, but its schedule has no more runs",
        Scope::PerOrg => "active, but it fires for no org",
    }
}

/// Timers of orgs that cannot fire, as one.
fn orgs(errored: u32) -> Option<ProblemLine> {
    let reason = "a time zone or an override cannot be read".to_owned();
    let name = counted(u64::from(errored), "org timer");
    (errored > 0).then(|| ProblemLine::new(("warn", "Cannot fire"), name, "/orgs?errored=true".to_owned(), reason))
}

fn too_long(run: &RunRecord, history: &History, clock: &Clock) -> Option<ProblemLine> {
    let (key, started) = (run.job_key.as_ref()?, run.started_at?);
    let usual = history.usual(key.as_str())?;
    let elapsed = Duration::try_from(clock.now.duration_since(started)).ok()?;
    let text = |time: Duration| wait(time.as_secs() as i64);
    usual.is_far_beyond(elapsed).then(|| {
        let reason = format!("running for {}; 95% of earlier runs took at most {}", text(elapsed), text(usual.most));
        let line = ProblemLine::new(("run", "Long run"), key.to_string(), format!("/runs/{}", run.id), reason);
        line.since(Some(started), clock)
    })
}

fn coming(row: &JobRow, freezes: &[Freeze], clock: &Clock) -> Option<Coming> {
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
        at: clock.words(at, zone.as_ref()),
        away: clock.away(at),
        text,
        frozen: Frozen::at(freezes, definition, at, clock),
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
