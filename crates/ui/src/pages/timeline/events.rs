//! From jobs, runs and gaps to what has a place on the axis of time. Nothing here reads anything.

use std::collections::HashMap;

use everbell::{JobRow, JobStatus};
use everbell_core::outage::{Absence, Outage};
use everbell_core::store::{RecentRuns, RunSummary};
use everbell_core::{Gap, GapReason, JobId, RunStatus, Scope, Spec};
use jiff::{SignedDuration, Timestamp};

use super::Window;
use crate::chart::{Event, Hatch, Load, Row, What, counted, period};
use crate::markup::url_part;
use crate::pages::overview::attention::Usual;

/// The most slots of a job that are still to come, and the most of one gap.
const MAX_PLANNED_SLOTS: usize = 300;
const MAX_SLOTS_PER_GAP: usize = 100;
/// Pieces of the lane.
const LOAD_PIECES: i64 = 96;

/// Rows, how many of them had more runs than were read, and how many have more fires to come than are drawn.
pub(super) struct Drawn {
    pub(super) rows: Vec<Row>,
    pub(super) cut: usize,
    pub(super) frequent: usize,
    /// The number of per-org jobs, which have no planned runs here.
    pub(super) for_each: usize,
}

pub(super) fn rows(jobs: &[JobRow], summaries: &[RunSummary], gaps: &[(JobId, Gap)], window: &Window) -> Drawn {
    let mut of_job: HashMap<&str, Vec<&RunSummary>> = HashMap::new();
    for summary in summaries {
        of_job.entry(summary.job_key.as_str()).or_default().push(summary);
    }
    let most = RecentRuns::most_each(jobs.len()) as usize;
    let cut = of_job.values().filter(|runs| runs.len() >= most).count();
    let rows = jobs.iter().map(|job| {
        let runs = of_job.get(job.job.definition.key.as_str()).map_or(&[][..], Vec::as_slice);
        row(job, runs, gaps, window)
    });
    let rows: Vec<Row> = rows.collect();
    let planned =
        |row: &&Row| row.events.iter().filter(|event| event.what == What::Planned).count() >= MAX_PLANNED_SLOTS;
    let frequent = rows.iter().filter(planned).count();
    let for_each = jobs.iter().filter(|job| job.job.definition.scope == Scope::PerOrg).count();
    Drawn { rows, cut, frequent, for_each }
}

fn row(job: &JobRow, runs: &[&RunSummary], gaps: &[(JobId, Gap)], window: &Window) -> Row {
    let definition = &job.job.definition;
    let usual = Usual::from_runs(runs.iter().copied()).and_then(|usual| SignedDuration::try_from(usual.half).ok());
    let past = runs.iter().map(|run| Event {
        what: What::Run(run.status),
        at: run.started_at.unwrap_or(run.scheduled_at),
        until: run.finished_at,
        href: Some(format!("/runs/{}", run.id)),
    });
    let own = gaps.iter().filter(|(id, gap)| *id == definition.id && gap.reason != GapReason::Coalesced);
    let missed = own.flat_map(|(_, gap)| missed(job, gap, window));
    Row {
        key: definition.key.to_string(),
        href: format!("/jobs/{}", url_part(definition.key.as_str())),
        paused: job.job.state.status == JobStatus::Paused,
        events: past.chain(missed).chain(coming(job, usual, window)).collect(),
        gaps: gaps.iter().filter(|(id, _)| *id == definition.id).map(|(_, gap)| hatch(job, gap, window)).collect(),
    }
}

/// A gap as a hatched time, with what there is to say about it.
fn hatch(job: &JobRow, gap: &Gap, window: &Window) -> Hatch {
    let slots = counted(gap.slots, "slot");
    let when = period(gap.first_slot_at, gap.last_slot_at, &window.zone);
    let title = format!("{} · {when} · {slots} without a run: {}", job.job.definition.key, gap.reason);
    Hatch { from: gap.first_slot_at, until: gap.last_slot_at, title }
}

/// Outages as hatched times.
pub(super) fn outages(outages: &[Outage], window: &Window) -> Vec<Hatch> {
    let hatch = |outage: &Outage| {
        let Absence { from, until } = outage.absence;
        let (slots, jobs) = (counted(outage.slots(), "slot"), counted(outage.jobs.len() as u64, "job"));
        let when = period(from, until, &window.zone);
        Hatch { from, until, title: format!("Nothing ran, {when}: {slots} of {jobs} passed.") }
    };
    outages.iter().map(hatch).collect()
}

