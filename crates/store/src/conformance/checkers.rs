//! Invariants of a store, whatever happened before: for every test that drives one.
//!
//! Each checker returns complaints, so that a simulation can print its seed beside all of them. They read through the
//! contract only. History must not have been pruned: a slot without an outcome is what they look for.

use std::collections::{BTreeMap, BTreeSet};

use everbell_core::store::{GapFilter, JobFilter, JobRow, PageRequest, RunFilter, Store};
use everbell_core::{Definition, Gap, JobId, JobStatus, OrgId, Run, RunId, RunStatus, Scope, Timer};
use jiff::Timestamp;

/// The most slots of one job that are walked one by one.
const MAX_SLOTS: usize = 100_000;

/// Everything that checkers look at.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Every version of every job.
    pub jobs: Vec<JobRow>,
    /// Every run.
    pub runs: Vec<Run>,
    /// Every gap.
    pub gaps: Vec<(JobId, Option<OrgId>, Gap)>,
    /// Whether a clock was ahead for a while. Runs of that future stay when marks go back to now, and a gap that is
    /// written over them later covers the other slots of its range.
    pub was_ahead: bool,
}

/// Fails with every complaint there is.
pub async fn assert_sound(store: &dyn Store) {
    let complaints = Snapshot::read(store).await.complaints();
    assert!(complaints.is_empty(), "{} complaint(s):\n{}", complaints.len(), complaints.join("\n"));
}

