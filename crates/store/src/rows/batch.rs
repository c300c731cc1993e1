//! Plans and transitions as the rows that carry them: what both databases write, before either is asked.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use everbell_core::plan::Plan;
use everbell_core::settle::{Next, Transition, cancel_retry};
use everbell_core::store::{AuditEntry, Planned, PlannedRun, Recorded, StartRuns};
use everbell_core::{Definition, Gap, JobId, NewRun, OrgId, RunId, RunStatus, SkipReason, Timer};
use jiff::Timestamp;
use uuid::Uuid;

use super::chain::End;
use super::{RunValues, TimerColumns, errored, org_text};
use crate::micros::Micros;

/// A row for `gaps`.
#[derive(Clone, Debug)]
pub(crate) struct GapValues {
    pub(crate) id: Uuid,
    pub(crate) job_id: Uuid,
    pub(crate) org_id: String,
    pub(crate) gap: Gap,
    /// The id and the last slot of the gap that grows instead, if it is there.
    pub(crate) earlier: Option<(Uuid, Micros)>,
}

/// A gap that another one continues.
pub(crate) struct LongerGap {
    /// The id of the gap that continues it.
    pub(crate) id: Uuid,
    pub(crate) earlier: Uuid,
    /// Its last slot until now.
    pub(crate) ended_at: Micros,
    pub(crate) last_slot_at: Micros,
    /// How many slots more.
    pub(crate) slots: i64,
}

/// A row for `timers`, with the last of the runs that were written with it.
#[derive(Debug)]
pub(crate) struct TimerValues<'a> {
    pub(crate) timer: &'a TimerColumns,
    /// Its time and id. `None` for runs of orgs: their jobs have many timers, none of which knows the last run.
    pub(crate) last_run: Option<(Micros, Uuid)>,
}

impl From<&Timer> for TimerColumns {
    fn from(timer: &Timer) -> Self {
        TimerColumns {
            job_id: timer.job_id.as_uuid(),
            org_id: org_text(timer.org.as_ref()).to_owned(),
            next_run_at: timer.next_run_at.map(Into::into),
            last_slot_at: timer.last_slot_at.into(),
            rescheduled_from: timer.rescheduled_from.map(Into::into),
            last_local_date: timer.last_local_date.map(|date| date.to_string()),
        }
    }
}

/// Everything that a round of plans wants written.
#[derive(Default)]
pub(crate) struct PlanBatch {
    pub(crate) runs: Vec<RunValues>,
    pub(crate) gaps: Vec<GapValues>,
    /// Each with its places in `runs`.
    pub(crate) timers: Vec<(TimerColumns, Range<usize>)>,
    pub(crate) cancel: Vec<Uuid>,
    pub(crate) retire: Vec<Uuid>,
    pub(crate) errors: Vec<(Uuid, String)>,
    /// Timers of orgs that cannot be armed any more.
    pub(crate) org_errors: Vec<OrgError>,
    /// The plans behind `runs`, in the same order.
    planned: Vec<(Arc<Definition>, Option<OrgId>, NewRun)>,
    planned_gaps: Vec<(JobId, Gap)>,
    pub(crate) starts: Option<Starts>,
    /// Whether a current job of the targets has a priority.
    pub(crate) by_priority: bool,
}

impl PlanBatch {
    pub(crate) fn add(&mut self, job: &Arc<Definition>, plan: Plan) {
        let (timer, before) = (TimerColumns::from(&plan.timer), self.runs.len());
        self.add_effects(job, plan);
        self.timers.push((timer, before..self.runs.len()));
    }

