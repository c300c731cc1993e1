//! The loops of an engine in small: plan, start, record, reap, minute by minute, living with every failure.

use std::sync::Arc;

use everbell_core::settle::{Outcome, Then, Transition, settle};
use everbell_core::store::{Claim, PlanDue, RunFilter, StartRuns, Store};
use everbell_core::{Failure, FailureCode, InstanceId, RunStatus};
use jiff::{SignedDuration, Timestamp};

use super::super::dice::Dice;
use super::super::given::{LOG, MAIL, core_plan, page, settling};
use super::super::world::{LEASE, room, targets};

/// How often a verb is asked again before the loop goes on without it, as a poll would.
const MAX_TRIES: usize = 3;

pub(super) struct Engine {
    store: Arc<dyn Store>,
    instance: InstanceId,
    dice: Dice,
    /// Transitions that are decided but not recorded yet.
    outbox: Vec<Transition>,
}

impl Engine {
    pub(super) fn new(store: impl IntoStore, seed: u64) -> Engine {
        let instance = InstanceId::new(Timestamp::UNIX_EPOCH, [seed as u8; 10]);
        Engine { store: store.into_store(), instance, dice: Dice::new(seed), outbox: Vec::new() }
    }

    /// Runs for this many steps of 20 s. Returns the time at which it stops.
    pub(super) async fn run(&mut self, from: Timestamp, steps: u32) -> Timestamp {
        let mut now = from;
        for _ in 0..steps {
            now = now.checked_add(SignedDuration::from_secs(20)).unwrap();
            self.step(now).await;
        }
        now
    }

    /// Plans once more, and goes on until nothing is active: retries have their time, and lost leases run out. Gives the
    /// time of the end.
    pub(super) async fn drain(&mut self, from: Timestamp) -> Timestamp {
        let mut now = from;
        self.plan(now).await;
        for _ in 0..1_000 {
            self.work(now).await;
            now = now.checked_add(SignedDuration::from_mins(5)).unwrap();
            let status = vec![RunStatus::Pending, RunStatus::Running];
            let active = RunFilter { status, ..RunFilter::default() };
            let page = self.store.list_runs(&active, &page(1)).await;
            if page.is_ok_and(|page| page.items.is_empty()) {
                return now;
            }
        }
        panic!("runs are active for ever");
    }

    async fn step(&mut self, now: Timestamp) {
        self.plan(now).await;
        self.work(now).await;
    }

    /// Plans, and starts some of the runs with their plan. A lost answer leaves runs without an executor.
    async fn plan(&mut self, now: Timestamp) {
        let (targets, room) = (targets(), room(&[(LOG, 2), (MAIL, 1)]));
        let start = StartRuns { instance: self.instance, targets: &room, limit: 2, now, lease_until: now + LEASE };
        let start = self.dice.one_in(2).then_some(start);
        for _ in 0..MAX_TRIES {
            match self.store.plan_due(&PlanDue { start, ..PlanDue::new(now, 100, &targets) }, &core_plan).await {
                Ok(planned) => return self.end_all(&planned.claims, now),
                Err(error) => assert!(error.is_transient(), "{error}"),
            }
        }
    }

    /// The handlers of these runs end at once.
    fn end_all(&mut self, claims: &[Claim], now: Timestamp) {
        for claim in claims {
            assert_eq!(claim.lease_until, now + LEASE);
            let outcome = self.outcome();
            self.outbox.extend(settle(&settling(claim), outcome, now));
        }
    }

    async fn work(&mut self, now: Timestamp) {
        self.reap(now).await;
        let targets = room(&[(LOG, 50), (MAIL, 50)]);
        let request =
            StartRuns { instance: self.instance, targets: &targets, limit: 50, now, lease_until: now + LEASE };
        // A lost answer leaves runs without an executor: their leases expire.
        let claims: Vec<Claim> = self.store.start_runs(&request).await.unwrap_or_default();
        self.end_all(&claims, now);
        self.deliver(now).await;
    }

    /// Records the outbox. A transition that fails is tried again at the next step: it is fenced, so that is always
    /// safe.
    async fn deliver(&mut self, now: Timestamp) {
        for _ in 0..MAX_TRIES {
            match self.store.record(&self.outbox, now).await {
                Ok(recorded) => {
                    assert_eq!(recorded.len(), self.outbox.len());
                    self.outbox.clear();
                    return;
                }
                Err(error) => assert!(error.is_transient(), "{error}"),
            }
        }
    }

    async fn reap(&mut self, now: Timestamp) {
        let expired = self.store.expired_leases(now, 100).await.unwrap_or_default();
        self.outbox.extend(expired.iter().filter_map(|run| settle(run, Outcome::Lost(None), now)));
    }

    fn outcome(&mut self) -> Outcome {
        match self.dice.below(5) {
            0 => Outcome::Failed { failure: Failure::new(FailureCode::HANDLER_ERROR, "no"), then: Then::RETRY },
            1 => Outcome::Panicked("boom".to_owned()),
            _ => Outcome::Succeeded { result: None },
        }
    }
}

/// A store, or something that is one.
pub(super) trait IntoStore {
    fn into_store(self) -> Arc<dyn Store>;
}

impl IntoStore for Arc<dyn Store> {
    fn into_store(self) -> Arc<dyn Store> {
        self
    }
}

impl IntoStore for super::Faulty {
    fn into_store(self) -> Arc<dyn Store> {
        Arc::new(self)
    }
}
