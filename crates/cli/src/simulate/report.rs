//! The result of a simulation: tables for people, lines and JSON for programs.

use std::collections::BTreeMap;
use std::time::Duration;

use everbell_core::SkipReason;
use everbell_core::simulate::{JobSimulation, SlotRecord, SlotStatus};
use everbell_wire::elapsed::{took, wait};
use jiff::Timestamp;
use serde::Serialize;

use super::Simulated;
use super::subject::Subject;
use crate::CliError;
use crate::output::{Cell, Column, Mark, Output, Table, counted, printable};
use crate::times::{exact, local, spoken, stamp};

/// The counts that have a column of their own; all others are `other`.
const OUTCOME_COLUMNS: [&str; 4] = ["ran", "skipped", "coalesced", "missed"];

/// The numbers of a job, in the order of [`summary`].
const TITLES: [&str; 9] = ["SLOTS", "RAN", "SKIPPED", "COALESCED", "MISSED", "OTHER", "FAILED", "DST GAPS", "PEAK"];

/// A simulation as a JSON document.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Document {
    from: Timestamp,
    to: Timestamp,
    outages: Vec<Interval>,
    instances: u32,
    places: u32,
    /// The limits of targets, of all instances together.
    target_places: BTreeMap<String, u32>,
    peak_concurrent_runs: u32,
    peak_at: Option<Timestamp>,
    jobs: Vec<JobDocument>,
}

