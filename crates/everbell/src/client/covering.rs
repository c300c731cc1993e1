//! Runs that cover slots that were folded into them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use everbell_core::calendar::Roll;
use everbell_core::store::{JobRef, SlotOutcome, StoreError, StoreResult};
use everbell_core::{Gap, GapReason, JobId, OrgId, Run, RunId, Spec};

use super::Context;
use super::explain::just_before;
use super::org_jobs::JobOfOrg;
use super::runs::Runs;

/// Returns the run that covers a gap of folded slots, if it still exists.
pub(super) async fn covering_run(
    context: &Context,
    job: JobId,
    org: Option<&OrgId>,
    spec: &Spec,
    gap: &Gap,
) -> StoreResult<Option<Box<Run>>> {
    if gap.reason != GapReason::Coalesced {
        return Ok(None);
    }
    // Several slots of one time may be folded into the last of them, if slots move to other days.
    let own = Some(gap.last_slot_at).filter(|_| spec.roll() != Roll::Skip);
    let candidates = [own, spec.next_after(gap.last_slot_at), spec.prev_at_or_before(just_before(gap.first_slot_at))];
    // Of the slots of one time the last one covers others.
    let slots = candidates.into_iter().flatten().filter_map(|at| spec.slots_at(at).pop());
    for slot in slots {
        if let Some(SlotOutcome::Run(run)) = context.parts.store.slot_outcome(job, org, slot).await?
            && run.folded > 0
        {
            return Ok(Some(run));
        }
    }
    Ok(None)
}

impl Runs {
    /// Returns for each gap the run that its slots were folded into: for those with the reason `coalesced`, while their job
    /// and the run exist.
    pub async fn covering(&self, gaps: &[(JobId, Option<OrgId>, Gap)]) -> StoreResult<Vec<Option<RunId>>> {
        let mut specs: BTreeMap<(JobId, Option<&OrgId>), Option<Spec>> = BTreeMap::new();
        let mut found = Vec::with_capacity(gaps.len());
        for (job, org, gap) in gaps {
            if gap.reason != GapReason::Coalesced {
                found.push(None);
                continue;
            }
            let org = org.as_ref();
            let spec = match specs.entry((*job, org)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => place.insert(spec_of(&self.context, *job, org).await?),
            };
            found.push(match spec {
                Some(spec) => covering_run(&self.context, *job, org, spec, gap).await?.map(|run| run.id),
                None => None,
            });
        }
        Ok(found)
    }
}

/// The schedule of a version, or of an org for it, if it still exists and can be read.
async fn spec_of(context: &Context, job: JobId, org: Option<&OrgId>) -> StoreResult<Option<Spec>> {
    let job = JobRef::Id(job);
    let found = match org {
        Some(org) => JobOfOrg::read(context, &job, org).await.map(|read| read.spec().ok()),
        None => context.parts.store.get_job(&job).await.map(|row| row.job.definition.spec.as_ref().ok().cloned()),
    };
    match found {
        Err(StoreError::NotFound { .. } | StoreError::Invalid(_)) => Ok(None),
        found => found,
    }
}
