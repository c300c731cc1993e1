//! The planner: due timers become runs and gaps. Read, decide and commit are one transaction of the store; the decision
//! is [`plan`](everbell_core::plan::plan), or [`org::plan`](everbell_core::org::plan) for the timer of an org.
//!
//! Where this instance has room for a target and none of its runs is pending, new runs start with their plan. Else they
//! become pending, for the claimer of this or another instance; but a backlog is not planned far ahead of what can start:
//! see [`Patience`]. Where jobs have priorities it is, because only runs can be chosen from.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use everbell_core::plan::Plan;
use everbell_core::store::{Due, PlanDue, Planned, StartRuns, StoreError, StoreResult};
use everbell_core::{JobId, JobKey, Target};
use jiff::Timestamp;
use tokio::sync::Notify;

use super::batch::{BatchSize, Ramp};
use super::inflight::Rooms;
use super::{Shared, Step, Wait, executor};
use crate::clock::{between, later};
use crate::events::{Event, Round};

#[derive(Debug)]
pub(crate) struct Planner {
    shared: Arc<Shared>,
    batch: BatchSize,
    ramp: Ramp,
    /// When the next timer is due, as far as is known.
    expected: Option<Timestamp>,
    /// How often it has looked in vain for a timer that is due.
    in_vain: u32,
}

/// How often to look again for a timer that is due and that another instance is planning at this moment: only then is its
/// next fire known.
const MAX_LOOKS_IN_VAIN: u32 = 3;
/// The wait before the first of these looks; it grows with each.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);

impl Planner {
    pub(super) fn new(shared: &Arc<Shared>) -> Planner {
        let batch = BatchSize::new(shared.options.batch);
        Planner { shared: Arc::clone(shared), batch, ramp: Ramp::new(), expected: None, in_vain: 0 }
    }

    /// Takes up what a look of these targets has found. Returns whether more may be due, and when the next timer is.
    fn take_up(
        &mut self,
        targets: &[Target],
        looked: StoreResult<PlannedTimers>,
    ) -> StoreResult<(bool, Option<Timestamp>)> {
        self.batch.learn(&looked);
        let looked = looked?;
        if looked.timers > 0 {
            (self.expected, self.in_vain) = (None, 0);
        }
        // Where jobs have priorities nothing waits for room: the claimer chooses among the runs that are pending.
        self.shared.patience().planned(targets, looked.full && !looked.by_priority);
        Ok((looked.full, looked.next))
    }
}

/// The result of a look for due timers.
#[derive(Debug)]
pub(super) struct PlannedTimers {
    timers: u32,
    /// Whether there may be more.
    pub(super) full: bool,
    by_priority: bool,
    next: Option<Timestamp>,
}

/// Plans due timers of these targets, and starts their runs as far as there is room: up to `limit` timers, or a whole batch if
/// a job of the targets has a priority, so that the most urgent runs are among them.
pub(super) async fn look(
    shared: &Arc<Shared>,
    limit: u32,
    batch: BatchSize,
    targets: &[Target],
    rooms: Option<&Rooms<'_>>,
) -> StoreResult<PlannedTimers> {
    let Shared { store, options, signals, events, claims, .. } = &**shared;
    // Before the time of day, from which the database counts leases.
    let begun = shared.clock.monotonic();
    let now = shared.now();
    let keys = Mutex::default();
    let plan = |due: &Due, now: Timestamp| noting_keys(due, decide(due, now), &keys);
    let start = rooms.map(|rooms| StartRuns {
        instance: shared.instance,
        targets: &rooms.targets,
        limit: rooms.limit,
        now,
        lease_until: later(now, options.lease.duration),
    });
    let mut under_way = start.is_some().then(|| claims.begin());
    let request = PlanDue { now, limit, limit_by_priority: batch.get().max(limit), targets, start };
    let planned = {
        let mut answer = pin!(store.plan_due(&request, &plan));
        tokio::select! {
            biased;
            answer = &mut answer => answer,
            () = shared.clock.sleep(options.lease.claim_within()), if start.is_some() => {
                // Whatever it has leased by now, or will, starts no more; but a plan is not given up half-way.
                under_way = None;
                shared.drop_claims(None);
                answer.await
            }
        }
    };
    shared.looked(Round::Plan, now, begun, planned.as_ref().ok().map(|planned| planned.timers as usize));
    if start.is_some() && planned.as_ref().is_err_and(StoreError::may_be_done) {
        shared.drop_claims(None);
    }
    let mut planned = planned?;
    if !planned.all_started() && planned.runs.iter().any(|run| run.skipped.is_none()) {
        claims.note_pending();
        signals.claim.notify_one();
    }
    let Planned { timers, by_priority, next_due_at: next, .. } = planned;
    let full = timers >= request.limit_for(by_priority);
    let mut started = std::mem::take(&mut planned.claims);
    let gave_up = start.is_some() && under_way.is_none();
    if !started.is_empty() && (gave_up || shared.is_late(begun)) {
        shared.drop_claims(Some(started.len()));
        started.clear();
    }
    for event in into_events(planned, &keys.into_inner().unwrap_or_else(PoisonError::into_inner)) {
        events.publish(event);
    }
    if !started.is_empty() {
        shared.looked(Round::Start, now, begun, Some(started.len()));
        shared.patience().started(started.iter().map(|claim| &claim.run.target));
        signals.anchor.notify_one();
    }
    for claim in started {
        executor::start(shared, claim, begun);
    }
    // From here on its runs are known.
    drop(under_way);
    Ok(PlannedTimers { timers, full, by_priority, next })
}

