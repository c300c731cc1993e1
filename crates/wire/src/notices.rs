//! Notices beside next fires: warnings about the schedule, and the freeze that keeps a job from firing. Every list keeps the
//! slots of the schedule and marks those of a freeze, so none disappears without a word.

use everbell_core::freeze::Freeze;
use everbell_core::store::JobRow;
use jiff::Timestamp;

use crate::{Fire, Job, OrgJob, Warning};

/// The reason of a freeze, and its end.
fn words(freeze: Option<&Freeze>) -> (Option<String>, Option<Timestamp>) {
    (freeze.map(|freeze| freeze.reason.clone()), freeze.and_then(Freeze::span).map(|span| span.until))
}

impl Job {
    /// A job with what may surprise about its schedule from now on.
    pub fn with_warnings(row: &JobRow, now: Timestamp) -> Job {
        let warnings = row.job.definition.spec.as_ref().map(|spec| spec.warnings(now)).unwrap_or_default();
        Job { warnings: Some(warnings.iter().map(Warning::from).collect()), ..Job::from(row) }
    }

    /// The job with the freeze that keeps it from firing at `nextRunAt`, if there is one.
    #[must_use]
    pub fn frozen_by(self, freeze: Option<&Freeze>) -> Job {
        let (next_run_frozen, next_run_frozen_until) = words(freeze);
        Job { next_run_frozen, next_run_frozen_until, ..self }
    }
}

impl OrgJob {
    /// The job with the freeze that keeps it from firing for the org at `nextRunAt`, if there is one.
    #[must_use]
    pub fn frozen_by(self, freeze: Option<&Freeze>) -> OrgJob {
        let (next_run_frozen, next_run_frozen_until) = words(freeze);
        OrgJob { next_run_frozen, next_run_frozen_until, ..self }
    }
}

impl Fire {
    /// The fire with the freeze that keeps it from happening, if there is one.
    #[must_use]
    pub fn frozen_by(self, freeze: Option<&Freeze>) -> Fire {
        let (frozen, frozen_until) = words(freeze);
        Fire { frozen, frozen_until, ..self }
    }
}
