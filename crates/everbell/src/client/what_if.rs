//! Predictions of a move of an org to another zone.

use everbell_core::freeze::frozen_spans;
use everbell_core::org::{self, OrgFacts, OrgSettings, OrgTimer, OrgView, WhatIf};
use everbell_core::store::{OrgJob, StoreResult};
use everbell_core::{Invalid, JobKey, OrgId, Spec, Zone};
use std::sync::Arc;

use super::orgs::Orgs;

/// The most fires of each job that are returned.
const MAX_FIRES: usize = 100;

/// The effect of a move on one job of an org.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JobWhatIf {
    /// The job, as the org sees it.
    pub job: OrgJob,
    /// Its current schedule; `None` if it cannot be read.
    pub here: Option<Spec>,
    /// Its schedule after the move.
    pub there: Option<Spec>,
    /// The predicted effect.
    pub what_if: WhatIf,
}

impl Orgs {
    /// Predicts the effect of moving the org to this zone now, on every per-org job: the next fires before and after,
    /// at most 100 of each, and how often each local day would fire. Writes nothing.
    pub async fn what_if(&self, org: &OrgId, timezone: &str, count: usize) -> StoreResult<Vec<JobWhatIf>> {
        let zone = Zone::get(timezone).map_err(|error| Invalid::new("timezone", error.to_string()))?;
        let (now, count) = (self.context.now(), count.min(MAX_FIRES));
        let place = self.get(org).await?.place;
        let freezes = self.context.parts.store.freezes(now).await?;
        let mut told = Vec::new();
        for job in self.jobs_of(org).await? {
            let view = view(org, &place, &job);
            let what_if = org::what_if(&view, &frozen_spans(&freezes, &view.job), zone.name(), count, now)?;
            let here = org::spec_for(&view.job, &view.facts).ok();
            let mut moved = view.facts;
            zone.name().clone_into(&mut moved.place.timezone);
            let there = org::spec_for(&view.job, &moved).ok();
            told.push(JobWhatIf { job, here, there, what_if });
        }
        Ok(told)
    }

    /// Returns the jobs that fire for the org at once after a change of it, because today's time is past and today has
    /// no run. `before` are its jobs before the change; none for a new org.
    pub async fn fires_now(&self, org: &OrgId, before: &[OrgJob]) -> StoreResult<Vec<JobKey>> {
        let (now, place) = (self.context.now(), self.get(org).await?.place);
        let freezes = self.context.parts.store.freezes(now).await?;
        let mut keys = Vec::new();
        for job in self.jobs_of(org).await? {
            let key = &job.job.definition.key;
            let old = before.iter().find(|old| old.job.definition.key == *key).and_then(|old| old.timer.as_ref());
            let dates =
                (old.and_then(|old| old.last_local_date), job.timer.as_ref().and_then(|new| new.last_local_date));
            let frozen = frozen_spans(&freezes, &job.job.definition);
            let due = org::what_if(&view(org, &place, &job), &frozen, &place.timezone, 1, now);
            // The planner may have been faster.
            if dates.0 < dates.1 || due.is_ok_and(|due| due.after.first().is_some_and(|at| *at <= now)) {
                keys.push(key.clone());
            }
        }
        Ok(keys)
    }
}

/// The state of a job and an org.
fn view(org: &OrgId, place: &OrgSettings, job: &OrgJob) -> OrgView {
    OrgView {
        job: Arc::clone(&job.job.definition),
        org: org.clone(),
        facts: OrgFacts { lifecycle: (&job.job.state).into(), place: place.clone(), override_: job.override_.clone() },
        timer: job.timer.clone().map(|timer| OrgTimer { timer, error: job.error.clone(), active: Vec::new() }),
        before: None,
        upstream_succeeded_at: None,
    }
}
