//! Runs that operators ask for, and tasks for every org of a job.

use jiff::Timestamp;

use super::{JobChange, JobView};
use crate::ids::{Invalid, RunId};
use crate::org::OrgTask;
use crate::plan::{self, Plan, RunNow};

/// Refuses `more` runs for a job, or for an org of a job, that would then have more than `limit` that are pending or running.
pub fn expect_pending_room(view: &JobView, more: usize, limit: u32) -> Result<(), Invalid> {
    let active = view.active.len();
    if active.saturating_add(more) <= limit as usize {
        return Ok(());
    }
    Err(Invalid::too_many_pending(active, more, limit))
}

/// Enqueues a run at once. A paused job may be run by hand; a retired one not.
pub fn run_now(view: &JobView, request: &RunNow<'_>, now: Timestamp) -> Result<JobChange, Invalid> {
    view.expect_living()?;
    view.expect_one_or_all()?;
    let plan = plan::run_now(view.job(), &view.timer, &view.seen(None), request, now);
    Ok(view.planned(plan))
}

/// Enqueues one of many runs, which waits for its turn. A paused job may be run by hand; a retired one not.
pub fn run_in_turn(view: &JobView, request: &RunNow<'_>, now: Timestamp) -> Result<JobChange, Invalid> {
    view.expect_living()?;
    view.expect_one_or_all()?;
    let plan = plan::run_in_turn(view.job(), &view.timer, &view.seen(None), request, now);
    Ok(view.planned(plan))
}

/// Enqueues runs for past slots. A paused job may be backfilled; a retired one may not.
pub fn backfill(view: &JobView, request: &plan::Backfill<'_>) -> Result<JobChange, Invalid> {
    view.expect_living()?;
    view.expect_one_or_all()?;
    let spec = view.org_spec()?;
    let plan = plan::backfill(view.job(), &view.timer, &view.seen(spec.as_ref()), request)?;
    Ok(view.planned(plan))
}

/// Starts a task for every org, in small steps: a run by hand, a backfill, or a rebuild of the timers.
pub fn for_all_orgs(view: &JobView, task: OrgTask) -> Result<JobChange, Invalid> {
    view.expect_living()?;
    if !view.is_of_all_orgs() {
        return Err(Invalid::new("orgId", "this job does not fire for orgs: its scope is `global`"));
    }
    let plan = Plan::nothing(&view.timer);
    Ok(JobChange { org_task: Some(task), ..view.planned(plan) })
}

/// Cancels these runs of a job, which may be retired by now. Pending ones end at once; those that just began are asked to stop.
pub fn cancel_runs(view: &JobView, runs: &[RunId]) -> JobChange {
    let plan = Plan { cancel: runs.to_vec(), ..Plan::nothing(&view.timer) };
    view.planned(plan)
}
