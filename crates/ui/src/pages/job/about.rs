//! The first lines about a job: status, schedule, policies in words.

use everbell_core::Source;
use everbell_core::cron::WarningCode;
use everbell_core::freeze::Freeze;
use everbell_wire as wire;

use super::lives;
use crate::badge;
use crate::clock::{Clock, lasted};
use crate::frozen::{Frozen, first_thawed};
use crate::markup::{Markup, url_part};
use crate::pages::action::Subject;
use crate::pages::runs::row::failure_text;

/// A job in short.
pub(super) struct About {
    pub(super) badge: Markup,
    pub(super) living: bool,
    pub(super) schedule: wire::job::Schedule,
    pub(super) once_at: Option<Markup>,
    /// The current local time of the job.
    pub(super) local_now: Markup,
    pub(super) next: Option<(Markup, Markup)>,
    /// The freeze that keeps it from firing then, and the first fire after it.
    pub(super) next_frozen: Option<Frozen>,
    pub(super) after_freeze: Option<(Markup, Markup)>,
    /// The first fire after a pause that ends.
    pub(super) after_pause: Option<(Markup, Markup)>,
    pub(super) moved_from: Option<Markup>,
    pub(super) last: Option<LastRun>,
    pub(super) failures: u32,
    pub(super) pause: Option<PauseLine>,
    pub(super) error: Option<String>,
    /// Those that differ from the defaults, and the others.
    pub(super) policies: (Vec<String>, Vec<String>),
    /// Each as a filter writes it, and as a part of an address.
    pub(super) labels: Vec<(String, String)>,
    pub(super) description: String,
    pub(super) warnings: Vec<String>,
    /// Where the job is declared, if it is.
    pub(super) declared: Option<String>,
    /// Whether it was edited since it was declared.
    pub(super) edited: bool,
}

pub(super) struct LastRun {
    pub(super) id: String,
    pub(super) badge: Markup,
    pub(super) at: Markup,
    pub(super) away: Markup,
    pub(super) took: String,
    /// Why it failed.
    pub(super) reason: Option<String>,
}

/// Why, who, since when, until when; and what passed meanwhile.
pub(super) struct PauseLine {
    pub(super) reason: String,
    pub(super) by: String,
    pub(super) at: Markup,
    pub(super) away: Markup,
    pub(super) until: Option<(Markup, Markup)>,
    /// The number of missed slots; unknown for a per-org job.
    pub(super) missed: Option<u64>,
}

impl About {
    pub(super) fn new(subject: &Subject, clock: &Clock, freezes: &[Freeze]) -> About {
        let (job, zone) = (&subject.row.job, Some(&subject.zone));
        let (definition, state, timer) = (&*job.definition, &job.state, subject.row.timer.as_ref());
        let schedule = wire::job::Schedule::from(definition);
        let pause = state.pause.as_ref().map(|pause| PauseLine {
            reason: pause.reason.clone(),
            by: pause.by.clone(),
            at: clock.at(pause.at, zone),
            away: clock.away(pause.at),
            until: pause.until.map(|until| (clock.at(until, zone), clock.away(until))),
            missed: subject.spec().map(|spec| spec.count_between(pause.at, clock.now)),
        });
        About {
            badge: badge::job(state.status, state.error.is_some()),
            living: lives(state.status),
            once_at: schedule.run_at.map(|at| clock.day(at, zone)),
            local_now: {
                let there = clock.now.to_zoned(subject.zone.as_jiff().clone());
                Markup::from_html(there.strftime("%H:%M").to_string())
            },
            next: subject.row.next_run_at().map(|at| (clock.day(at, zone), clock.away(at))),
            next_frozen: subject.row.next_run_at().and_then(|at| Frozen::at(freezes, definition, at, clock)),
            after_freeze: subject
                .spec()
                .and(subject.row.next_run_at())
                .and_then(|at| first_thawed(freezes, definition, at).filter(|thawed| *thawed != at))
                .map(|at| (clock.day(at, zone), clock.away(at))),
            after_pause: state.pause.as_ref().and_then(|pause| pause.until).and_then(|until| {
                let at = subject.spec()?.next_after(until.max(clock.now))?;
                Some((clock.day(at, zone), clock.away(at)))
            }),
            moved_from: timer.and_then(|timer| timer.rescheduled_from).map(|at| clock.at(at, zone)),
            last: subject.row.last_run.as_ref().map(|run| LastRun {
                id: run.id.to_string(),
                badge: badge::run(run.status),
                at: clock.at(run.scheduled_at, zone),
                away: clock.away(run.scheduled_at),
                took: lasted(run.started_at, run.finished_at),
                reason: failure_text(run),
            }),
            failures: state.consecutive_failures,
            pause,
            error: state.error.clone(),
            policies: wire::Policies::from(definition).split_summary(),
            labels: definition
                .labels
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .map(|label| (label.clone(), url_part(&label)))
                .collect(),
            description: definition.description.clone(),
            warnings: warnings(subject, clock),
            declared: declared(job),
            edited: job.is_edited(),
            schedule,
        }
    }
}

/// Where a job is declared: `in code by billing`.
pub(crate) fn declared(job: &everbell_core::Job) -> Option<String> {
    match (job.definition.source, wire::JobDeclaration::from_job(job)) {
        (Source::Api, _) => None,
        (_, Some(declaration)) => Some(declaration.place()),
        (Source::Config, None) => Some("in the configuration file of a server".to_owned()),
        (Source::Code, None) => Some("in code by a program".to_owned()),
    }
}

/// Returns warnings about the schedule.
fn warnings(subject: &Subject, clock: &Clock) -> Vec<String> {
    let Ok(spec) = &subject.definition().spec else { return Vec::new() };
    // What clocks do is different in each org's time zone.
    let is_own = |code| !subject.is_for_each() || !matches!(code, WarningCode::DstGap | WarningCode::DstFold);
    let warnings = spec.warnings(clock.now).into_iter().filter(|warning| is_own(warning.code));
    warnings.map(|warning| warning.detail).collect()
}
