//! Predicts the next runs of an org with the decisions of core. Nothing is written.

use std::sync::Arc;

use everbell::Org;
use everbell::core::freeze::{Freeze, frozen_spans};
use everbell::core::org::{self, OrgFacts, OrgTimer, OrgView};
use everbell::core::store::OrgJob;
use jiff::Timestamp;

/// How many fires are named.
const MAX_LISTED_FIRES: usize = 3;

/// Combines a job and an org into the input of a decision.
pub(super) fn view(org: &Org, row: &OrgJob) -> OrgView {
    OrgView {
        job: Arc::clone(&row.job.definition),
        org: org.id.clone(),
        facts: OrgFacts {
            lifecycle: (&row.job.state).into(),
            place: org.place.clone(),
            override_: row.override_.clone(),
        },
        timer: row.timer.clone().map(|timer| OrgTimer { timer, error: row.error.clone(), active: Vec::new() }),
        before: None,
        upstream_succeeded_at: None,
    }
}

/// The next fires, if things were like this from now on; none in a zone that cannot be read.
pub(super) fn fires(view: &OrgView, freezes: &[Freeze], now: Timestamp) -> Vec<Timestamp> {
    let frozen = frozen_spans(freezes, &view.job);
    org::what_if(view, &frozen, &view.facts.place.timezone, MAX_LISTED_FIRES, now)
        .map(|outcome| outcome.after)
        .unwrap_or_default()
}