    /// The timers, once it is known which runs are new.
    pub(crate) fn timers_after(&self, inserted: &HashSet<Uuid>) -> Vec<TimerValues<'_>> {
        // What an operator skipped is ahead, and no run that was.
        let was = |run: &&RunValues| {
            run.org_id.is_empty() && run.skip_reason != Some("operator") && inserted.contains(&run.id)
        };
        let last = |runs: &Range<usize>| self.runs[runs.clone()].iter().filter(was).map(|run| (run.at, run.id)).max();
        self.timers.iter().map(|(timer, runs)| TimerValues { timer, last_run: last(runs) }).collect()
    }

    /// Everything but the timer.
    pub(crate) fn add_effects(&mut self, job: &Arc<Definition>, plan: Plan) {
        let org: Option<&OrgId> = plan.timer.org.as_ref();
        for (gap, earlier) in plan.gaps_to_write() {
            let (id, job_id, org_id) = (gap.id(job.id, org), job.id.as_uuid(), org_text(org).to_owned());
            let earlier = earlier.map(|earlier| (earlier.id(job.id, org), earlier.last_slot_at.into()));
            self.gaps.push(GapValues { id, job_id, org_id, gap: gap.clone(), earlier });
        }
        for run in plan.runs {
            self.runs.push(RunValues::of_plan(&run, job, org));
            self.planned.push((Arc::clone(job), org.cloned(), run));
        }
        self.planned_gaps.extend(plan.gaps.into_iter().map(|gap| (job.id, gap)));
        self.cancel.extend(plan.cancel.iter().map(RunId::as_uuid));
        if plan.retire {
            self.retire.push(job.id.as_uuid());
        }
        if let Some(error) = plan.error {
            self.errors.push((job.id.as_uuid(), error));
        }
        if let (Some(error), Some(org)) = (plan.org_error, org) {
            self.org_errors.push(OrgError { job: Arc::clone(job), org: org.to_string(), why: error });
        }
    }

    /// The gaps that may continue earlier ones.
    pub(crate) fn longer_gaps(&self) -> impl Iterator<Item = LongerGap> {
        self.gaps.iter().filter_map(|GapValues { id, gap, earlier, .. }| {
            let (earlier, ended_at) = (*earlier)?;
            let slots = i64::try_from(gap.slots).unwrap_or(i64::MAX);
            Some(LongerGap { id: *id, earlier, ended_at, last_slot_at: gap.last_slot_at.into(), slots })
        })
    }

    /// Adds a timer whose job cannot be read: it is disarmed and the job errored; others are not affected.
    pub(crate) fn add_without_job(&mut self, timer: TimerColumns, why: String) {
        self.errors.push((timer.job_id, why));
        self.disarm(timer);
    }

    /// A timer that cannot be read: it is disarmed and errored with its job, or alone, if the job has others.
    pub(crate) fn add_unreadable(&mut self, job: Arc<Definition>, timer: TimerColumns, why: String) {
        if timer.org_id.is_empty() {
            return self.add_without_job(timer, why);
        }
        self.org_errors.push(OrgError { job, org: timer.org_id.clone(), why });
        self.disarm(timer);
    }

    fn disarm(&mut self, timer: TimerColumns) {
        let timer = TimerColumns { next_run_at: None, rescheduled_from: None, ..timer };
        self.timers.push((timer, 0..0));
    }

    /// Returns the audit entries about orgs whose timers became errored.
    pub(crate) fn entries(&self, now: Timestamp) -> Vec<AuditEntry> {
        let named = self.org_errors.iter().filter_map(|error| Some((error, OrgId::new(&error.org).ok()?)));
        let named: Vec<_> = named.collect();
        errored::of_orgs(named.iter().map(|(error, org)| (&*error.job, org, &error.why)), now)
    }

    /// Picks the runs that start with their plan.
    pub(crate) fn start(&mut self, request: &StartRuns<'_>) {
        let picked = request.picks(self.planned.iter().map(|(job, _, run)| (&**job, run)));
        if !picked.is_empty() {
            let runs = self.runs.iter().filter(|run| run.skip_reason.is_none()).count();
            self.starts = Some(Starts {
                instance: request.instance.as_uuid(),
                now: request.now.into(),
                lease_until: request.lease_until.into(),
                ids: picked.iter().map(|place| self.runs[*place].id).collect(),
                are_all: picked.len() == runs,
                picked,
            });
        }
    }

    /// The runs that do not start with their plan.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &RunValues> {
        let all = self.starts.as_ref().is_some_and(|starts| starts.are_all);
        self.runs.iter().filter(move |_| !all)
    }

    /// Returns the result of the plans, given the runs that were really inserted, and how they were to start.
    pub(crate) fn into_planned(
        self,
        inserted: &HashSet<Uuid>,
        start: Option<&StartRuns<'_>>,
        next_due_at: Option<Micros>,
    ) -> Planned {
        let is_new = |run: &NewRun| inserted.contains(&run.id.as_uuid());
        let new = self.planned.iter().filter(|(_, _, run)| is_new(run));
        let runs = new.map(|(job, _, run)| PlannedRun {
            id: run.id,
            job: Arc::clone(job),
            slot_at: run.slot_at,
            skipped: run.skip.as_ref().map(SkipReason::as_str),
        });
        let runs = runs.collect();
        let mut planned: Vec<_> = self.planned.into_iter().map(Some).collect();
        // Those that started with their plan, in the order in which they start.
        let claim = |(request, place): (&StartRuns<'_>, &usize)| {
            let (job, org, run) = planned[*place].take().filter(|(_, _, run)| is_new(run))?;
            Some(request.claim(&job, org, run))
        };
        let started = start.zip(self.starts.as_ref());
        let places =
            started.into_iter().flat_map(|(request, starts)| starts.picked.iter().map(move |at| (request, at)));
        let claims = places.filter_map(claim).collect();
        Planned {
            timers: self.timers.len() as u32,
            by_priority: self.by_priority,
            claims,
            runs,
            gaps: self.planned_gaps,
            errored: self.errors.into_iter().map(|(id, error)| (JobId::from_uuid(id), error)).collect(),
            org_errors: self.org_errors.into_iter().filter_map(OrgError::into_reported).collect(),
            next_due_at: next_due_at.map(Into::into),
        }
    }
}

