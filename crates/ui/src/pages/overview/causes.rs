//! Problems by cause: jobs that fail for the same reason are one line. Nothing is read or rendered here.

use std::collections::BTreeMap;

use everbell::{JobRow, JobStatus};
use jiff::Timestamp;

use super::attention::{FailureGroup, cause_key};

/// The jobs that keep failing for one reason.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cause {
    /// Their keys, in order.
    pub(super) jobs: Vec<String>,
    /// Whether all of them are paused.
    pub(super) paused: bool,
    /// How many runs failed: in a row of a single job, else within a day.
    pub(super) count: u64,
    /// The first known failure.
    pub(super) since: Option<Timestamp>,
    /// The target, the code and the message of the newest failure, if it may be read.
    pub(super) reason: Option<(String, String, String)>,
}

/// Groups failing jobs by the cause of their last failure, the most jobs first. Without a known failure each job is a
/// cause of its own.
pub(super) fn causes(failing: &[JobRow], failures: &[FailureGroup], may_read_runs: bool) -> Vec<Cause> {
    let mut causes: BTreeMap<(String, String, String), Cause> = BTreeMap::new();
    for row in failing {
        let key = row.job.definition.key.to_string();
        let last = row.last_run.as_ref().filter(|_| may_read_runs);
        let failure = last.and_then(|run| Some((run, run.failure.as_ref()?)));
        let group = failure.map_or_else(
            || (String::new(), String::new(), key.clone()),
            |(run, failure)| cause_key(run.target.as_str(), failure),
        );
        let cause = causes.entry(group).or_insert_with(|| Cause {
            jobs: Vec::new(),
            paused: true,
            count: 0,
            since: None,
            reason: failure.map(|(run, failure)| {
                (run.target.to_string(), failure.code.as_str().to_owned(), failure.message.clone())
            }),
        });
        cause.jobs.push(key);
        cause.paused &= row.job.state.status == JobStatus::Paused;
        cause.count += u64::from(row.job.state.consecutive_failures);
        cause.since = [cause.since, last.map(|run| run.scheduled_at)].into_iter().flatten().min();
    }
    for (key, cause) in &mut causes {
        if let Some(group) = failures.iter().find(|group| group.key() == *key) {
            cause.since = [cause.since, Some(group.first)].into_iter().flatten().min();
        }
        cause.jobs.sort_unstable();
    }
    let mut causes: Vec<Cause> = causes.into_values().collect();
    causes.sort_by(|a, b| (b.jobs.len(), b.count, &a.jobs).cmp(&(a.jobs.len(), a.count, &b.jobs)));
    causes
}

/// The failures of the day that no job still has.
pub(super) fn recovered(failures: Vec<FailureGroup>, causes: &[Cause]) -> Vec<FailureGroup> {
    let is_open =
        |group: &FailureGroup| causes.iter().any(|cause| group.jobs.iter().any(|job| cause.jobs.contains(job)));
    failures.into_iter().filter(|group| !is_open(group)).collect()
}

/// The first line of the overview.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Health {
    /// How many problems there are.
    pub(super) problems: usize,
    pub(super) jobs: u64,
    /// How many runs ended well and badly in the last day; unknown if the role may not read runs.
    pub(super) runs: Option<(u64, u64, u64)>,
}

impl Health {
    /// `77 jobs, 1,159 runs in 24 h, 99.2 % ok`.
    pub(super) fn facts(&self) -> String {
        let jobs = counted(self.jobs, "job");
        let Some((good, bad, all)) = self.runs else { return jobs };
        let runs = counted(all, "run");
        match percent(good, bad) {
            Some(share) => format!("{jobs}, {runs} in 24 h, {share} ok"),
            None => format!("{jobs}, {runs} in 24 h"),
        }
    }
}

/// `99.2 %`. A share that is not quite all is never rounded to all, and one that is not nothing never to nothing.
pub(super) fn percent(good: u64, bad: u64) -> Option<String> {
    let all = good.checked_add(bad).filter(|all| *all > 0)?;
    if bad == 0 {
        return Some("100 %".to_owned());
    }
    let tenths = (u128::from(good) * 1_000 / u128::from(all)) as u64;
    let tenths = if good > 0 { tenths.max(1) } else { tenths };
    Some(if tenths.is_multiple_of(10) {
        format!("{} %", tenths / 10)
    } else {
        format!("{}.{} %", tenths / 10, tenths % 10)
    })
}

/// `1 job`, `1,159 runs`.
pub(super) fn counted(count: u64, noun: &str) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{grouped} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn facts_name_jobs_runs_and_the_share_that_succeeded() {
        let health = |runs| Health { problems: 0, jobs: 77, runs };
        assert_eq!(health(Some((1_150, 9, 1_159))).facts(), "77 jobs, 1,159 runs in 24 h, 99.2 % ok");
        assert_eq!(health(Some((0, 0, 1))).facts(), "77 jobs, 1 run in 24 h");
        assert_eq!(health(None).facts(), "77 jobs");
        assert_eq!(counted(1_234_567, "run"), "1,234,567 runs");
    }

    #[test]
    fn a_share_is_all_or_nothing_only_if_it_is() {
        assert_eq!(percent(0, 0), None);
        assert_eq!(percent(10, 0).as_deref(), Some("100 %"));
        assert_eq!(percent(99_999, 1).as_deref(), Some("99.9 %"));
        assert_eq!(percent(1, 99_999).as_deref(), Some("0.1 %"));
        assert_eq!(percent(0, 3).as_deref(), Some("0 %"));
    }

    proptest! {
        #[test]
        fn every_share_is_between_nothing_and_all(good: u32, bad: u32) {
            prop_assume!(good > 0 && bad > 0);
            let share = percent(u64::from(good), u64::from(bad)).unwrap();
            let number: f64 = share.trim_end_matches(" %").parse().unwrap();
            prop_assert!((0.1..=99.9).contains(&number), "{share}");
        }
    }

    fn group(target: &str, message: &str, jobs: &[&str], first: &str) -> FailureGroup {
        let at: Timestamp = first.parse().unwrap();
        FailureGroup {
            target: target.to_owned(),
            code: "exit_code".to_owned(),
            message: message.to_owned(),
            count: 3,
            first: at,
            last: at,
            jobs: jobs.iter().map(|job| (*job).to_owned()).collect(),
            run: String::new(),
        }
    }

    #[test]
    fn failures_of_jobs_that_still_fail_are_not_shown_twice() {
        let open = Cause { jobs: vec!["a".to_owned()], paused: false, count: 2, since: None, reason: None };
        let groups = vec![
            group("mail", "refused", &["a", "b"], "2026-11-15T06:00:00Z"),
            group("mail", "timeout", &["c"], "2026-11-15T07:00:00Z"),
        ];
        let left = recovered(groups, &[open]);
        assert_eq!(left.iter().map(|group| group.message.as_str()).collect::<Vec<_>>(), ["timeout"]);
    }
}
