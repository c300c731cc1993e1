//! Everything that is stored, and the writes that more than one verb makes.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use everbell_core::backfill::Backfill;
use everbell_core::calendar::CalendarName;
use everbell_core::chain::RunGroup;
use everbell_core::freeze::Freeze;
use everbell_core::org::{Org, OrgUpdate, Override};
use everbell_core::plan::Plan;
use everbell_core::settle::{Next, Outcome, Settling, settle};
pub(super) use everbell_core::store::micros;
use everbell_core::store::{AuditEntry, Deed, Instance, Session, StoredCalendar, StoredTarget, Token};
use everbell_core::{
    ActiveRun, App, BackfillId, Definition, Failure, Gap, Job, JobId, JobKey, JobStatus, Json,
    MAX_FAILURE_MESSAGE_BYTES, NewRun, OrgId, Releases, Run, RunId, RunStatus, Target, Timer, storable_text,
};
use jiff::Timestamp;
use uuid::Uuid;

use crate::rows::errored;

#[derive(Clone, Debug)]
pub(super) struct StoredSession {
    pub(super) hash: [u8; 32],
    pub(super) session: Session,
}

/// The actor of the store's own actions.
const EVERBELL: &str = "everbell";

/// The owner of a timer and of an overlap: a job, or a job for an org.
pub(super) type Owner = (JobId, Option<OrgId>);

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) jobs: BTreeMap<JobId, Job>,
    pub(super) timers: BTreeMap<Owner, Timer>,
    /// Why the timer of an org cannot be armed.
    pub(super) timer_errors: BTreeMap<Owner, String>,
    pub(super) orgs: BTreeMap<OrgId, StoredOrg>,
    pub(super) overrides: BTreeMap<(OrgId, JobKey), Override>,
    pub(super) org_updates: BTreeMap<Uuid, StoredOrgUpdate>,
    /// Pending and running.
    pub(super) active: BTreeMap<RunId, Active>,
    /// Runs with a terminal status.
    pub(super) ended: BTreeMap<RunId, Run>,
    /// The output of the last attempts of runs.
    pub(super) outputs: BTreeMap<RunId, String>,
    /// The unique slot key, of active and ended runs.
    pub(super) slots: BTreeMap<(Owner, Timestamp), RunId>,
    pub(super) gaps: BTreeMap<Uuid, StoredGap>,
    pub(super) instances: BTreeMap<Uuid, StoredInstance>,
    pub(super) tokens: BTreeMap<String, StoredToken>,
    pub(super) sessions: BTreeMap<Uuid, StoredSession>,
    pub(super) audit: BTreeMap<Uuid, AuditEntry>,
    pub(super) requests: BTreeMap<String, StoredRequest>,
    /// By source and program.
    pub(super) releases: BTreeMap<(&'static str, App), Releases>,
    /// The key that run tokens are signed with.
    pub(super) run_token_key: Option<[u8; 32]>,
    pub(super) trusted_at: Option<Timestamp>,
    /// From when until when no instance scheduled anything.
    pub(super) absences: BTreeMap<Timestamp, Timestamp>,
    /// The last heartbeat of the instances that left and scheduled.
    pub(super) departed_at: Option<Timestamp>,
    pub(super) alerts: super::alerts::StoredAlerts,
    pub(super) calendars: BTreeMap<CalendarName, StoredCalendar>,
    /// Targets that admins define.
    pub(super) targets: BTreeMap<Target, StoredTarget>,
    pub(super) freezes: BTreeMap<Uuid, Freeze>,
    /// By the job that waits, and the name.
    pub(super) run_groups: BTreeMap<(JobKey, String), RunGroup>,
    pub(super) backfills: BTreeMap<BackfillId, Backfill>,
    pub(super) counters: super::counters::StoredCounters,
    pub(super) inbox: BTreeMap<i64, super::inbox::StoredRequest>,
    /// The id of the last request that was written into the inbox.
    pub(super) last_request: i64,
}

#[derive(Clone, Debug)]
pub(super) struct Active {
    pub(super) run: Run,
    /// The version among whose runs it goes on: its own, or the one that replaced that.
    pub(super) lane: Option<JobId>,
    /// Not before: when it was meant to start, or when a retry may.
    pub(super) available_at: Timestamp,
    /// It waits until its job is resumed.
    pub(super) paused: bool,
    /// How many of its kind may be at work at once.
    pub(super) max_concurrent: u32,
    /// Of the last hand-over.
    pub(super) remote: Option<everbell_core::handover::Remote>,
}

#[derive(Clone, Debug)]
pub(super) struct StoredInstance {
    pub(super) instance: Instance,
    /// Covers every run that it holds.
    pub(super) lease_until: Option<Timestamp>,
    /// Grows when runs are taken from it as lost.
    pub(super) losses: u64,
}

