//! The gate in front of a run: another job that must have succeeded.

use jiff::Timestamp;

use super::{PlanContext, before};
use crate::job::Definition;
use crate::run::SkipReason;

/// The reason to skip a run whose job depends on another one that did not succeed recently enough.
pub(crate) fn unmet_dependency(job: &Definition, seen: &PlanContext<'_>, now: Timestamp) -> Option<SkipReason> {
    let dependency = job.policies.depends_on.as_ref()?;
    let since = before(now, dependency.within);
    let met = seen.upstream_succeeded_at.is_some_and(|at| at >= since);
    (!met).then(|| SkipReason::Dependency { job_key: dependency.job_key.clone(), within: dependency.within })
}