#[derive(Serialize)]
struct Interval {
    from: Timestamp,
    to: Timestamp,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JobDocument {
    job_key: String,
    timezone: String,
    duration_ms: u64,
    slots: u64,
    /// How many slots have each status; they add up to `slots`.
    counts: BTreeMap<&'static str, u64>,
    failed: usize,
    dst_gaps: Vec<Timestamp>,
    peak_concurrent_runs: u32,
    longest_wait_ms: u64,
    paused_at: Option<Timestamp>,
    error: Option<String>,
    /// The slots, or only the notable ones.
    items: Vec<SlotDocument>,
    /// Whether some were left out because there are too many.
    more: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SlotDocument {
    slot_at: Timestamp,
    last_slot_at: Timestamp,
    slots: u64,
    status: &'static str,
    note: String,
    scheduled_at: Option<Timestamp>,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    attempts: usize,
    catch_up: bool,
    folded_slots: u64,
}

/// A slot and its job, for one JSON object per line.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line {
    job_key: String,
    #[serde(flatten)]
    slot: SlotDocument,
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The jobs and their results.
fn pairs(done: &Simulated) -> impl Iterator<Item = (&Subject, &JobSimulation)> {
    done.subjects.iter().zip(&done.simulation.jobs)
}

fn is_listed(record: &SlotRecord, verbose: bool) -> bool {
    verbose || record.is_notable()
}

/// The whole result. Each job has at most `limit` slots.
pub(super) fn document(done: &Simulated, verbose: bool, limit: usize) -> Document {
    let scenario = &done.window.scenario;
    let outages = scenario.merged_outages().into_iter().map(|outage| Interval { from: outage.from, to: outage.to });
    let job = |(subject, result): (&Subject, &JobSimulation)| {
        let listed = || result.records.iter().filter(|record| is_listed(record, verbose));
        JobDocument {
            job_key: subject.key().to_owned(),
            timezone: subject.zone().name().to_owned(),
            duration_ms: millis(subject.job.duration),
            slots: result.slots,
            counts: result.counts(),
            failed: result.failed(),
            dst_gaps: result.dst_gaps.clone(),
            peak_concurrent_runs: result.peak,
            longest_wait_ms: millis(result.longest_wait),
            paused_at: result.paused_at,
            error: result.error.clone(),
            items: listed().take(limit).map(|record| slot_document(record, done)).collect(),
            more: listed().nth(limit).is_some(),
        }
    };
    Document {
        from: scenario.from,
        to: scenario.to,
        outages: outages.collect(),
        instances: done.window.instances,
        places: scenario.places,
        target_places: scenario.target_places.iter().map(|(target, places)| (target.to_string(), *places)).collect(),
        peak_concurrent_runs: done.simulation.peak,
        peak_at: done.simulation.peak_at,
        jobs: pairs(done).map(job).collect(),
    }
}

fn slot_document(record: &SlotRecord, done: &Simulated) -> SlotDocument {
    let run = record.run.as_ref();
    SlotDocument {
        slot_at: record.first_slot_at,
        last_slot_at: record.last_slot_at,
        slots: record.slots,
        status: record.status.as_str(),
        note: remark(record, done),
        scheduled_at: run.map(|run| run.scheduled_at),
        started_at: run.and_then(|run| run.started_at),
        finished_at: run.and_then(|run| run.finished_at),
        attempts: run.map_or(0, |run| run.attempts.len()),
        catch_up: run.is_some_and(|run| run.catch_up),
        folded_slots: run.map_or(0, |run| run.folded),
    }
}

/// Every listed slot, in the order of time.
fn listed<'a>(done: &'a Simulated, verbose: bool) -> Vec<(&'a Subject, &'a SlotRecord)> {
    let of_job = |(subject, result): (&'a Subject, &'a JobSimulation)| {
        result.records.iter().filter(move |record| is_listed(record, verbose)).map(move |record| (subject, record))
    };
    let mut all: Vec<_> = pairs(done).flat_map(of_job).collect();
    all.sort_by_key(|(_, record)| record.first_slot_at);
    all
}

/// The slots of all jobs, one after the other.
pub(super) fn lines(done: &Simulated, verbose: bool) -> Vec<Line> {
    let line = |(subject, record): (&Subject, &SlotRecord)| Line {
        job_key: subject.key().to_owned(),
        slot: slot_document(record, done),
    };
    listed(done, verbose).into_iter().map(line).collect()
}

/// Prints a row for each job. People see only the columns that say something.
pub(super) fn summary(done: &Simulated, output: &mut Output) -> Result<(), CliError> {
    let row = |(subject, result): (&Subject, &JobSimulation)| {
        let counts = result.counts();
        let named = OUTCOME_COLUMNS.map(|word| counts.get(word).copied().unwrap_or(0));
        let other = result.slots - named.iter().sum::<u64>();
        let numbers = [result.slots].into_iter().chain(named).chain([
            other,
            result.failed() as u64,
            result.dst_gaps.len() as u64,
            u64::from(result.peak),
        ]);
        (subject.key().to_owned(), numbers.collect::<Vec<u64>>(), result.longest_wait)
    };
    let rows: Vec<(String, Vec<u64>, Duration)> = pairs(done).map(row).collect();
    if !output.is_for_people() {
        for (key, numbers, longest) in rows {
            let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            output.line(&format!("job\t{}\t{}\t{}", printable(&key), numbers.join("\t"), millis(longest)))?;
        }
        return Ok(());
    }
    let says = |at: &usize| TITLES[*at] == "SLOTS" || rows.iter().any(|(_, numbers, _)| numbers[*at] > 0);
    let shown: Vec<usize> = (0..TITLES.len()).filter(says).collect();
    let mut columns = vec![Column::new("JOB KEY").shrinks_to(16)];
    columns.extend(shown.iter().map(|at| Column::new(TITLES[*at]).right()));
    columns.push(Column::new("LONGEST WAIT").right().drop_order(1));
    let mut table = Table::new(&columns, output.symbols);
    for (key, numbers, longest) in &rows {
        let mut cells = vec![Cell::text(key)];
        cells.extend(shown.iter().map(|at| Cell::text(&numbers[*at].to_string())));
        let longest = if longest.is_zero() { "-".to_owned() } else { took(millis(*longest) as i64) };
        cells.push(Cell::text(&longest));
        table.row(cells);
    }
    output.list(&table)?;
    Ok(())
}

/// Prints the slots, and returns how many were left out.
pub(super) fn slots(done: &Simulated, verbose: bool, limit: usize, output: &mut Output) -> Result<usize, CliError> {
    let all = listed(done, verbose);
    let (shown, left_out) = (&all[..all.len().min(limit)], all.len().saturating_sub(limit));
    if !output.is_for_people() {
        for (subject, record) in shown {
            let (key, at) = (printable(subject.key()), exact(record.first_slot_at, &done.zone));
            let note = printable(&remark(record, done));
            output.line(&format!("slot\t{key}\t{at}\t{}\t{}\t{note}", record.slots, record.status.as_str()))?;
        }
        return Ok(left_out);
    }
    if shown.is_empty() {
        return Ok(0);
    }
    output.line("")?;
    let columns = [
        Column::new("SLOT"),
        Column::new("JOB KEY").shrinks(),
        Column::new("STATUS"),
        Column::new("NOTE").shrinks().drop_order(1),
    ];
    let mut table = Table::new(&columns, output.symbols);
    for (subject, record) in shown {
        let status = &record.status;
        let symbol = output.symbols.symbol(mark(status));
        table.row(vec![
            Cell::text(&stamp(record.first_slot_at, &done.zone)),
            Cell::text(subject.key()),
            Cell::both(format!("{symbol} {}", status.as_str()), status.as_str()).styled(mark(status).style()),
            Cell::text(&remark(record, done)),
        ]);
    }
    output.list(&table)?;
    Ok(left_out)
}

fn mark(status: &SlotStatus) -> Mark {
    match status {
        SlotStatus::Succeeded => Mark::Good,
        SlotStatus::Failed(_) => Mark::Bad,
        SlotStatus::Canceled => Mark::Canceled,
        SlotStatus::Running => Mark::Active,
        SlotStatus::Waiting | SlotStatus::Undecided => Mark::Waiting,
        SlotStatus::Skipped(_) => Mark::Skipped,
        SlotStatus::Gap(_) => Mark::Warning,
    }
}

/// The remark about a slot: `started 30m late, catches up 2 slots`.
fn remark(record: &SlotRecord, done: &Simulated) -> String {
    let clock = |at: Timestamp| local(at, &done.zone).strftime("%m-%d %H:%M").to_string();
    let mut parts = Vec::new();
    if record.slots > 1 {
        parts.push(format!("{} slots until {}", record.slots, clock(record.last_slot_at)));
    }
    match &record.status {
        SlotStatus::Failed(code) => parts.push(code.clone()),
        SlotStatus::Canceled if record.ran() => parts.push("a later run took its place".to_owned()),
        SlotStatus::Canceled => parts.push("a later run took its place before it started".to_owned()),
        SlotStatus::Skipped(SkipReason::Overlap { blocking }) => {
            parts.push(format!("the run of {} is still active", clock(blocking.time())));
        }
        SlotStatus::Skipped(reason) => parts.push(reason.to_string()),
        SlotStatus::Waiting => parts.push("still waiting at the end".to_owned()),
        SlotStatus::Running => parts.push("still running at the end".to_owned()),
        SlotStatus::Undecided => parts.push("the window ends before it is planned".to_owned()),
        SlotStatus::Succeeded | SlotStatus::Gap(_) => {}
    }
    if let Some(run) = &record.run {
        if !record.wait().is_zero() {
            parts.push(format!("started {} late", took(millis(record.wait()) as i64)));
        }
        if run.folded > 0 {
            parts.push(format!("catches up {}", counted(run.folded as usize, "earlier slot")));
        }
        if run.attempts.len() > 1 {
            parts.push(format!("{} attempts", run.attempts.len()));
        }
    }
    parts.join(", ")
}

/// `48 slots from … to …, at most 3 runs at once (of 256 places)`.
pub(super) fn sentence(done: &Simulated) -> String {
    let scenario = &done.window.scenario;
    let slots: u64 = done.simulation.jobs.iter().map(|job| job.slots).sum();
    let down: i64 = scenario.merged_outages().iter().map(|one| one.to.duration_since(one.from).as_secs()).sum();
    let down = if down > 0 { format!(", {} of outages", wait(down)) } else { String::new() };
    let peak = done.simulation.peak_at.map_or_else(String::new, |at| format!(" at {}", spoken(at, &done.zone)));
    format!(
        "{} from {} to {}{down}; at most {} at once{peak}, of {}",
        counted(slots as usize, "slot"),
        spoken(scenario.from, &done.zone),
        spoken(scenario.to, &done.zone),
        counted(done.simulation.peak as usize, "run"),
        counted(scenario.places as usize, "place"),
    )
}