#[derive(Clone, Debug)]
pub(super) struct StoredOrg {
    pub(super) org: Org,
    /// Its timers have not been looked at since it changed.
    pub(super) waiting: bool,
}

#[derive(Clone, Debug)]
pub(super) struct StoredOrgUpdate {
    pub(super) org_update: OrgUpdate,
    /// When it last made a step.
    pub(super) stepped_at: Timestamp,
}

#[derive(Clone, Debug)]
pub(super) struct StoredGap {
    pub(super) owner: Owner,
    pub(super) gap: Gap,
    pub(super) created_at: Timestamp,
}

#[derive(Clone, Debug)]
pub(super) struct StoredToken {
    pub(super) token: Token,
    pub(super) hash: [u8; 32],
}

#[derive(Clone, Debug)]
pub(super) struct StoredRequest {
    pub(super) fingerprint: [u8; 32],
    pub(super) at: Timestamp,
    /// Its effects, if it changed something.
    pub(super) deed: Option<Deed>,
    pub(super) answer: Option<(u16, String)>,
}

/// The rows that a plan wrote for an owner.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) runs: Vec<RunId>,
    pub(super) gaps: Vec<Gap>,
}

impl State {
    pub(super) fn run(&self, id: RunId) -> Option<&Run> {
        self.active.get(&id).map(|active| &active.run).or_else(|| self.ended.get(&id))
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.active.values().map(|active| &active.run).chain(self.ended.values())
    }

    /// The pending and running runs of a job and org, oldest first: ids begin with a time.
    pub(super) fn active_of(&self, owner: &Owner) -> Vec<ActiveRun> {
        let seen = |run: &Run| ActiveRun {
            id: run.id,
            held: run.held,
            cancel_requested: run.cancel_by.is_some(),
            backfill: run.is_backfill(),
        };
        self.active.values().filter(|active| active.is_of(owner)).map(|active| seen(&active.run)).collect()
    }

    /// Moves the active runs of a version, for an org or none, to the next version.
    pub(super) fn move_active(&mut self, from: &Owner, to: JobId) {
        let paused = self.jobs.get(&to).is_some_and(|job| job.state.status == JobStatus::Paused);
        for active in self.active.values_mut().filter(|active| active.is_of(from)) {
            active.lane = Some(to);
            active.paused &= paused;
        }
    }

    pub(super) fn upstream_succeeded_at(&self, job: &Definition) -> Option<Timestamp> {
        let upstream = &job.policies.depends_on.as_ref()?.job_key;
        let succeeded = |run: &&Run| run.status == RunStatus::Succeeded && run.job_key.as_ref() == Some(upstream);
        self.ended.values().filter(succeeded).filter_map(|run| run.finished_at).max()
    }

    /// Writes what a plan says about an owner.
    pub(super) fn write_plan(&mut self, owner: &Owner, plan: &Plan, by: &str, now: Timestamp) -> Written {
        let Some(job) = self.jobs.get(&owner.0).map(|job| Arc::clone(&job.definition)) else {
            return Written::default();
        };
        for id in &plan.cancel {
            self.cancel(*id, by, now);
        }
        let inserted = plan.runs.iter().filter(|run| self.insert_planned(&job, owner, run, now));
        let runs = inserted.map(|run| run.id).collect();
        let mut gaps = Vec::new();
        for (gap, earlier) in plan.gaps_to_write() {
            let gap = gap_to_keep(gap);
            let longer = earlier.and_then(|earlier| {
                let stored = self.gaps.get_mut(&earlier.id(owner.0, owner.1.as_ref()))?;
                (stored.gap.last_slot_at == micros(earlier.last_slot_at)).then_some(stored)
            });
            if let Some(stored) = longer {
                stored.gap.last_slot_at = gap.last_slot_at;
                stored.gap.slots += gap.slots;
                stored.created_at = now;
                gaps.push(gap);
            // The same gap has the same id.
            } else if let Entry::Vacant(entry) = self.gaps.entry(gap.id(owner.0, owner.1.as_ref())) {
                entry.insert(StoredGap { owner: owner.clone(), gap: gap.clone(), created_at: now });
                gaps.push(gap);
            }
        }
        if let Some(timer) = self.timers.get_mut(owner) {
            // The mark never goes back, whatever a plan says.
            let last_slot_at = timer.last_slot_at.max(micros(plan.timer.last_slot_at));
            *timer = everbell_core::with!(Timer {
                org: owner.1.clone(),
                next_run_at: plan.timer.next_run_at.map(micros),
                rescheduled_from: plan.timer.rescheduled_from.map(micros),
                last_local_date: plan.timer.last_local_date,
                ..Timer::new(owner.0, last_slot_at)
            });
        }
        if let Some(reason) = &plan.org_error {
            self.timer_errors.insert(owner.clone(), reason.clone());
        }
        if plan.retire {
            self.retire(owner.0, now);
        }
        if let Some(reason) = &plan.error {
            self.set_errored(owner.0, reason, now);
        }
        Written { runs, gaps }
    }

