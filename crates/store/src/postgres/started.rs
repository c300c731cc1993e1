//! Runs that were started here and end alone.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use everbell_core::RunId;
use everbell_core::settle::Transition;
use everbell_core::store::Claim;
use uuid::Uuid;

/// Runs that this store has started, each with the one-time job that ends with it. When such a run succeeds, nothing but the
/// run, the failures of its job and the state of that one-time job change, which is one statement. Whether a job is one-time
/// never changes, so what is known stays true; what is forgotten costs a transaction.
#[derive(Debug, Default)]
pub(super) struct Started(Mutex<HashMap<RunId, Option<Uuid>>>);

/// The most remembered runs; above that all are forgotten, so that nothing grows without bound.
const MAX_STARTED: usize = 50_000;

impl Started {
    pub(super) fn add(&self, claims: &[Claim]) {
        let mut started = self.started();
        if started.len() >= MAX_STARTED {
            started.clear();
        }
        started.extend(claims.iter().filter(|claim| is_known(claim)).map(|claim| (claim.run.id, retires(claim))));
    }

    /// Forgets the runs that end here. Returns for each the one-time job that ends with it, or nothing if a run was not known.
    pub(super) fn remove(&self, transitions: &[Transition]) -> Option<Vec<Option<Uuid>>> {
        let mut started = self.started();
        // Each, also after one that was not known.
        let removed: Vec<_> = transitions.iter().map(|transition| started.remove(&transition.run_id)).collect();
        removed.into_iter().collect()
    }

    fn started(&self) -> MutexGuard<'_, HashMap<RunId, Option<Uuid>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether it is known what the end of the run changes. Not if its job cannot be read.
fn is_known(claim: &Claim) -> bool {
    claim.job.is_some() || claim.run.job_id.is_none()
}

/// The one-time job that the end of the run retires: that of its slot, not that of a run by hand.
fn retires(claim: &Claim) -> Option<Uuid> {
    let job = claim.job.as_ref().filter(|job| job.is_one_time() && claim.run.slot_at.is_some())?;
    Some(job.id.as_uuid())
}
