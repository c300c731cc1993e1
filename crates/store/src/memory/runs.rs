//! Runs: planning, starting, recording, listing.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use everbell_core::plan::{Plan, REPLACER};
use everbell_core::settle::Transition;
use everbell_core::store::{
    AuditEntry, Bucket, Canceled, Claim, Deed, GapFilter, Page, PageRequest, PlanDue, PlanFn, Planned, PlannedRun,
    RecentRuns, Recorded, RunFilter, RunHistogram, RunStore, RunSummary, SlotOutcome, StartRuns, StoreError,
    StoreResult,
};
use everbell_core::{Gap, JobId, OrgId, OutputSoFar, Run, RunId, RunStatus, Target, Trigger};
use jiff::Timestamp;
use uuid::Uuid;

use super::MemoryStore;
use super::pages::{self, Direction};
use super::state::{Active, Owner, State, StoredGap, micros};
use crate::rows::{check_cap, check_limit};

#[async_trait]
impl RunStore for MemoryStore {
    async fn plan_due(&self, request: &PlanDue<'_>, plan: &PlanFn<'_>) -> StoreResult<Planned> {
        let planned = self.with(|state| {
            let now = micros(request.now);
            let by_priority = state.has_priorities(request.targets);
            let due = state.due(now, request.limit_for(by_priority), request.targets);
            let plans: Vec<(Owner, Plan)> =
                due.iter().map(|due| ((due.job.id, due.timer.org.clone()), plan(due, now))).collect();

            let by_priority = by_priority && !due.is_empty();
            let mut planned = Planned { timers: due.len() as u32, by_priority, ..Planned::default() };
            for (due, (owner, plan)) in due.iter().zip(&plans) {
                let written = state.write_plan(owner, plan, REPLACER, now);
                planned.runs.extend(written.runs.iter().filter_map(|id| state.run(*id)).map(|run| PlannedRun {
                    id: run.id,
                    job: Arc::clone(&due.job),
                    slot_at: run.slot_at,
                    skipped: run.skip.as_ref().map(everbell_core::SkipReason::as_str),
                }));
                planned.gaps.extend(written.gaps.into_iter().map(|gap| (due.job.id, gap)));
                let org_error =
                    plan.org_error.iter().filter_map(|reason| Some((due.job.id, owner.1.clone()?, reason.clone())));
                planned.org_errors.extend(org_error);
                planned.errored.extend(plan.error.iter().map(|reason| (due.job.id, reason.clone())));
            }
            if let Some(start) = &request.start {
                planned.claims = state.start_planned(start, &due, &plans, &planned);
            }
            state.write_org_errors(&planned, now);
            planned.next_due_at = state.armed(request.targets).map(|(at, _)| at).filter(|at| *at > now).min();
            Ok(planned)
        });
        // Planning wakes the planner, so a plan without effect must not.
        if planned.as_ref().map_or(true, |planned| planned.timers > 0 && !planned.all_started()) {
            self.notify.notify_waiters();
        }
        planned
    }

    async fn start_runs(&self, request: &StartRuns<'_>) -> StoreResult<Vec<Claim>> {
        self.with(|state| {
            let now = micros(request.now);
            let mut room: BTreeMap<&Target, (u32, bool)> =
                request.targets.iter().map(|wanted| (&wanted.target, (wanted.room, wanted.backfills))).collect();
            // Eligibility is judged before any run starts, so one call takes at most one held run of a job and org.
            let mut startable: Vec<(Reverse<i32>, Timestamp, RunId)> = state
                .active
                .values()
                .filter(|active| state.may_start(active, now))
                .map(|active| (Reverse(state.priority_of(&active.run)), active.available_at, active.run.id))
                .collect();
            startable.sort_unstable();
            let mut claims = Vec::new();
            for (_, _, id) in startable {
                if claims.len() == request.limit as usize {
                    break;
                }
                let Some(Active { run, .. }) = state.active.get_mut(&id) else { continue };
                let Some((left, backfills)) = room.get_mut(&run.target).filter(|(left, _)| *left > 0) else { continue };
                if !*backfills && matches!(run.trigger, Trigger::Backfill(_)) {
                    continue;
                }
                *left -= 1;
                let lease_until = micros(request.lease_until);
                run.start(request.instance, now, lease_until);
                state.outputs.remove(&id);
                let run = run.clone();
                let job = run.job_id.and_then(|id| state.jobs.get(&id)).map(|job| Arc::clone(&job.definition));
                claims.push(Claim { run, job, lease_until });
            }
            claims.sort_by_key(Claim::start_order);
            Ok(claims)
        })
    }

