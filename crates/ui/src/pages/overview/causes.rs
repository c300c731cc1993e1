//! Problems by cause: jobs that fail for the same reason are one line. Nothing is read or rendered here.

use std::collections::BTreeMap;

use everbell::{JobRow, JobStatus};
use everbell_core::alert::{self, Kind};
use jiff::Timestamp;

use super::attention::{FailureGroup, cause_key};
use crate::chart::{counted, grouped};

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

/// The open problems that no other line shows: failing jobs have a line for failures, jobs that cannot fire one for the error.
pub(super) fn untold<'a>(open: &'a [alert::Problem], causes: &[Cause], errored: &[JobRow]) -> Vec<&'a alert::Problem> {
    let fails = |key: &str| causes.iter().any(|cause| cause.jobs.iter().any(|job| job == key));
    let cannot_fire = |key: &str| errored.iter().any(|row| row.job.definition.key.as_str() == key);
    let is_told = |problem: &alert::Problem| match problem.kind {
        Kind::Failed | Kind::NoSuccess | Kind::AutoPaused => problem.job().is_some_and(|job| fails(job.as_str())),
        Kind::JobError => problem.job().is_some_and(|job| cannot_fire(job.as_str())),
        Kind::Missed | Kind::Skipped | Kind::LateStart | Kind::TooLong | Kind::InstanceLost => false,
    };
    open.iter().filter(|problem| !is_told(problem)).collect()
}

/// The failures of the day that no problem covers. Not all of them are over: one-time jobs have no next run, and another org
/// may have succeeded.
pub(super) fn others(failures: Vec<FailureGroup>, causes: &[Cause]) -> Vec<FailureGroup> {
    let is_open =
        |group: &FailureGroup| causes.iter().any(|cause| group.jobs.iter().any(|job| cause.jobs.contains(job)));
    failures.into_iter().filter(|group| !is_open(group)).collect()
}

/// `22 other failures`, or `500+ other failures` of a list that was cut.
pub(super) fn other_failures(others: &[FailureGroup], is_cut: bool) -> String {
    let count: u64 = others.iter().map(|group| group.count as u64).sum();
    if is_cut { format!("{}+ other failures", grouped(count)) } else { counted(count, "other failure") }
}

/// The first line of the overview.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Health {
    /// How many problems there are.
    pub(super) problems: u64,
    /// Whether there may be more.
    pub(super) more: bool,
    /// How many jobs there are; `None` if they could not be counted.
    pub(super) jobs: Option<u64>,
    /// How many runs ended well and badly in the last day; unknown if the role may not read runs.
    pub(super) runs: Option<(u64, u64, u64)>,
}

impl Health {
    /// Whether there is nothing to worry about, `None` if that is unknown.
    pub(super) fn is_good(&self) -> Option<bool> {
        match self.problems {
            0 => self.jobs.filter(|_| !self.more).map(|_| true),
            _ => Some(false),
        }
    }

    /// `1 problem`, `10+ problems`.
    pub(super) fn problems_text(&self) -> String {
        if self.more { format!("{}+ problems", self.problems) } else { counted(self.problems, "problem") }
    }

    /// `77 jobs, 1,159 runs in 24 h, 99.2% ok`.
    pub(super) fn facts(&self) -> String {
        let jobs = self.jobs.map_or_else(|| "jobs could not be counted".to_owned(), |jobs| counted(jobs, "job"));
        let Some((good, bad, all)) = self.runs else { return jobs };
        let runs = counted(all, "run");
        match percent(good, bad) {
            Some(share) => format!("{jobs}, {runs} in 24 h, {share} ok"),
            None => format!("{jobs}, {runs} in 24 h"),
        }
    }
}