/// The runs of a batch that start with their plan.
pub(crate) struct Starts {
    pub(crate) instance: Uuid,
    pub(crate) now: Micros,
    pub(crate) lease_until: Micros,
    pub(crate) ids: Vec<Uuid>,
    /// Whether all runs start that are not skipped.
    pub(crate) are_all: bool,
    /// Their places, in the order in which they start.
    picked: Vec<usize>,
}

/// A timer of an org that cannot be armed, and why.
#[derive(Clone)]
pub(crate) struct OrgError {
    pub(crate) job: Arc<Definition>,
    pub(crate) org: String,
    pub(crate) why: String,
}

impl OrgError {
    /// Returns the error for events, unless the id of the org cannot be read; then only its timer shows it.
    fn into_reported(self) -> Option<(JobId, OrgId, String)> {
        Some((self.job.id, OrgId::new(&self.org).ok()?, self.why))
    }
}

/// The answers of `record`, collected while its statements return.
pub(crate) struct Recording {
    answers: Vec<Option<Applied>>,
}

#[derive(Clone)]
struct Applied {
    job: Option<Uuid>,
    failures: u32,
    /// The actor who had asked for the cancellation of a run that would be retried.
    canceled_by: Option<String>,
}

impl Recording {
    pub(crate) fn new(transitions: &[Transition]) -> Recording {
        Recording { answers: vec![None; transitions.len()] }
    }

    /// Returns the indexes of the transitions in waves, so that no wave has a run twice. There is one wave, unless a
    /// batch has two transitions of the same run, which are then written one after the other.
    pub(crate) fn waves(transitions: &[Transition]) -> Vec<Vec<usize>> {
        let mut times: HashMap<RunId, usize> = HashMap::with_capacity(transitions.len());
        let mut waves: Vec<Vec<usize>> = Vec::new();
        for (place, transition) in transitions.iter().enumerate() {
            let wave = times.entry(transition.run_id).or_default();
            if *wave == waves.len() {
                waves.push(Vec::new());
            }
            waves[*wave].push(place);
            *wave += 1;
        }
        waves
    }

    /// Whether every run succeeded, if it is still guarded: then no failures have to be counted.
    pub(crate) fn only_successes(transitions: &[Transition]) -> bool {
        transitions.iter().all(|transition| ended(transition) == Some(RunStatus::Succeeded))
    }

    /// Of this wave, these runs were still guarded: with their jobs.
    pub(crate) fn applied(&mut self, transitions: &[Transition], wave: &[usize], runs: &HashMap<Uuid, Option<Uuid>>) {
        for place in wave {
            let job = runs.get(&transitions[*place].run_id.as_uuid());
            self.answers[*place] = job.map(|job| Applied { job: *job, failures: 0, canceled_by: None });
        }
    }

