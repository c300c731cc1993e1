//! The backfiller: creates the runs of backfills a few at a time.
//!
//! It looks at open backfills when a run of one ended here, and now and then. While there is none, that is seldom, so a cluster
//! without backfills does not pay for them. Every instance does it: what two of them decide about one backfill is guarded by its
//! revision, so one is faster and the other looks again later.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use everbell_core::backfill::{Backfill, BackfillStatus, MAX_CHUNK, SlotRun};
use everbell_core::change::{self, BackfillFacts, JobView, backfill_waits_for};
use everbell_core::org::{self, OrgFacts};
use everbell_core::store::{JobRef, JobRow, MAX_BACKFILLS, Store, StoreError, StoreResult};
use everbell_core::{OrgId, RunId, Spec};
use jiff::Timestamp;
use tokio::sync::Notify;
use tracing::warn;

use super::{RESTING_POLL, Shared, Step, Wait};
use crate::clock::between;

/// The longest time between two looks while there is none, where the changes of others are not heard of.
const IDLE_POLL: Duration = Duration::from_secs(10);
/// Looks while there is none are at least so far apart: most signals are about something else.
const IDLE_INTERVAL: Duration = Duration::from_secs(5);
/// The longest time between two looks at open backfills: their runs may end on other instances.
const OPEN_POLL: Duration = Duration::from_secs(1);
/// Looks at open backfills are at least so far apart, so that several runs that end together are one step.
const OPEN_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct Backfiller {
    shared: Arc<Shared>,
    /// When it looked last, by the monotonic clock.
    last: Option<Duration>,
    /// Whether it saw an open backfill then.
    any: bool,
}

/// The result of a step of one backfill.
enum Progress {
    /// It waits for runs to end, or for something else.
    Waits,
    /// Its rate allows the next run then.
    Until(Timestamp),
    /// There is more to do now.
    More,
}

impl Backfiller {
    pub(super) fn new(shared: &Arc<Shared>) -> Backfiller {
        Backfiller { shared: Arc::clone(shared), last: None, any: false }
    }

    /// Takes a step of every open backfill.
    async fn look(&mut self) -> StoreResult<Wait> {
        let open = self.shared.store.open_backfills(None, MAX_BACKFILLS).await?;
        self.any = !open.is_empty();
        if !self.any {
            let poll = if self.shared.store.hears_others() { RESTING_POLL } else { IDLE_POLL };
            return Ok(Wait::For(poll));
        }
        let mut wait = OPEN_POLL;
        for backfill in &open {
            match self.advance(backfill).await {
                Ok(Progress::Waits) => {}
                Ok(Progress::Until(at)) => wait = wait.min(between(self.shared.now(), at)),
                Ok(Progress::More) => wait = Duration::ZERO,
                Err(error) if error.is_transient() => return Err(error),
                // It must not stand in the way of the others.
                Err(error) => {
                    warn!(backfill = %backfill.id, job = %backfill.job_key, %error, "a backfill cannot continue");
                }
            }
        }
        Ok(if wait.is_zero() { Wait::No } else { Wait::For(wait.max(OPEN_INTERVAL)) })
    }

    /// Reads what a backfill needs, and takes its step if there is one to take.
    async fn advance(&self, stored: &Backfill) -> StoreResult<Progress> {
        let store = &*self.shared.store;
        let row = store.get_job(&JobRef::Key(stored.job_key.clone())).await?;
        let ids: Vec<RunId> = stored.open.iter().map(|open| open.id).collect();
        let runs = store.look_up_runs(&ids).await?;
        let (now, max_active) = (self.shared.now(), self.shared.options.max_pending_runs);
        let mut settled = stored.clone();
        settled.settle(&runs);
        let spec = backfill_spec(store, &row, stored.org.as_ref()).await?;
        let room = settled.room(&row.job.definition, &[], max_active, now);
        let may_run = settled.status == BackfillStatus::Running && backfill_waits_for(&row.job.state, stored).is_none();
        let slots = match &spec {
            Some(spec) if may_run && room > 0 => settled.next_slots(spec, MAX_CHUNK),
            _ => Vec::new(),
        };
        let is_settled = settled == *stored;
        let may_end = settled.status == BackfillStatus::Running && (spec.is_none() || settled.open.is_empty());
        if is_settled && slots.is_empty() && !may_end {
            let next_at = settled.settings.rate.filter(|_| may_run).map(|rate| rate.after(settled.next_at, now, 0));
            return Ok(next_at.filter(|at| *at > now).map_or(Progress::Waits, Progress::Until));
        }
        let known = known_slots(store, stored, &slots).await?;
        let facts = BackfillFacts { runs: &runs, slots: &known, max_active };
        let created = self.commit(stored, &row, &facts, now).await?;
        Ok(match settled.settings.rate.filter(|_| may_run) {
            // Those were passed over.
            _ if created.is_some() && known.values().any(|exists| *exists) => Progress::More,
            Some(rate) => Progress::Until(rate.after(settled.next_at, now, created.unwrap_or(0) as u32)),
            _ => Progress::Waits,
        })
    }

