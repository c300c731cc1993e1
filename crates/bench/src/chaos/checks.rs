//! Checkers: what the targets saw, against the rows and against what `/readyz` said.

use std::collections::BTreeMap;

use everbell_store::conformance::checkers::Snapshot;

use super::cluster::Cluster;
use super::target_log::{Execution, seconds};

/// Clocks of two processes of one machine are read at moments that differ by this much, in seconds.
const TOLERANCE_S: f64 = 0.002;
/// The clock of an instance is late by a round trip to the database, so a run seems to have ended that much earlier.
const ROUND_TRIP_S: f64 = 0.5;
/// A silence of this many seconds must be seen by `/readyz`.
pub(crate) const SILENCE_S: f64 = 20.0;

/// Slots that were started more than once.
pub(crate) fn started_twice(executions: &[Execution]) -> Vec<String> {
    let mut starts: BTreeMap<(&str, String), Vec<&Execution>> = BTreeMap::new();
    for execution in executions {
        // A run by hand has no slot, but an id.
        let slot = execution.slot.map_or_else(|| execution.run.clone(), |slot| format!("{slot:.0}"));
        starts.entry((&execution.job, slot)).or_default().push(execution);
    }
    let twice = starts.iter().filter(|(_, starts)| starts.len() > 1);
    let attempts =
        |starts: &[&Execution]| starts.iter().map(|one| one.attempt.to_string()).collect::<Vec<_>>().join(", ");
    twice.map(|((job, slot), starts)| format!("{job} slot {slot}: attempts {}", attempts(starts))).collect()
}

/// Seconds that programs of one job were at work side by side, for each job.
pub(crate) fn overlaps(executions: &[Execution], now: f64) -> BTreeMap<String, f64> {
    let mut by_job: BTreeMap<&str, Vec<&Execution>> = BTreeMap::new();
    for execution in executions {
        by_job.entry(&execution.job).or_default().push(execution);
    }
    let mut overlaps = BTreeMap::new();
    for (job, executions) in by_job {
        let mut busy_until = f64::MIN;
        for execution in executions {
            let end = execution.end.unwrap_or(now);
            let together = busy_until.min(end) - execution.start;
            // A program has ended when its process is gone, which its server hears of a little later.
            if together > 0.15 {
                *overlaps.entry(job.to_owned()).or_default() += together;
            }
            busy_until = busy_until.max(end);
        }
    }
    overlaps
}

/// The seconds by which programs started before their slot.
pub(crate) fn early(executions: &[Execution]) -> Vec<f64> {
    let ahead = executions.iter().filter_map(|execution| Some(execution.slot? - execution.start));
    ahead.filter(|ahead| *ahead > TOLERANCE_S).collect()
}

/// The seconds by which programs started after their run had ended.
pub(crate) fn after_the_end(executions: &[Execution], snapshot: &Snapshot) -> Vec<f64> {
    let ends: BTreeMap<String, f64> = snapshot
        .runs
        .iter()
        .filter_map(|run| Some((run.id.to_string(), seconds(run.finished_at.filter(|_| run.status.is_terminal())?))))
        .collect();
    let late = executions.iter().filter_map(|execution| Some(execution.start - ends.get(&execution.run)?));
    late.filter(|late| *late > ROUND_TRIP_S).collect()
}

/// The longest time between two times in which nothing of these jobs started.
pub(crate) fn longest_silence(executions: &[Execution], job: Option<&str>, from: f64, to: f64) -> (f64, f64) {
    let starts = executions.iter().filter(|execution| job.is_none_or(|job| execution.job == job));
    let inside = starts.map(|execution| execution.start).filter(|start| (from..=to).contains(start));
    let times: Vec<f64> = std::iter::once(from).chain(inside).chain([to]).collect();
    let silences = times.windows(2).map(|pair| (pair[0], pair[1]));
    silences.max_by(|one, other| (one.1 - one.0).total_cmp(&(other.1 - other.0))).unwrap_or((from, to))
}

/// The longest time in which one of the jobs did not start, and which.
pub(crate) fn slowest_job(executions: &[Execution], jobs: &[String], from: f64, to: f64) -> (f64, String) {
    let of_job = |job: &String| {
        let (begin, end) = longest_silence(executions, Some(job), from, to);
        (end - begin, job.clone())
    };
    jobs.iter().map(of_job).max_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or_default()
}

/// Live instances whose `/readyz` was 200 from 20 s after the begin of a silence until its end, whenever it was asked.
pub(crate) fn ready_in_silence(cluster: &Cluster, from: f64, to: f64) -> Vec<u32> {
    if to - from <= SILENCE_S {
        return Vec::new();
    }
    let mut answers: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    for sample in cluster.readiness.between(from + SILENCE_S, to) {
        let Some(status) = sample.status else { continue };
        let (ready, others) = answers.entry(sample.pid).or_default();
        *(if status == 200 { ready } else { others }) += 1;
    }
    answers.into_iter().filter(|(_, (ready, others))| *ready > 0 && *others == 0).map(|(pid, _)| pid).collect()
}

/// Returns complaints about slots without exactly one outcome in the rows.
pub(crate) fn complaints(snapshot: &Snapshot) -> Vec<String> {
    snapshot.complaints()
}

/// How many runs ended with this failure code.
pub(crate) fn failed_with(snapshot: &Snapshot, code: &str) -> usize {
    let has = |run: &&everbell_core::Run| run.failure.as_ref().is_some_and(|failure| failure.code.as_str() == code);
    snapshot.runs.iter().filter(has).count()
}