    async fn record(&self, transitions: &[Transition], now: Timestamp) -> StoreResult<Vec<Recorded>> {
        let (recorded, has_news) = self.with(|state| {
            state.count_losses(transitions);
            let recorded = transitions.iter().map(|transition| state.record_one(transition, micros(now))).collect();
            let was_active = state.active.len();
            let runs: Vec<RunId> = transitions
                .iter()
                .zip(&recorded)
                .filter(|(_, recorded): &(_, &Recorded)| **recorded != Recorded::LeaseLost)
                .map(|(transition, _)| transition.run_id)
                .collect();
            state.start_followers(&runs, micros(now));
            Ok::<(Vec<Recorded>, bool), StoreError>((recorded, state.active.len() > was_active))
        })?;
        if has_news {
            self.notify.notify_waiters();
        }
        Ok(recorded)
    }

    async fn runs_after(&self, ended: RunId, _finished_at: Timestamp, limit: u32) -> StoreResult<Vec<Run>> {
        check_limit(limit)?;
        self.with(|state| Ok(state.runs_after(ended, limit)))
    }

    async fn save_outputs(&self, outputs: &[OutputSoFar]) -> StoreResult<Vec<RunId>> {
        self.with(|state| {
            let mut kept = Vec::new();
            for OutputSoFar { run_id, attempt, text } in outputs {
                let at_work =
                    |run: &Run| run.status == RunStatus::Running && run.attempt == *attempt && !run.is_handed_over();
                if state.active.get(run_id).is_some_and(|active| at_work(&active.run)) {
                    state.outputs.insert(*run_id, text.clone());
                    kept.push(*run_id);
                }
            }
            Ok(kept)
        })
    }

    async fn insert_run(&self, run: &Run, audit: &AuditEntry) -> StoreResult<()> {
        self.once(audit, |state| {
            if state.run(run.id).is_some() {
                return Err(StoreError::Conflict { what: format!("a run with the id `{}` exists", run.id) });
            }
            let mut run = run.clone();
            run.slot_at = run.slot_at.map(micros);
            run.scheduled_at = micros(run.scheduled_at);
            run.created_at = micros(run.created_at);
            let deed = Deed { runs: vec![run.id], ..Deed::default() };
            state.active.insert(run.id, Active::new(run));
            state.write_audit(audit);
            state.write_deed(audit, deed);
            Ok(())
        })
    }

    async fn cancel_run(&self, run: RunId, by: &str, now: Timestamp, audit: &AuditEntry) -> StoreResult<Canceled> {
        self.once(audit, |state| {
            let canceled = match state.cancel(run, by, now) {
                Some(RunStatus::Running) => Canceled::Requested,
                Some(_) => Canceled::AtOnce,
                None => return Ok(Canceled::TooLate(state.get_run(run)?.status)),
            };
            state.write_audit(audit);
            state.write_deed(audit, Deed { runs: vec![run], ..Deed::default() });
            Ok(canceled)
        })
    }

    async fn get_run(&self, run: RunId) -> StoreResult<Run> {
        self.with(|state| state.whole_run(run))
    }