/// The slots of a gap that are in the window.
fn missed(job: &JobRow, gap: &Gap, window: &Window) -> Vec<Event> {
    let what = if gap.reason == GapReason::Paused { What::Paused } else { What::Missed };
    let event = |at| Event { what, at, until: None, href: None };
    let first = gap.first_slot_at.max(window.from);
    let Some(spec) = own_spec(job) else { return vec![event(first)] };
    let before = first.checked_sub(SignedDuration::from_secs(1)).unwrap_or(first);
    let last = gap.last_slot_at.min(window.to);
    spec.slots_after(before).take_while(|at| *at <= last).take(MAX_SLOTS_PER_GAP).map(event).collect()
}

/// The schedule of a job, unless it fires for each org: in whose zone that is, its own does not tell.
fn own_spec(job: &JobRow) -> Option<&Spec> {
    let definition = &job.job.definition;
    definition.spec.as_ref().ok().filter(|_| definition.scope == Scope::Global)
}

/// The fires that are still to come: what the timer says first, then what the schedule says.
fn coming(job: &JobRow, usual: Option<SignedDuration>, window: &Window) -> Vec<Event> {
    let (Some(spec), state) = (own_spec(job), &job.job.state) else { return Vec::new() };
    let begin = match &state.pause {
        Some(pause) => match pause.until {
            Some(until) => until,
            None => return Vec::new(),
        },
        None => window.now,
    };
    let timer = job.timer.as_ref();
    let armed = timer.and_then(|timer| timer.next_run_at).filter(|_| state.pause.is_none());
    let moved = timer.and_then(|timer| timer.rescheduled_from);
    // A fire that was moved takes the slots with it that it passes.
    let after = armed.map_or(begin, |armed| moved.map_or(armed, |slot| slot.max(armed)).max(window.now));
    let rest = spec.slots_after(after).skip_while(|at| *at < window.from).take_while(|at| *at < window.to);
    let head = armed.filter(|at| (window.from..window.to).contains(at));
    let event = |at: Timestamp| Event {
        what: What::Planned,
        at,
        until: usual.and_then(|usual| at.checked_add(usual).ok()),
        href: None,
    };
    head.into_iter().chain(rest).take(MAX_PLANNED_SLOTS).map(event).collect()
}

/// How many runs there are at once at the most, piece by piece.
pub(super) fn load(rows: &[Row], window: &Window) -> Vec<Load> {
    let (begin, whole) = (window.from.as_millisecond(), window.to.as_millisecond() - window.from.as_millisecond());
    let at = |piece: i64| Timestamp::from_millisecond(begin + whole * piece / LOAD_PIECES).unwrap_or(window.to);
    let mut steps: Vec<(Timestamp, i64)> =
        rows.iter().flat_map(|row| &row.events).flat_map(|event| steps(event, window)).collect();
    // What ends makes room for what begins in the same moment.
    steps.sort_unstable();
    let (mut steps, mut going) = (steps.into_iter().peekable(), 0_i64);
    let pieces = (0..LOAD_PIECES).map(|piece| {
        let (from, to) = (at(piece), at(piece + 1));
        let mut most = going;
        while let Some((_, step)) = steps.next_if(|(when, _)| *when < to) {
            going += step;
            most = most.max(going);
        }
        Load { from, to, runs: u64::try_from(most).unwrap_or(0), predicted: from >= window.now }
    });
    pieces.collect()
}

/// Where an event begins and ends to count.
fn steps(event: &Event, window: &Window) -> Vec<(Timestamp, i64)> {
    let end = match event.what {
        What::Run(RunStatus::Skipped | RunStatus::Pending) | What::Missed | What::Paused => return Vec::new(),
        What::Run(RunStatus::Running) => window.now,
        What::Run(_) | What::Planned => event.until.unwrap_or(event.at),
    };
    // What took no time was there all the same.
    let end = end.max(event.at.checked_add(SignedDuration::from_millis(1)).unwrap_or(event.at));
    vec![(event.at, 1), (end, -1)]
}

#[cfg(test)]
mod tests {
    use everbell_core::Zone;

    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60).unwrap()
    }

    fn run(from: i64, to: i64) -> Event {
        Event { what: What::Run(RunStatus::Succeeded), at: at(from), until: Some(at(to)), href: None }
    }

    #[test]
    fn only_what_runs_at_the_same_time_counts_together() {
        let window = Window { from: at(0), to: at(LOAD_PIECES), now: at(50), zone: Zone::utc() };
        let events = vec![run(0, 10), run(10, 20), run(15, 30), Event { what: What::Missed, ..run(15, 16) }];
        let row = Row { key: "a".to_owned(), href: String::new(), paused: false, events, gaps: Vec::new() };
        let load = load(&[row], &window);
        let runs = |minute: usize| load[minute].runs;
        assert_eq!((runs(5), runs(10), runs(16), runs(25), runs(40)), (1, 1, 2, 1, 0));
        assert!(!load[49].predicted && load[50].predicted);
    }
}