/// `99.2%`. A share that is not quite all is never rounded to all, and one that is not nothing never to nothing.
pub(super) fn percent(good: u64, bad: u64) -> Option<String> {
    let all = good.checked_add(bad).filter(|all| *all > 0)?;
    if bad == 0 {
        return Some("100%".to_owned());
    }
    let tenths = (u128::from(good) * 1_000 / u128::from(all)) as u64;
    let tenths = if good > 0 { tenths.max(1) } else { tenths };
    Some(if tenths.is_multiple_of(10) {
        format!("{}%", tenths / 10)
    } else {
        format!("{}.{}%", tenths / 10, tenths % 10)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn facts_name_jobs_runs_and_the_share_that_succeeded() {
        let health = |runs| Health { problems: 0, more: false, jobs: Some(77), runs };
        assert_eq!(health(Some((1_150, 9, 1_159))).facts(), "77 jobs, 1,159 runs in 24 h, 99.2% ok");
        assert_eq!(health(Some((0, 0, 1))).facts(), "77 jobs, 1 run in 24 h");
        assert_eq!(health(None).facts(), "77 jobs");
    }

    #[test]
    fn nothing_is_called_well_that_could_not_be_counted() {
        let health = |problems, more, jobs| Health { problems, more, jobs, runs: None };
        assert_eq!(health(0, false, Some(3)).is_good(), Some(true));
        assert_eq!((health(0, false, None).is_good(), health(0, true, Some(3)).is_good()), (None, None));
        assert_eq!(health(0, false, None).facts(), "jobs could not be counted");
        assert_eq!(health(1, false, None).is_good(), Some(false));
        let texts = [(1, false), (1_200, false), (10, true)].map(|(all, more)| health(all, more, None).problems_text());
        assert_eq!(texts, ["1 problem", "1,200 problems", "10+ problems"]);
    }

    fn problem(kind: Kind, job: &str) -> alert::Problem {
        let at: Timestamp = "2026-11-15T06:00:00Z".parse().unwrap();
        alert::Problem {
            id: uuid::Uuid::nil(),
            kind,
            subject: alert::Subject::Job(everbell_core::JobKey::new(job).unwrap()),
            opened_at: at,
            closed_at: None,
            closed_because: None,
            since: at,
            mark_at: at,
            count: 1,
            reason: String::new(),
            run: None,
            told: Vec::new(),
            acknowledged: None,
            muted: None,
        }
    }

    #[test]
    fn a_problem_is_told_once() {
        let fails = Cause { jobs: vec!["a".to_owned()], paused: false, count: 2, since: None, reason: None };
        let open = [
            problem(Kind::Failed, "a"),
            problem(Kind::NoSuccess, "a"),
            problem(Kind::Missed, "a"),
            problem(Kind::NoSuccess, "b"),
            problem(Kind::AutoPaused, "b"),
            problem(Kind::JobError, "b"),
        ];
        let left = untold(&open, &[fails], &[]);
        let kinds: Vec<_> = left.iter().map(|problem| (problem.job().unwrap().as_str(), problem.kind)).collect();
        let expected = [("a", Kind::Missed), ("b", Kind::NoSuccess), ("b", Kind::AutoPaused), ("b", Kind::JobError)];
        assert_eq!(kinds, expected);
    }

    #[test]
    fn a_share_is_all_or_nothing_only_if_it_is() {
        assert_eq!(percent(0, 0), None);
        assert_eq!(percent(10, 0).as_deref(), Some("100%"));
        assert_eq!(percent(99_999, 1).as_deref(), Some("99.9%"));
        assert_eq!(percent(1, 99_999).as_deref(), Some("0.1%"));
        assert_eq!(percent(0, 3).as_deref(), Some("0%"));
    }

    proptest! {
        #[test]
        fn every_share_is_between_nothing_and_all(good: u32, bad: u32) {
            prop_assume!(good > 0 && bad > 0);
            let share = percent(u64::from(good), u64::from(bad)).unwrap();
            let number: f64 = share.trim_end_matches('%').parse().unwrap();
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
        let left = others(groups, &[open]);
        assert_eq!(left.iter().map(|group| group.message.as_str()).collect::<Vec<_>>(), ["timeout"]);
    }
}
