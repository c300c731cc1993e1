//! Changes that begin and stop backfills.

use super::{JobChange, JobView, PendingRuns};
use crate::ids::{Invalid, RunId};
use crate::plan::{self, Plan};

/// Enqueues runs for past slots. A paused job may be backfilled; a retired one may not.
pub fn backfill(view: &JobView, request: &plan::Backfill<'_>) -> Result<JobChange, Invalid> {
    view.expect_living()?;
    view.expect_one_or_all()?;
    let spec = view.org_spec()?;
    let plan = plan::backfill(view.job(), &view.timer, &view.seen(spec.as_ref()), request)?;
    Ok(JobChange { state: view.job.state.clone(), plan, successor: None, org_task: None, pending: PendingRuns::Leave })
}

/// Cancels these runs of a job, which may be retired by now. Pending ones end at once; those that just began are asked to stop.
pub fn cancel_runs(view: &JobView, runs: &[RunId]) -> JobChange {
    let plan = Plan { cancel: runs.to_vec(), ..Plan::nothing(&view.timer) };
    JobChange { state: view.job.state.clone(), plan, successor: None, org_task: None, pending: PendingRuns::Leave }
}
