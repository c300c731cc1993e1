//! Runs under a lease: start, extend, record, expire.

use std::collections::BTreeMap;
use std::sync::Arc;

use everbell_core::settle::{Next, Settling, Transition};
use everbell_core::store::{Claim, LeaseReport, Recorded, StartRuns};
use everbell_core::{Backoff, InstanceId, OutputSoFar, Run, RunId, RunStatus, Target, Trigger};
use jiff::Timestamp;

use super::state::{Active, State, micros};

impl State {
    pub(super) fn start_runs(&mut self, request: &StartRuns<'_>) -> Vec<Claim> {
        let now = micros(request.now);
        let mut room: BTreeMap<&Target, (u32, bool)> =
            request.targets.iter().map(|wanted| (&wanted.target, (wanted.room, wanted.backfills))).collect();
        // Who may start is judged before anybody does, so one call takes at most one held run of a job and org.
        let mut startable: Vec<(Timestamp, RunId)> = self
            .active
            .values()
            .filter(|active| self.may_start(active, now))
            .map(|active| (active.available_at, active.run.id))
            .collect();
        startable.sort_unstable();
        let mut claims = Vec::new();
        for (_, id) in startable {
            if claims.len() == request.limit as usize {
                break;
            }
            let Some(Active { run, .. }) = self.active.get_mut(&id) else { continue };
            let Some((left, backfills)) = room.get_mut(&run.target).filter(|(left, _)| *left > 0) else { continue };
            if !*backfills && matches!(run.trigger, Trigger::Backfill(_)) {
                continue;
            }
            *left -= 1;
            let lease_until = micros(request.lease_until);
            run.status = RunStatus::Running;
            run.held = false;
            run.attempt += 1;
            run.claimed = Some((now, request.instance));
            run.started_at = Some(now);
            run.lease_until = Some(lease_until);
            run.failure = None;
            run.next_attempt_at = None;
            self.outputs.remove(&id);
            let run = run.clone();
            let job = run.job_id.and_then(|id| self.jobs.get(&id)).map(|job| Arc::clone(&job.definition));
            claims.push(Claim { run, job, lease_until });
        }
        claims.sort_by_key(|claim| (claim.run.scheduled_at, claim.run.id));
        claims
    }

    fn may_start(&self, active: &Active, now: Timestamp) -> bool {
        active.run.status == RunStatus::Pending
            && !active.paused
            && active.available_at <= now
            && (!active.run.held || self.is_its_turn(active))
    }

    /// The first held run of its job and org, and fewer than `maxConcurrentRuns` others that are not held.
    fn is_its_turn(&self, Active { run, lane, .. }: &Active) -> bool {
        let Some(job) = run.job_id.and_then(|id| self.jobs.get(&id)) else { return true };
        let others = || self.active.values().filter(|other| other.lane == *lane && other.run.org == run.org);
        let others = || others().map(|other| &other.run);
        let first = others().filter(|other| other.held).all(|other| other.id >= run.id);
        let at_work = others().filter(|other| !other.held).count();
        first && at_work < job.definition.policies.max_concurrent_runs as usize
    }

    pub(super) fn extend_leases(&mut self, instance: InstanceId, now: Timestamp, until: Timestamp) -> Vec<LeaseReport> {
        let now = micros(now);
        let mut reports = Vec::new();
        for run in self.active.values_mut().map(|active| &mut active.run) {
            let own = run.claimed.is_some_and(|(_, by)| by == instance);
            if own && run.lease_until.is_some_and(|lease| lease >= now) {
                run.lease_until = run.lease_until.max(Some(micros(until)));
                let cancel_by = run.cancel_by.clone();
                reports.push(LeaseReport { run: run.id, attempt: run.attempt, cancel_by });
            }
        }
        reports
    }

    pub(super) fn keep_outputs(&mut self, outputs: &[OutputSoFar]) -> Vec<RunId> {
        let mut kept = Vec::new();
        for OutputSoFar { run_id, attempt, text } in outputs {
            let at_work = |run: &Run| run.status == RunStatus::Running && run.attempt == *attempt;
            if self.active.get(run_id).is_some_and(|active| at_work(&active.run)) {
                self.outputs.insert(*run_id, text.clone());
                kept.push(*run_id);
            }
        }
        kept
    }

    pub(super) fn expired_leases(&self, now: Timestamp, limit: u32) -> Vec<Settling> {
        let now = micros(now);
        let mut expired: Vec<(Timestamp, &Run)> =
            self.active.values().filter_map(|active| Some((active.run.lease_until?, &active.run))).collect();
        expired.retain(|(lease, _)| *lease < now);
        expired.sort_by_key(|(lease, run)| (*lease, run.id));
        expired.into_iter().take(limit as usize).map(|(_, run)| self.settling(run)).collect()
    }

    pub(super) fn leases_of(&self, instance: InstanceId, limit: u32) -> Vec<Settling> {
        let is_own = |run: &&Run| run.status == RunStatus::Running && run.claimed.is_some_and(|(_, by)| by == instance);
        let own = self.active.values().map(|active| &active.run).filter(is_own);
        own.take(limit as usize).map(|run| self.settling(run)).collect()
    }

    fn settling(&self, run: &Run) -> Settling {
        let job = run.job_id.and_then(|id| self.jobs.get(&id));
        Settling {
            id: run.id,
            attempt: run.attempt,
            status: run.status,
            max_attempts: job.map_or(1, |job| job.definition.policies.max_attempts),
            backoff: job.map_or(Backoff::default(), |job| job.definition.policies.backoff),
        }
    }

    pub(super) fn record(&mut self, transitions: &[Transition], now: Timestamp) -> Vec<Recorded> {
        transitions.iter().map(|transition| self.record_one(transition, micros(now))).collect()
    }

    fn record_one(&mut self, transition: &Transition, now: Timestamp) -> Recorded {
        let Transition { run_id, attempt, from, to, output } = transition;
        let Some(active) = self.active.get_mut(run_id) else { return Recorded::LeaseLost };
        if active.run.attempt != *attempt || active.run.status != *from {
            return Recorded::LeaseLost;
        }
        let job = active.lane;
        if let Some(output) = output {
            self.outputs.insert(*run_id, output.clone());
        }
        match to {
            Next::Retry { not_before, failure } => {
                active.available_at = micros(*not_before);
                active.run.status = RunStatus::Pending;
                active.run.lease_until = None;
                active.run.failure = Some(failure.clone());
                active.run.next_attempt_at = Some(active.available_at);
            }
            Next::Finish { status, finished_at, failure, result } => {
                if let Some(job) = job.and_then(|id| self.jobs.get_mut(&id)) {
                    let failures = &mut job.state.consecutive_failures;
                    match status {
                        RunStatus::Failed => *failures += 1,
                        RunStatus::Succeeded => *failures = 0,
                        RunStatus::Canceled | RunStatus::Skipped | RunStatus::Pending | RunStatus::Running => {}
                    }
                }
                self.end(*run_id, *status, *finished_at, failure.clone(), result.clone(), now);
            }
        }
        let job = job.and_then(|id| self.jobs.get(&id));
        Recorded::Applied { consecutive_failures: job.map_or(0, |job| job.state.consecutive_failures) }
    }
}
