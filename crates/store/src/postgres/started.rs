//! Runs that were started here and end alone.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use everbell_core::RunId;
use everbell_core::settle::Transition;
use everbell_core::store::Claim;

/// Runs that this store has started and whose jobs, if they have one, are recurring. When such a run succeeds, nothing but the run and the
/// failures of its job change, which is one statement; the run of a one-time job retires it, which takes a transaction.
/// Whether a job is recurring never changes, so what is known stays true; what is forgotten costs two round trips.
#[derive(Debug, Default)]
pub(super) struct Started(Mutex<HashSet<RunId>>);

/// The most remembered runs; above that all are forgotten, so that nothing grows without bound.
const MAX_STARTED: usize = 50_000;

impl Started {
    pub(super) fn add(&self, claims: &[Claim]) {
        let mut started = self.started();
        if started.len() >= MAX_STARTED {
            started.clear();
        }
        started.extend(claims.iter().filter(|claim| ends_alone(claim)).map(|claim| claim.run.id));
    }

    /// Forgets the runs that end here, and returns whether all of them were known.
    pub(super) fn remove(&self, transitions: &[Transition]) -> bool {
        let mut started = self.started();
        // Each, also after one that was not known.
        let known = transitions.iter().filter(|transition| started.remove(&transition.run_id)).count();
        known == transitions.len()
    }

    fn started(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the end of the run cannot change its job. Not if the job cannot be read.
fn ends_alone(claim: &Claim) -> bool {
    match &claim.job {
        Some(job) => !job.is_one_time(),
        None => claim.run.job_id.is_none(),
    }
}
