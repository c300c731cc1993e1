//! From jobs, runs and gaps to what has a place on the axis of time. Nothing here reads anything.

use std::collections::HashMap;

use everbell::{JobRow, JobStatus};
use everbell_core::freeze::Freeze;
use everbell_core::outage::{Absence, Outage};
use everbell_core::store::{RecentRuns, RunSummary};
use everbell_core::{Gap, GapReason, JobId, RunStatus, Scope};
use jiff::{SignedDuration, Timestamp};

use super::Window;
use super::ahead::{Ahead, Fire, Known, own_spec};
use crate::chart::{Band, Event, Hatch, Load, Row, What, counted, orgs_in_zones, period};
use crate::markup::url_part;
use crate::pages::overview::attention::Usual;
use everbell_wire::elapsed::took;

/// The most slots of a job that are drawn one by one, and the most of one gap.
const MAX_PLANNED_SLOTS: u64 = 300;
const MAX_SLOTS_PER_GAP: usize = 100;
/// Into how many parts a time is cut to find the hours in which a job fires.
const BAND_PARTS: i64 = 96;
/// How many minutes a piece of the load may have, and how many pieces there are at the most.
const LOAD_STEPS: [i64; 5] = [1, 5, 10, 30, 60];
const MAX_LOAD_PIECES: i64 = 365;

/// Rows, and how many of them had more runs than were read.
pub(super) struct Drawn {
    pub(super) rows: Vec<Row>,
    pub(super) cut: usize,
    /// The number of per-org jobs.
    pub(super) for_each: usize,
}

/// The input of fires to come.
pub(super) struct Coming<'a> {
    pub(super) known: Known<'a>,
    pub(super) window: &'a Window,
}

pub(super) fn rows(jobs: &[JobRow], summaries: &[RunSummary], gaps: &[(JobId, Gap)], input: &Coming<'_>) -> Drawn {
    let mut of_job: HashMap<&str, Vec<&RunSummary>> = HashMap::new();
    for summary in summaries {
        of_job.entry(summary.job_key.as_str()).or_default().push(summary);
    }
    let most = RecentRuns::most_each(jobs.len()) as usize;
    let cut = of_job.values().filter(|runs| runs.len() >= most).count();
    let rows = jobs.iter().map(|job| {
        let runs = of_job.get(job.job.definition.key.as_str()).map_or(&[][..], Vec::as_slice);
        row(job, runs, gaps, input)
    });
    let rows: Vec<Row> = rows.collect();
    let for_each = jobs.iter().filter(|job| job.job.definition.scope == Scope::PerOrg).count();
    Drawn { rows, cut, for_each }
}

fn row(job: &JobRow, runs: &[&RunSummary], gaps: &[(JobId, Gap)], input: &Coming<'_>) -> Row {
    let (definition, window) = (&job.job.definition, input.window);
    let usual = Usual::from_runs(runs.iter().copied()).and_then(|usual| SignedDuration::try_from(usual.half).ok());
    let past = runs.iter().map(|run| Event {
        what: What::Run(run.status),
        at: run.started_at.unwrap_or(run.scheduled_at),
        until: run.finished_at,
        href: Some(format!("/runs/{}", run.id)),
        runs: 1,
        zones: 0,
    });
    let own = gaps.iter().filter(|(id, gap)| *id == definition.id && gap.reason != GapReason::Coalesced);
    let missed = own.flat_map(|(_, gap)| missed(job, gap, window));
    let mut row = Row {
        key: definition.key.to_string(),
        href: format!("/jobs/{}", url_part(definition.key.as_str())),
        paused: job.job.state.status == JobStatus::Paused,
        events: past.chain(missed).collect(),
        gaps: gaps.iter().filter(|(id, _)| *id == definition.id).map(|(_, gap)| hatch(job, gap, window)).collect(),
        bands: Vec::new(),
    };
    coming(&mut row, job, usual, input);
    row
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
    let event = |at| Event { what, at, until: None, href: None, runs: 1, zones: 0 };
    let first = gap.first_slot_at.max(window.from);
    let Some(spec) = own_spec(job) else { return vec![event(first)] };
    let before = first.checked_sub(SignedDuration::from_secs(1)).unwrap_or(first);
    let last = gap.last_slot_at.min(window.to);
    spec.slots_after(before).take_while(|at| *at <= last).take(MAX_SLOTS_PER_GAP).map(event).collect()
}

/// Adds the fires that are still to come: one by one, or as bands if they are too many.
fn coming(row: &mut Row, job: &JobRow, usual: Option<SignedDuration>, input: &Coming<'_>) {
    let (window, from) = (input.window, input.window.from.max(input.window.now));
    let Some(ahead) = Ahead::new(job, &input.known) else { return };
    if ahead.has_more_than(MAX_PLANNED_SLOTS, from, window.to) {
        row.bands.extend(dense(&ahead, from, window.to));
    } else {
        for fire in ahead.fires(from, window.to) {
            planned(row, &fire, usual, from);
        }
    }
    let reason = |at: Timestamp| {
        let covers = |freeze: &&Freeze| freeze.span().is_some_and(|span| span.contains(at));
        let freeze = input.known.freezes.iter().filter(covers).find(|freeze| freeze.applies_to(&job.job.definition));
        freeze.map_or_else(String::new, |freeze| freeze.reason.clone())
    };
    let frozen = ahead.frozen_slots(from, window.to).into_iter().map(|(span, slots)| Band {
        what: What::Frozen,
        from: span.from,
        until: span.until,
        slots,
        note: reason(span.from),
    });
    row.bands.extend(frozen);
    row.bands.sort_by_key(|band| band.from);
}