impl Step for Planner {
    const NAME: &'static str = "planner";

    /// Plans what is due for the targets that this instance serves, then sleeps until the next fire.
    async fn step(&mut self) -> StoreResult<Wait> {
        let shared = Arc::clone(&self.shared);
        let targets = shared.targets.now();
        if targets.is_empty() || shared.is_draining() {
            return Ok(Wait::ForSignal);
        }
        shared.anchored_now().await?;
        let looked_at = shared.now();
        let waits = |waits| shared.signals.planner_waits.store(waits, Ordering::SeqCst);
        // Before it looks for room, so that none is missed.
        waits(true);
        let limit = self.batch.get().min(self.ramp.get());
        let rooms = shared.reserve_for_slots(&targets, limit);
        let (ready, others): (Vec<Target>, Vec<Target>) = targets.names().cloned().partition(|one| rooms.has(one));
        let (mut full, mut next) = (false, None);
        if !ready.is_empty() {
            shared.patience().has_room(&ready, shared.clock.monotonic());
            let looked = look(&shared, rooms.limit, self.batch, &ready, Some(&rooms)).await;
            let taken = self.take_up(&ready, looked);
            drop(rooms);
            shared.tell_claimer();
            (full, next) = taken?;
        }
        let (over, wait) = shared.patience().has_no_room(others, shared.clock.monotonic());
        waits(wait.is_some());
        if !over.is_empty() {
            let looked = look(&shared, limit, self.batch, &over, None).await;
            let (more, then) = self.take_up(&over, looked)?;
            full |= more;
            next = next.into_iter().chain(then).min();
        }
        shared.signals.set_behind(full || wait.is_some());
        if full || wait.is_none() {
            self.ramp.looked(full);
        }
        if full {
            return Ok(Wait::No);
        }
        let now = shared.now();
        // Not if it became due only after the look.
        if self.expected.is_some_and(|at| at <= looked_at) && self.in_vain < MAX_LOOKS_IN_VAIN {
            self.in_vain += 1;
            return Ok(Wait::For(LOOK_AGAIN_AFTER * self.in_vain));
        }
        (self.expected, self.in_vain) = (next, 0);
        shared.anchoring.note_next_due(next.map(|next| shared.clock.monotonic() + between(now, next)));
        let poll = shared.poll();
        let idle = next.map_or(poll, |next| between(now, next).min(poll));
        Ok(Wait::For(wait.map_or(idle, |wait| wait.min(idle))))
    }

    fn signal(shared: &Shared) -> Option<&Notify> {
        Some(&shared.signals.plan)
    }
}

/// The first of the two decisions, with what the store has read for it.
pub(crate) fn decide(due: &Due, now: Timestamp) -> Plan {
    due.plan(now)
}

/// The keys of jobs with events besides their runs.
pub(crate) type Keys = HashMap<JobId, JobKey>;

/// Remembers the key of a job whose plan has gaps or errors: what a store returns about them has only its id.
fn noting_keys(due: &Due, plan: Plan, keys: &Mutex<Keys>) -> Plan {
    if !plan.gaps.is_empty() || plan.error.is_some() || plan.org_error.is_some() {
        let mut keys = keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.entry(due.job.id).or_insert_with(|| due.job.key.clone());
    }
    plan
}

/// Returns the events of a round of planning.
pub(crate) fn into_events(planned: Planned, keys: &Keys) -> impl Iterator<Item = Event> {
    let fired = planned.runs.into_iter().map(|run| Event::Fired {
        run: run.id,
        job: run.job,
        slot: run.slot_at,
        skipped: run.skipped,
    });
    let gaps = planned.gaps.into_iter().map(|(job, gap)| Event::Gap { job, key: keys.get(&job).cloned(), gap });
    let errored =
        planned.errored.into_iter().map(|(job, reason)| Event::Errored { job, key: keys.get(&job).cloned(), reason });
    let orgs = planned.org_errors.into_iter().map(|(job, org, reason)| {
        let key = keys.get(&job).cloned();
        Event::OrgErrored { job, key, org, reason }
    });
    fired.chain(gaps).chain(errored).chain(orgs)
}