    /// Of this wave, these runs are to be canceled instead of retried, with the actors who asked for it. Returns the
    /// transitions that do.
    pub(crate) fn canceled(
        &mut self,
        transitions: &[Transition],
        wave: &[usize],
        asked: &HashMap<Uuid, String>,
        now: Timestamp,
    ) -> Vec<Transition> {
        let mut instead = Vec::new();
        for place in wave {
            let transition = &transitions[*place];
            let Some(by) = asked.get(&transition.run_id.as_uuid()) else { continue };
            let Some(canceled) = cancel_retry(transition, by, now) else { continue };
            if let Some(applied) = &mut self.answers[*place] {
                applied.canceled_by = Some(by.clone());
                instead.push(canceled);
            }
        }
        instead
    }

    /// The runs that ended, with their jobs.
    pub(crate) fn ended(&self, transitions: &[Transition]) -> Vec<(Uuid, Uuid)> {
        let pairs = transitions.iter().zip(&self.answers);
        pairs
            .filter(|(transition, answer)| {
                ended(transition).is_some() || answer.as_ref().is_some_and(|applied| applied.canceled_by.is_some())
            })
            .filter_map(|(transition, answer)| Some((transition.run_id.as_uuid(), answer.as_ref()?.job?)))
            .collect()
    }

    /// How the runs ended that did.
    pub(crate) fn ends(&self, transitions: &[Transition], now: Timestamp) -> Vec<End> {
        let pairs = transitions.iter().zip(&self.answers);
        let end = |(transition, answer): (&Transition, &Option<Applied>)| {
            let canceled = answer.as_ref()?.canceled_by.as_ref().and_then(|by| cancel_retry(transition, by, now));
            match canceled.map_or_else(|| transition.to.clone(), |canceled| canceled.to) {
                Next::Finish { status, finished_at, .. } => Some((transition.run_id.as_uuid(), status, finished_at)),
                Next::Retry { .. } => None,
            }
        };
        pairs.filter_map(end).collect()
    }

    /// Returns the jobs whose consecutive failures are to be counted, and whether all succeeded: then clearing is
    /// enough.
    pub(crate) fn jobs(&self, transitions: &[Transition]) -> (Vec<Uuid>, bool) {
        let mut jobs = Vec::new();
        let mut only_successes = true;
        for (transition, answer) in transitions.iter().zip(&self.answers) {
            let Some(job) = answer.as_ref().and_then(|applied| applied.job) else { continue };
            only_successes &= ended(transition) == Some(RunStatus::Succeeded);
            jobs.push(job);
        }
        jobs.sort_unstable();
        jobs.dedup();
        (jobs, only_successes)
    }

    /// Counts failures in a row in the order of the transitions, from what each job had. The answer is what each has now.
    pub(crate) fn count(&mut self, transitions: &[Transition], had: &BTreeMap<Uuid, u32>) -> BTreeMap<Uuid, u32> {
        let mut now = had.clone();
        for (transition, answer) in transitions.iter().zip(&mut self.answers) {
            let Some(applied) = answer else { continue };
            let Some(failures) = applied.job.and_then(|job| now.get_mut(&job)) else { continue };
            match ended(transition) {
                Some(RunStatus::Failed) => *failures += 1,
                Some(RunStatus::Succeeded) => *failures = 0,
                _ => {}
            }
            applied.failures = *failures;
        }
        now
    }

    pub(crate) fn into_recorded(self) -> Vec<Recorded> {
        let recorded = |answer: Option<Applied>| match answer {
            Some(Applied { canceled_by: Some(by), .. }) => Recorded::Canceled { by },
            Some(Applied { failures, .. }) => Recorded::Applied { consecutive_failures: failures },
            None => Recorded::LeaseLost,
        };
        self.answers.into_iter().map(recorded).collect()
    }
}

fn ended(transition: &Transition) -> Option<RunStatus> {
    match &transition.to {
        Next::Finish { status, .. } => Some(*status),
        Next::Retry { .. } => None,
    }
}