    async fn list_runs(&self, filter: &RunFilter, page: &PageRequest) -> StoreResult<Page<Run>> {
        self.with(|state| {
            let wanted =
                state.runs().filter(|run| state.is_wanted(run, filter)).map(|run| state.with_lease(run)).collect();
            pages::by_time(wanted, page, Direction::Down, |run: &Run| (run.id.time(), run.id.as_uuid()))
        })
    }

    async fn count_runs(&self, filter: &RunFilter, cap: u32) -> StoreResult<u32> {
        self.with(|state| {
            check_cap(cap)?;
            Ok(state.runs().filter(|run| state.is_wanted(run, filter)).take(cap as usize).count() as u32)
        })
    }

    async fn recent_runs(&self, recent_runs: &RecentRuns) -> StoreResult<Vec<RunSummary>> {
        self.with(|state| {
            let (from, to) = recent_runs.window();
            let is_wanted = |run: &RunSummary| {
                from.is_none_or(|from| run.id >= RunId::first_from(from))
                    && to.is_none_or(|to| run.id < RunId::first_from(to))
            };
            let mut runs: Vec<RunSummary> = state.runs().filter_map(RunSummary::from_run).filter(is_wanted).collect();
            runs.sort_by_key(|run| std::cmp::Reverse(run.id));
            let mut seen = Vec::new();
            for key in recent_runs.keys() {
                seen.extend(runs.iter().filter(|run| run.job_key == *key).take(recent_runs.each() as usize).cloned());
            }
            Ok(seen)
        })
    }

    async fn count_runs_by_time(&self, histogram: &RunHistogram) -> StoreResult<Vec<Bucket>> {
        self.with(|state| {
            let is_wanted = |run: &&Run| {
                histogram.job_key().is_none_or(|key| run.job_key.as_ref() == Some(key))
                    && histogram.target().is_none_or(|target| run.target == *target)
            };
            let mut buckets = histogram.buckets();
            for run in state.runs().filter(is_wanted) {
                if let Some(bucket) = histogram.place(run.id).and_then(|place| buckets.get_mut(place)) {
                    bucket.add_run(run, histogram.has_times());
                }
            }
            Ok(buckets)
        })
    }

    async fn list_gaps(
        &self,
        filter: &GapFilter,
        page: &PageRequest,
    ) -> StoreResult<Page<(JobId, Option<OrgId>, Gap)>> {
        self.with(|state| {
            let wanted = state
                .gaps
                .iter()
                .filter(|(_, gap)| is_wanted_gap(gap, filter) && state.is_of_key(gap, filter))
                .collect();
            let page = pages::by_time(wanted, page, Direction::Down, |(id, stored): &(&Uuid, &StoredGap)| {
                (stored.gap.first_slot_at, **id)
            })?;
            let row = |stored: &StoredGap| (stored.owner.0, stored.owner.1.clone(), stored.gap.clone());
            let items = page.items.into_iter().map(|(_, stored)| row(stored)).collect();
            Ok(Page::new(items, page.next, page.unreadable))
        })
    }

    /// A run before a gap; among gaps the one that begins last, which is the narrowest.
    async fn slot_outcome(&self, job: JobId, org: Option<&OrgId>, slot: Timestamp) -> StoreResult<Option<SlotOutcome>> {
        self.with(|state| {
            let owner = (job, org.cloned());
            let slot = micros(slot);
            if let Some(id) = state.slots.get(&(owner.clone(), slot)) {
                return Ok(state.run(*id).map(|run| SlotOutcome::Run(Box::new(run.clone()))));
            }
            let holds = |gap: &Gap| (gap.first_slot_at..=gap.last_slot_at).contains(&slot);
            let holding = state.gaps.values().filter(|stored| stored.owner == owner && holds(&stored.gap));
            Ok(holding.max_by_key(|stored| stored.gap.first_slot_at).map(|stored| SlotOutcome::Gap(stored.gap.clone())))
        })
    }
}

impl State {
    /// The priority of the version that the run is of.
    fn priority_of(&self, run: &Run) -> i32 {
        let job = run.job_id.and_then(|id| self.jobs.get(&id));
        job.map_or(0, |job| job.definition.policies.priority)
    }

