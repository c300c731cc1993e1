//! What a move of an org to another zone would do.

use everbell_core::org::{self, OrgFacts, OrgTimer, OrgView, WhatIf};
use everbell_core::store::{OrgJob, StoreResult};
use everbell_core::{Invalid, OrgId, Spec, Zone};
use std::sync::Arc;

use super::orgs::Orgs;

/// The most fires of each job that are told.
const MOST_FIRES: usize = 100;

/// What a move would do to one job of an org.
#[derive(Clone, Debug)]
pub struct JobWhatIf {
    /// The job, as the org sees it.
    pub job: OrgJob,
    /// Its schedule as it is; `None` if it cannot be read.
    pub here: Option<Spec>,
    /// Its schedule after the move.
    pub there: Option<Spec>,
    /// What would happen.
    pub what_if: WhatIf,
}

impl Orgs {
    /// What would happen if the org moved to this zone now, for every job that fires for orgs: the next fires before and
    /// after, at most 100 of each, and how often each local day would fire. Nothing is written.
    pub async fn what_if(&self, org: &OrgId, timezone: &str, count: usize) -> StoreResult<Vec<JobWhatIf>> {
        let zone = Zone::get(timezone).map_err(|error| Invalid::new("timezone", error.to_string()))?;
        let (now, count) = (self.context.now(), count.min(MOST_FIRES));
        let place = self.get(org).await?.place;
        let mut told = Vec::new();
        for job in self.jobs_of(org).await? {
            let facts = OrgFacts { life: (&job.job.state).into(), place: place.clone(), wish: job.wish.clone() };
            let timer = job.timer.clone().map(|timer| OrgTimer { timer, error: job.error.clone(), active: Vec::new() });
            let view = OrgView {
                job: Arc::clone(&job.job.definition),
                org: org.clone(),
                facts,
                timer,
                before: None,
                upstream_succeeded_at: None,
            };
            let what_if = org::what_if(&view, zone.name(), count, now)?;
            let here = org::spec_for(&view.job, &view.facts).ok();
            let mut moved = view.facts;
            zone.name().clone_into(&mut moved.place.timezone);
            let there = org::spec_for(&view.job, &moved).ok();
            told.push(JobWhatIf { job, here, there, what_if });
        }
        Ok(told)
    }
}