    /// Inserts a run of a plan, unless its slot or its id is there already.
    fn insert_planned(&mut self, job: &Definition, owner: &Owner, new: &NewRun, now: Timestamp) -> bool {
        let slot = new.slot_at.map(|slot| (owner.clone(), micros(slot)));
        if self.run(new.id).is_some() || slot.as_ref().is_some_and(|slot| self.slots.contains_key(slot)) {
            return false;
        }
        if let Some(slot) = slot {
            self.slots.insert(slot, new.id);
        }
        let run = Run::planned(job, owner.1.clone(), new.clone(), now);
        if run.status.is_terminal() {
            self.ended.insert(run.id, run);
        } else {
            let max_concurrent = new.parallel.unwrap_or(job.policies.max_concurrent_runs);
            self.active.insert(run.id, Active { max_concurrent, ..Active::new(run) });
        }
        true
    }

    /// Ends a pending run at once, and asks a running one to stop. `None`: it had ended before.
    pub(super) fn cancel(&mut self, id: RunId, by: &str, now: Timestamp) -> Option<RunStatus> {
        let run = &mut self.active.get_mut(&id)?.run;
        let was = run.status;
        if was == RunStatus::Running {
            run.cancel_by.get_or_insert_with(|| storable_text(by, MAX_FAILURE_MESSAGE_BYTES));
            return Some(was);
        }
        let settling = Settling::new(id, was, run.attempt, None);
        if let Some(Next::Finish { status, finished_at, failure, result }) =
            settle(&settling, Outcome::Canceled { by: by.to_owned() }, now).map(|transition| transition.to)
        {
            self.end(id, status, finished_at, failure, result, now);
        }
        Some(was)
    }

    /// Ends an active run.
    pub(super) fn end(
        &mut self,
        id: RunId,
        status: RunStatus,
        finished_at: Timestamp,
        failure: Option<Failure>,
        result: Option<Json>,
        now: Timestamp,
    ) {
        let Some(Active { run: mut ended, .. }) = self.active.remove(&id) else { return };
        ended.status = status;
        ended.finished_at = Some(micros(finished_at));
        ended.failure = failure;
        ended.result = result;
        ended.held = false;
        (ended.lease_until, ended.next_attempt_at, ended.cancel_by) = (None, None, None);
        if let (Some(job), Some(_)) = (ended.job_id, ended.slot_at)
            && self.jobs.get(&job).is_some_and(|job| job.definition.is_one_time())
        {
            self.retire(job, now);
        }
        self.ended.insert(id, ended);
    }

    /// Retires a job in the name of everbell. One that is retired already stays as it is.
    fn retire(&mut self, id: JobId, now: Timestamp) {
        if let Some(job) = self.jobs.get_mut(&id)
            && let Ok(state) = job.state.retired(EVERBELL, micros(now))
        {
            job.state = state;
        }
    }

    fn set_errored(&mut self, id: JobId, reason: &str, now: Timestamp) {
        if let Some(job) = self.jobs.get_mut(&id)
            && let Ok(state) = job.state.errored(reason, EVERBELL, micros(now))
        {
            job.state = state;
            let entry = errored::of_job(id, job.definition.key.as_str(), reason, micros(now));
            self.write_audit(&entry);
        }
    }

    /// Writes an entry once: a caller whose response was lost may send it again.
    pub(super) fn write_audit(&mut self, audit: &AuditEntry) {
        let entry = AuditEntry { at: micros(audit.at), request: None, ..audit.clone() };
        self.audit.entry(audit.id).or_insert(entry);
        self.write_deed(audit, Deed::default());
    }
}

fn gap_to_keep(gap: &Gap) -> Gap {
    everbell_core::with!(Gap {
        first_slot_at: micros(gap.first_slot_at),
        last_slot_at: micros(gap.last_slot_at),
        ..gap.clone()
    })
}

impl Active {
    pub(super) fn new(run: Run) -> Active {
        Active { lane: run.job_id, available_at: run.scheduled_at, paused: false, max_concurrent: 1, remote: None, run }
    }

    pub(super) fn is_of(&self, owner: &Owner) -> bool {
        self.lane == Some(owner.0) && self.run.org == owner.1
    }
}
