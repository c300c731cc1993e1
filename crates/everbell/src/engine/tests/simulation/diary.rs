//! Calls as the handlers saw them: the truth of a simulation, whatever the rows say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use everbell_core::{EarlierAttempt, JobId, OnLeaseLoss, OnLost, Run as Record, RunId, RunStatus, TriggerType};

use crate::engine::Attempt;
use crate::run::Run;

/// Kept by all handlers of all instances.
#[derive(Default)]
pub(super) struct Diary(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    /// How often a handler began each attempt.
    begun: BTreeMap<Attempt, u32>,
    at_work: Vec<AtWork>,
    /// Runs whose handler was at work when its instance crashed.
    lost: BTreeSet<RunId>,
    /// How often a handler of a run was stopped by a shutdown.
    stops: BTreeMap<RunId, u32>,
    /// Instances that stand still, and their handlers with them.
    frozen: BTreeSet<u64>,
    complaints: Vec<String>,
}

impl Pages {
    fn at_work_on(&self, instance: u64) -> impl Iterator<Item = RunId> {
        self.at_work.iter().filter(move |entry| entry.instance == instance).map(|entry| entry.attempt.0)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct AtWork {
    attempt: Attempt,
    job: JobId,
    /// Not by hand, which may ask to run beside others.
    scheduled: bool,
    instance: u64,
}

/// A handler at work, until it is dropped.
pub(super) struct Working {
    diary: Arc<Diary>,
    entry: AtWork,
}

impl Drop for Working {
    fn drop(&mut self) {
        let mut pages = self.diary.pages();
        if let Some(place) = pages.at_work.iter().position(|entry| *entry == self.entry) {
            pages.at_work.swap_remove(place);
        }
    }
}

impl Diary {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap()
    }

    /// A handler begins. `record` is what the store says about its run at this moment.
    pub(super) fn begin(self: &Arc<Diary>, run: &Run, record: &Record, instance: u64) -> Working {
        let job = run.job().expect("all runs of a play belong to jobs");
        let entry = AtWork {
            attempt: (run.id(), run.attempt()),
            job: job.id,
            scheduled: run.trigger().kind() == TriggerType::Scheduled,
            instance,
        };
        let mut pages = self.pages();
        *pages.begun.entry(entry.attempt).or_default() += 1;
        if (record.status, record.attempt) != (RunStatus::Running, run.attempt()) {
            let (id, mine) = entry.attempt;
            let is = format!("attempt {} is {}", record.attempt, record.status);
            pages.complaints.push(format!("attempt {mine} of {id} began on instance {instance} when {is}"));
        }
        let starts: u32 = pages.begun.iter().filter(|((id, _), _)| *id == run.id()).map(|(_, times)| times).sum();
        let stops = pages.stops.get(&run.id()).copied().unwrap_or_default();
        let uncounted = EarlierAttempt::uncounted(run.earlier_attempts());
        if uncounted > stops || (uncounted > 0 && job.policies.on_lost == OnLost::Fail) {
            let complaint = format!("{uncounted} attempts of run {} do not count, after {stops} stops", run.id());
            pages.complaints.push(complaint);
        }
        if starts > job.policies.max_attempts + uncounted {
            let allowed = job.policies.max_attempts;
            pages.complaints.push(format!("run {} began {starts} times, of {allowed} allowed", run.id()));
        }
        if job.policies.on_lost == OnLost::Fail && pages.lost.contains(&run.id()) {
            pages.complaints.push(format!("run {} began again after it was lost", run.id()));
        }
        let counts =
            |other: &&AtWork| other.job == job.id && other.scheduled && !pages.frozen.contains(&other.instance);
        let others = pages.at_work.iter().filter(counts);
        let others: Vec<String> = others.map(|other| format!("{} on {}", other.attempt.0, other.instance)).collect();
        if entry.scheduled
            && job.policies.lease_loss() == OnLeaseLoss::Stop
            && job.policies.overlap != everbell_core::Overlap::Allow
            && others.len() >= job.policies.max_concurrent_runs as usize
        {
            let complaint = format!("run {} on {instance} began beside {}", run.id(), others.join(", "));
            pages.complaints.push(complaint);
        }
        pages.at_work.push(entry);
        drop(pages);
        Working { diary: Arc::clone(self), entry }
    }

    /// An instance crashes: the runs that it works on are lost.
    pub(super) fn crash(&self, instance: u64) {
        let mut pages = self.pages();
        let lost: Vec<RunId> = pages.at_work_on(instance).collect();
        pages.lost.extend(lost);
    }

    /// An instance shuts down and stops the handlers of these runs, also those that have not begun.
    pub(super) fn stop(&self, runs: impl IntoIterator<Item = RunId>) {
        let mut pages = self.pages();
        for run in runs {
            *pages.stops.entry(run).or_default() += 1;
        }
    }

    pub(super) fn freeze(&self, instance: u64) {
        self.pages().frozen.insert(instance);
    }

    pub(super) fn thaw(&self, instance: u64) {
        self.pages().frozen.remove(&instance);
    }

    pub(super) fn has_begun(&self, attempt: Attempt) -> bool {
        self.pages().begun.contains_key(&attempt)
    }

    pub(super) fn complaints(&self) -> Vec<String> {
        let pages = self.pages();
        let twice = pages.begun.iter().filter(|(_, times)| **times > 1);
        let twice = twice.map(|((run, attempt), times)| format!("attempt {attempt} of {run} began {times} times"));
        pages.complaints.iter().cloned().chain(twice).collect()
    }
}