    /// Writes the step of a backfill. Returns how many runs it created; `None` if there was nothing to do or another writer was
    /// faster.
    async fn commit(
        &self,
        stored: &Backfill,
        row: &JobRow,
        facts: &BackfillFacts<'_>,
        now: Timestamp,
    ) -> StoreResult<Option<usize>> {
        let store = &self.shared.store;
        let job = JobRef::Id(row.job.definition.id);
        let decide = |view: &JobView| change::advance_backfill(view, stored, facts, now);
        let changed = match store.advance_backfill(&job, stored.org.as_ref(), &decide, now).await {
            // The org is gone: the decision sees a job without it, and stops.
            Err(StoreError::NotFound { .. }) if stored.org.is_some() => {
                store.advance_backfill(&job, None, &decide, now).await
            }
            answer => answer,
        };
        match changed {
            Ok(changed) => {
                self.shared.events.publish_change(&changed);
                self.shared.claims.note_pending();
                self.shared.signals.claim.notify_one();
                Ok(Some(changed.runs.len()))
            }
            Err(StoreError::Invalid(_) | StoreError::Conflict { .. } | StoreError::Stale { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Returns the schedule that the slots of a backfill are read from; `None` if it cannot be read, or if the org is gone.
pub(crate) async fn backfill_spec(store: &dyn Store, row: &JobRow, org: Option<&OrgId>) -> StoreResult<Option<Spec>> {
    let definition = &row.job.definition;
    let Some(org) = org else { return Ok(definition.spec.clone().ok()) };
    let place = match store.get_org(org).await {
        Ok(org) => org.place,
        Err(StoreError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let override_ = store.list_overrides(org).await?.into_iter().find(|override_| override_.job_key == definition.key);
    Ok(org::spec_for(definition, &OrgFacts { lifecycle: (&row.job.state).into(), place, override_ }).ok())
}

/// Looks up which of these slots have a run, of any version.
pub(crate) async fn known_slots(
    store: &dyn Store,
    backfill: &Backfill,
    slots: &[Timestamp],
) -> StoreResult<BTreeMap<Timestamp, bool>> {
    let mut known: BTreeMap<Timestamp, bool> = slots.iter().map(|slot| (*slot, false)).collect();
    if !slots.is_empty() {
        let found: Vec<SlotRun> = store.runs_of_slots(&backfill.job_key, backfill.org.as_ref(), slots).await?;
        known.extend(found.into_iter().map(|run| (run.at, true)));
    }
    Ok(known)
}

impl Step for Backfiller {
    const NAME: &'static str = "backfiller";

    async fn step(&mut self) -> StoreResult<Wait> {
        let begun = self.shared.clock.monotonic();
        let ended = self.shared.signals.take_backfill_ended();
        let interval = if self.any || ended { OPEN_INTERVAL } else { IDLE_INTERVAL };
        let left = self.last.map_or(Duration::ZERO, |last| interval.saturating_sub(begun.saturating_sub(last)));
        if !left.is_zero() {
            // Not forgotten until then.
            self.any |= ended;
            return Ok(Wait::For(left));
        }
        self.last = Some(begun);
        self.look().await
    }

    fn signal(shared: &Shared) -> Option<&Notify> {
        Some(&shared.signals.backfill)
    }
}