/// Adds a fire: as a mark or, if jitter spreads it over its orgs, as a band.
fn planned(row: &mut Row, fire: &Fire, usual: Option<SignedDuration>, from: Timestamp) {
    let (at, zones) = (fire.at, fire.orgs.as_ref().map_or(0, |slot| slot.zones));
    if let Some(slot) = fire.orgs.as_ref().filter(|slot| !slot.within.is_zero()) {
        let note = format!("{} within {}", orgs_in_zones(slot.orgs, zones), took(slot.within.as_millis() as i64));
        // The orgs whose time has not passed.
        let left = slot.spread().filter(|(at, _)| *at >= from).map(|(_, orgs)| orgs).sum();
        let band = Band { what: What::Planned, from: at.max(from), until: slot.ends_at(), slots: left, note };
        row.bands.extend(Some(band).filter(|band| band.slots > 0));
    } else {
        let until = usual.and_then(|usual| at.checked_add(usual).ok());
        row.events.push(Event { what: What::Planned, at, until, href: None, runs: fire.runs, zones });
    }
}

/// The times in which a job fires all the time, each as a band with its rate. Hours without slots are left out.
fn dense(ahead: &Ahead<'_>, from: Timestamp, to: Timestamp) -> Vec<Band> {
    let mut bands: Vec<Band> = Vec::new();
    for (begin, end) in ahead.thawed(from, to) {
        let whole = end.as_millisecond() - begin.as_millisecond();
        // At most a few years in milliseconds, so this does not overflow.
        let parts = (whole * BAND_PARTS / (to.as_millisecond() - from.as_millisecond()).max(1)).max(1);
        let bound = |part: i64| match part {
            0 => begin,
            part if part == parts => end,
            part => Timestamp::from_millisecond(begin.as_millisecond() + whole * part / parts).unwrap_or(end),
        };
        for part in 0..parts {
            let (from, until) = (bound(part), bound(part + 1));
            match (ahead.count(from, until), bands.last_mut()) {
                (0, _) => {}
                (slots, Some(last)) if last.until == from => (last.until, last.slots) = (until, last.slots + slots),
                (slots, _) => bands.push(Band { what: What::Planned, from, until, slots, note: String::new() }),
            }
        }
    }
    for band in &mut bands {
        band.note = rate(band.slots, band.from, band.until);
    }
    bands
}

/// `30/min`, `14/h`; rounded.
fn rate(slots: u64, from: Timestamp, until: Timestamp) -> String {
    let millis = u64::try_from(until.as_millisecond() - from.as_millisecond()).unwrap_or(1).max(1);
    let per = |unit: u64| (u128::from(slots) * u128::from(unit) + u128::from(millis) / 2) / u128::from(millis);
    if per(60_000) >= 2 { format!("{}/min", per(60_000)) } else { format!("{}/h", per(3_600_000)) }
}

/// The bounds of the pieces of the load: whole minutes, or several.
pub(super) fn bounds(window: &Window) -> Vec<Timestamp> {
    let minutes = (window.to.as_second() - window.from.as_second()) / 60;
    let step = LOAD_STEPS.into_iter().find(|step| minutes / step < MAX_LOAD_PIECES).unwrap_or(60) * 60;
    let first = (window.from.as_second().div_euclid(step) + 1) * step;
    let inner = (0..).map(|piece| first + piece * step).take_while(|second| *second < window.to.as_second());
    let inner = inner.filter_map(|second| Timestamp::from_second(second).ok());
    std::iter::once(window.from).chain(inner).chain([window.to]).collect()
}

/// How many runs of these rows started in each piece before now.
pub(super) fn started(rows: &[Row], bounds: &[Timestamp]) -> Vec<u64> {
    let mut starts = vec![0; bounds.len().saturating_sub(1)];
    for event in rows.iter().flat_map(|row| &row.events) {
        let ran = matches!(event.what, What::Run(status) if status != RunStatus::Skipped);
        let piece = bounds.partition_point(|bound| *bound <= event.at).checked_sub(1);
        if let Some(start) = piece.filter(|_| ran).and_then(|piece| starts.get_mut(piece)) {
            *start += event.runs;
        }
    }
    starts
}

/// The load: how many runs started before now, and how many are to come. The piece that holds now is split there.
pub(super) fn load(bounds: &[Timestamp], started: &[u64], planned: &[u64], now: Timestamp) -> Vec<Load> {
    let pieces = bounds.windows(2).zip(started.iter().zip(planned));
    let load = pieces.flat_map(|(piece, (started, planned))| {
        let middle = now.clamp(piece[0], piece[1]);
        [
            Load { from: piece[0], to: middle, runs: *started, predicted: false },
            Load { from: middle, to: piece[1], runs: *planned, predicted: true },
        ]
    });
    load.filter(|load| load.from < load.to).collect()
}

#[cfg(test)]
mod tests;
