//! Decides which jobs and runs need attention, and groups similar failures. Nothing is read or rendered here.

use std::collections::BTreeMap;
use std::time::Duration;

use everbell::RunRecord;
use everbell_core::Failure;
use everbell_core::store::RunSummary;
use jiff::Timestamp;

/// A run is far too long if it takes this many times as long as nearly all before it.
const LONG_RUN_FACTOR: u32 = 3;
/// With fewer runs the usual duration is not known.
pub(crate) const MIN_SAMPLED_RUNS: usize = 5;
/// Shorter runs are never reported as long.
const MIN_LONG_RUN: Duration = Duration::from_secs(10);

/// How long runs of a job take as a rule, and at the most as a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usual {
    pub(crate) half: Duration,
    pub(crate) most: Duration,
    pub(crate) runs: usize,
}

impl Usual {
    /// Of those runs that ended; nothing if none did.
    pub(crate) fn from_runs<'a>(runs: impl IntoIterator<Item = &'a RunSummary>) -> Option<Usual> {
        let mut took: Vec<Duration> = runs.into_iter().filter_map(RunSummary::duration).collect();
        took.sort_unstable();
        let at = |percent: usize| took.get((took.len() * percent).div_ceil(100).max(1) - 1).copied();
        Some(Usual { half: at(50)?, most: at(95)?, runs: took.len() })
    }

    /// Whether a run that takes so long already is far beyond what is usual.
    pub(crate) fn is_far_beyond(&self, elapsed: Duration) -> bool {
        self.runs >= MIN_SAMPLED_RUNS && elapsed >= MIN_LONG_RUN && elapsed > self.most * LONG_RUN_FACTOR
    }
}

/// Similar failures: of one target, with one code, whose messages differ only in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailureGroup {
    pub(crate) target: String,
    pub(crate) code: String,
    /// That of the newest.
    pub(crate) message: String,
    pub(crate) count: usize,
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
    /// Their jobs, in order.
    pub(crate) jobs: Vec<String>,
    /// The newest.
    pub(crate) run: String,
}

impl FailureGroup {
    /// The properties that similar failures share.
    pub(crate) fn key(&self) -> (String, String, String) {
        (self.target.clone(), self.code.clone(), without_numbers(&self.message))
    }
}

/// The properties that a failure shares with similar ones.
pub(crate) fn cause_key(target: &str, failure: &Failure) -> (String, String, String) {
    (target.to_owned(), failure.code.as_str().to_owned(), without_numbers(&failure.message))
}

/// Failed runs in groups, the largest first. The newest runs come first.
pub(crate) fn group_failures(failed: &[RunRecord]) -> Vec<FailureGroup> {
    let mut groups: BTreeMap<(String, String, String), FailureGroup> = BTreeMap::new();
    for run in failed {
        let Some(failure) = &run.failure else { continue };
        let (target, code) = (run.target.to_string(), failure.code.as_str().to_owned());
        let key = (target.clone(), code.clone(), without_numbers(&failure.message));
        let group = groups.entry(key).or_insert_with(|| FailureGroup {
            target,
            code,
            message: failure.message.clone(),
            count: 0,
            first: run.scheduled_at,
            last: run.scheduled_at,
            jobs: Vec::new(),
            run: run.id.to_string(),
        });
        group.count += 1;
        group.first = group.first.min(run.scheduled_at);
        group.last = group.last.max(run.scheduled_at);
        let job = run.job_key.as_ref().map_or_else(String::new, ToString::to_string);
        if !job.is_empty() && !group.jobs.contains(&job) {
            group.jobs.push(job);
            group.jobs.sort_unstable();
        }
    }
    let mut groups: Vec<FailureGroup> = groups.into_values().collect();
    groups.sort_by(|a, b| b.count.cmp(&a.count).then(b.last.cmp(&a.last)));
    groups
}

/// A message with every number, and every id made of them, as one sign.
fn without_numbers(message: &str) -> String {
    let mut plain = String::new();
    for word in message.split_whitespace().take(40) {
        let counted = word.chars().any(|sign| sign.is_ascii_digit());
        plain.push_str(if counted { "#" } else { word });
        plain.push(' ');
    }
    plain
}

/// How many slots of each job were skipped because a run was still active, the most first.
pub(crate) fn count_overlaps(skipped: &[RunRecord]) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let overlaps = |run: &&RunRecord| run.skip.as_ref().is_some_and(|skip| skip.as_str() == "overlap");
    // A manual run has no slot.
    for run in skipped.iter().filter(overlaps).filter(|run| run.slot_at.is_some()) {
        if let Some(key) = &run.job_key {
            *counts.entry(key.to_string()).or_default() += 1;
        }
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_far_beyond_the_usual_is_told() {
        let usual = |most, runs| Usual { half: Duration::from_secs(2), most: Duration::from_secs(most), runs };
        let seconds = Duration::from_secs;
        assert!(usual(10, 5).is_far_beyond(seconds(31)) && !usual(10, 5).is_far_beyond(seconds(30)));
        assert!(!usual(10, 4).is_far_beyond(seconds(3_600)), "too few to tell");
        assert!(!usual(1, 50).is_far_beyond(seconds(9)), "too short to care");
    }

    #[test]
    fn messages_that_differ_in_numbers_are_alike() {
        let same = |a: &str, b: &str| without_numbers(a) == without_numbers(b);
        assert!(same("timeout after 30 s to 10.0.0.1:25", "timeout after 31 s to 10.0.0.2:25"));
        assert!(!same("timeout after 30 s", "refused after 30 s"));
    }
}