    pub(super) fn get_run(&self, run: RunId) -> StoreResult<&Run> {
        self.run(run).ok_or_else(|| StoreError::not_found("run", run))
    }

    pub(super) fn whole_run(&self, run: RunId) -> StoreResult<Run> {
        let mut whole = self.with_lease(self.get_run(run)?);
        whole.output = self.outputs.get(&run).cloned();
        whole.remote = self.remote_of(run);
        Ok(whole)
    }

    fn is_of_key(&self, gap: &StoredGap, filter: &GapFilter) -> bool {
        let key = || self.jobs.get(&gap.owner.0).map(|job| &job.definition.key);
        filter.job_key.as_ref().is_none_or(|wanted| key() == Some(wanted))
            && self.has_label(Some(gap.owner.0), filter.label.as_ref())
    }

    fn is_wanted(&self, run: &Run, filter: &RunFilter) -> bool {
        is_wanted(run, filter) && self.has_label(run.job_id, filter.label.as_ref())
    }

    /// Whether a job has a label, if one is asked for.
    pub(super) fn has_label(&self, job: Option<JobId>, label: Option<&(String, Option<String>)>) -> bool {
        let job = job.and_then(|job| self.jobs.get(&job));
        label.is_none_or(|(name, value)| {
            let own = job.and_then(|job| job.definition.labels.get(name));
            own.is_some_and(|own| value.as_ref().is_none_or(|value| own == value))
        })
    }

    fn may_start(&self, active: &Active, now: Timestamp) -> bool {
        active.run.status == RunStatus::Pending
            && !active.paused
            && active.available_at <= now
            && (!active.run.held || self.is_its_turn(active))
    }

    /// The first held run of its job and org, and fewer others at work than may be. Backfills count among themselves.
    fn is_its_turn(&self, Active { run, lane, max_concurrent, .. }: &Active) -> bool {
        let is_beside = |other: &&Active| {
            other.lane == *lane && other.run.org == run.org && other.run.is_backfill() == run.is_backfill()
        };
        let others = || self.active.values().filter(is_beside);
        let others = || others().map(|other| &other.run);
        let first = others().filter(|other| other.held).all(|other| other.id >= run.id);
        let at_work = others().filter(|other| !other.held).count();
        first && at_work < *max_concurrent as usize
    }
}

fn is_wanted(run: &Run, filter: &RunFilter) -> bool {
    filter.job_id.is_none_or(|id| run.job_id == Some(id))
        && filter.job_key.as_ref().is_none_or(|key| run.job_key.as_ref() == Some(key))
        && (filter.status.is_empty() || filter.status.contains(&run.status))
        && (filter.target.is_empty() || filter.target.contains(&run.target))
        && filter.trigger.is_none_or(|trigger| run.trigger.kind() == trigger)
        && filter.org.as_ref().is_none_or(|org| run.org.as_ref() == Some(org))
        && filter.instance.is_none_or(|instance| run.claimed.is_some_and(|(_, by)| by == instance))
        && filter
            .failure_code
            .as_ref()
            .is_none_or(|code| run.failure.as_ref().is_some_and(|failure| failure.code.as_str() == code))
        && filter.from.is_none_or(|from| run.id >= RunId::first_from(from))
        && filter.to.is_none_or(|to| run.id < RunId::first_from(to))
}

fn is_wanted_gap(stored: &StoredGap, filter: &GapFilter) -> bool {
    filter.job_id.is_none_or(|id| stored.owner.0 == id)
        && filter.org.as_ref().is_none_or(|org| stored.owner.1.as_ref() == Some(org))
        && filter.reason.is_none_or(|reason| stored.gap.reason == reason)
        && filter.from.is_none_or(|from| stored.gap.last_slot_at >= micros(from))
        && filter.to.is_none_or(|to| stored.gap.first_slot_at < micros(to))
}