impl Snapshot {
    /// Reads everything, page by page. There should be no writer meanwhile.
    pub async fn read(store: &dyn Store) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let mut next = PageRequest { limit: 1_000, after: None };
        loop {
            let page = store.list_jobs(&JobFilter::default(), &next).await.unwrap();
            snapshot.jobs.extend(page.items);
            next.after = page.next;
            if next.after.is_none() {
                break;
            }
        }
        loop {
            let page = store.list_runs(&RunFilter::default(), &next).await.unwrap();
            snapshot.runs.extend(page.items);
            next.after = page.next;
            if next.after.is_none() {
                break;
            }
        }
        loop {
            let page = store.list_gaps(&GapFilter::default(), &next).await.unwrap();
            snapshot.gaps.extend(page.items);
            next.after = page.next;
            if next.after.is_none() {
                return snapshot;
            }
        }
    }

    /// Returns the complaints of all checkers.
    pub fn complaints(&self) -> Vec<String> {
        let mut complaints = self.runs_per_slot();
        complaints.extend(self.unaccounted_slots());
        complaints.extend(self.impossible_runs());
        complaints.extend(self.impossible_jobs());
        complaints
    }

    /// At most one run for each job, org and slot, and each id once.
    pub fn runs_per_slot(&self) -> Vec<String> {
        let mut slots: BTreeMap<_, RunId> = BTreeMap::new();
        let mut ids = BTreeSet::new();
        let mut complaints = Vec::new();
        for run in &self.runs {
            if !ids.insert(run.id) {
                complaints.push(format!("run {} is listed twice", run.id));
            }
            let (Some(job), Some(slot)) = (run.job_id, run.slot_at) else { continue };
            if let Some(other) = slots.insert((job, &run.org, slot), run.id) {
                complaints.push(format!("slot {slot} of job {job} has the runs {other} and {}", run.id));
            }
        }
        complaints
    }

    /// Every slot from a job's creation to its mark in exactly one run or gap, and nothing beyond the mark. A version before
    /// may have settled slots ahead.
    pub fn unaccounted_slots(&self) -> Vec<String> {
        let global = self.jobs.iter().filter(|row| row.job.definition.scope == Scope::Global);
        global
            .filter_map(|row| Some((row, row.timer.as_ref()?)))
            .flat_map(|(row, timer)| self.of_job(row, timer))
            .collect()
    }

    fn of_job(&self, row: &JobRow, timer: &Timer) -> Vec<String> {
        let definition = &row.job.definition;
        let Ok(spec) = &definition.spec else { return Vec::new() };
        let runs: BTreeSet<Timestamp> =
            self.runs.iter().filter(|run| run.job_id == Some(definition.id)).filter_map(|run| run.slot_at).collect();
        let ahead: BTreeSet<Timestamp> =
            self.runs.iter().filter(|run| is_before(run, definition)).filter_map(|run| run.slot_at).collect();
        let gaps: Vec<&Gap> =
            self.gaps.iter().filter(|(job, _, _)| *job == definition.id).map(|(_, _, gap)| gap).collect();
        let covering =
            |slot: Timestamp| gaps.iter().filter(|gap| (gap.first_slot_at..=gap.last_slot_at).contains(&slot)).count();
        let name = format!("{}@{}", definition.key, definition.version);
        let mark = timer.last_slot_at;
        let mut complaints = Vec::new();
        let slots = spec.slots_after(definition.created_at).take_while(|slot| *slot <= mark).take(MAX_SLOTS);
        let mut known = 0;
        for slot in slots {
            known += usize::from(runs.contains(&slot));
            let (in_runs, in_gaps) = ([&runs, &ahead].iter().filter(|own| own.contains(&slot)).count(), covering(slot));
            let in_gaps = if self.was_ahead && in_runs > 0 { 0 } else { in_gaps };
            if in_runs + in_gaps != 1 {
                complaints.push(format!("slot {slot} of {name} is in {in_runs} run(s) and {in_gaps} gap(s)"));
            }
        }
        if known != runs.len() {
            let foreign = runs.iter().filter(|slot| **slot > mark || !spec.matches(**slot));
            complaints.extend(foreign.map(|slot| format!("the run at {slot} of {name} is beyond the mark or no slot")));
        }
        let beyond = gaps.iter().filter(|gap| gap.last_slot_at > mark);
        complaints.extend(beyond.map(|gap| format!("{gap:?} of {name} is beyond the mark {mark}")));
        complaints
    }

    /// Judges a store whose clock was ahead for a while: runs of slots that their job has not reached yet do not count.
    pub fn forget_ahead(&mut self) {
        self.was_ahead = true;
        let marks: BTreeMap<_, _> = self
            .jobs
            .iter()
            .filter_map(|row| Some((row.job.definition.id, row.timer.as_ref()?.last_slot_at)))
            .collect();
        self.runs.retain(|run| {
            let mark = run.job_id.and_then(|job| marks.get(&job));
            mark.is_none_or(|mark| run.slot_at.is_none_or(|slot| slot <= *mark))
        });
    }

    /// Runs whose fields contradict their status.
    pub fn impossible_runs(&self) -> Vec<String> {
        let is_whole = |run: &&Run| match run.status {
            RunStatus::Pending => run.lease_until.is_none() && run.finished_at.is_none(),
            RunStatus::Running => {
                run.lease_until.is_some()
                    && run.claimed.is_some()
                    && run.started_at.is_some()
                    && run.attempt > 0
                    && !run.held
            }
            RunStatus::Succeeded => run.finished_at.is_some() && run.failure.is_none() && run.attempt > 0,
            RunStatus::Failed => run.finished_at.is_some() && run.failure.is_some() && run.attempt > 0,
            RunStatus::Canceled => run.finished_at.is_some() && run.failure.is_some(),
            RunStatus::Skipped => run.skip.is_some() && run.attempt == 0,
        };
        let is_over = |run: &&Run| !run.status.is_terminal() || (run.lease_until.is_none() && !run.held);
        let broken = self.runs.iter().filter(|run| !is_whole(run) || !is_over(run));
        broken.map(|run| format!("impossible: {run:?}")).collect()
    }

    /// Two living versions of a key, a version twice, or an armed timer of a job that must not fire.
    pub fn impossible_jobs(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        let (mut living, mut versions) = (BTreeSet::new(), BTreeSet::new());
        for JobRow { job, timer, .. } in &self.jobs {
            let definition = &job.definition;
            if job.state.status != JobStatus::Retired && !living.insert(&definition.key) {
                complaints.push(format!("job `{}` has two living versions", definition.key));
            }
            if !versions.insert((&definition.key, definition.version)) {
                complaints.push(format!("job `{}` has version {} twice", definition.key, definition.version));
            }
            let may_fire = job.state.status == JobStatus::Active && job.state.error.is_none();
            if !may_fire && timer.as_ref().is_some_and(|timer| timer.next_run_at.is_some()) {
                complaints.push(format!("job `{}` is {} and armed", definition.key, job.state.status));
            }
        }
        complaints
    }

    /// Runs that are neither pending nor running no more.
    pub fn unfinished_runs(&self) -> Vec<String> {
        let active = self.runs.iter().filter(|run| !run.status.is_terminal());
        active.map(|run| format!("run {} is still {}", run.id, run.status)).collect()
    }
}

/// Whether a run is of an earlier version of this job.
fn is_before(run: &Run, job: &Definition) -> bool {
    run.job_key.as_ref() == Some(&job.key) && run.job_version.is_some_and(|version| version < job.version)
}
