//! Backfills of any length: their beginning, their steps, and what operators change about them.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{JobChange, JobView};
use crate::backfill::{Backfill, BackfillSettings, BackfillStatus, ChunkInput, SlotRun};
use crate::ids::{Invalid, RunId};
use crate::job::{JobStatus, Scope};
use crate::plan::Plan;
use crate::run::RunStatus;
use crate::spec::Spec;

/// A backfill to be written with a change of its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillWrite {
    /// The backfill as it shall be afterwards.
    pub backfill: Backfill,
    /// Its revision before, which it must still have; `None` for a new one.
    pub expected_revision: Option<u64>,
    /// Whether its runs that have not started are deleted, as if they had never been created.
    pub withdraws: bool,
}

/// The state of a backfill's runs and slots, read before the decision.
#[derive(Clone, Copy, Debug)]
pub struct BackfillFacts<'a> {
    /// Its open runs.
    pub runs: &'a [SlotRun],
    /// Its next slots, and whether they have a run already.
    pub slots: &'a BTreeMap<Timestamp, bool>,
    /// The most active runs of a job.
    pub max_active: u32,
}

/// Begins a backfill with its first runs.
pub fn begin_backfill(
    view: &JobView,
    mut backfill: Backfill,
    facts: &BackfillFacts<'_>,
    now: Timestamp,
) -> Result<JobChange, Invalid> {
    view.expect_living()?;
    view.expect_one_or_all()?;
    backfill.settings.check()?;
    if view.job().is_one_time() {
        return Err(Invalid::new("from", "a one-time job has no past slots to backfill; run it now instead"));
    }
    let spec = spec_of(view)?;
    let plan = chunk(view, &spec, &mut backfill, facts, now);
    end_if_done(&mut backfill, &spec);
    Ok(changed(view, plan, backfill, None, false))
}

/// Takes a step of a backfill: counts runs that ended, and creates runs for the next slots. Stops it if the job has no such
/// slots any more. Waits while the job is paused, unless the backfill goes on then, and while its schedule cannot be read.
/// Refuses a step that would change nothing.
pub fn advance_backfill(
    view: &JobView,
    stored: &Backfill,
    facts: &BackfillFacts<'_>,
    now: Timestamp,
) -> Result<JobChange, Invalid> {
    let mut backfill = stored.clone();
    backfill.settle(facts.runs);
    let mut plan = Plan::nothing(&view.timer);
    if backfill.status == BackfillStatus::Running {
        if let Some(reason) = impossible(view, stored) {
            (backfill.status, backfill.stopped_because) = (BackfillStatus::Stopped, Some(reason));
        } else if let Ok(spec) = spec_of(view) {
            if waits_for(view, stored).is_none() {
                plan = chunk(view, &spec, &mut backfill, facts, now);
            }
            end_if_done(&mut backfill, &spec);
        }
    }
    if backfill == *stored {
        return Err(Invalid::new("status", "the backfill waits"));
    }
    Ok(next(view, plan, backfill, stored, now))
}

/// Pauses a backfill. Its runs that have not started are withdrawn until it goes on; those at work, with their other
/// attempts, go on.
pub fn pause_backfill(view: &JobView, stored: &Backfill, now: Timestamp) -> Result<JobChange, Invalid> {
    expect(stored, BackfillStatus::Running, "the backfill is not running")?;
    let backfill = Backfill { status: BackfillStatus::Paused, ..stored.clone() };
    let change = next(view, Plan::nothing(&view.timer), backfill, stored, now);
    Ok(withdrawing(change))
}

/// Lets a paused backfill go on.
pub fn resume_backfill(view: &JobView, stored: &Backfill, now: Timestamp) -> Result<JobChange, Invalid> {
    expect(stored, BackfillStatus::Paused, "the backfill is not paused")?;
    view.expect_living()?;
    let mut backfill = Backfill { status: BackfillStatus::Running, ..stored.clone() };
    backfill.measure_from(now);
    Ok(next(view, Plan::nothing(&view.timer), backfill, stored, now))
}

/// Changes how a backfill runs. Its order stays.
pub fn set_backfill(
    view: &JobView,
    stored: &Backfill,
    settings: BackfillSettings,
    now: Timestamp,
) -> Result<JobChange, Invalid> {
    settings.check()?;
    if stored.status.is_over() {
        return Err(Invalid::new("status", format!("the backfill is {}", stored.status)));
    }
    let mut backfill = stored.clone();
    backfill.settings = BackfillSettings { order: stored.settings.order, ..settings };
    backfill.measure_from(now);
    Ok(next(view, Plan::nothing(&view.timer), backfill, stored, now))
}

/// Stops a backfill for good. Its runs that have not started are withdrawn, those that wait for another attempt are canceled,
/// and those at work go on. Its range can be requested again.
pub fn stop_backfill(
    view: &JobView,
    stored: &Backfill,
    runs: &[SlotRun],
    now: Timestamp,
) -> Result<JobChange, Invalid> {
    if stored.status.is_over() {
        return Err(Invalid::new("status", format!("the backfill is {}", stored.status)));
    }
    let waits = |run: &&SlotRun| stored.owns(run) && run.status == RunStatus::Pending && run.attempt > 0;
    let cancel: Vec<RunId> = runs.iter().filter(waits).map(|run| run.id).collect();
    let plan = Plan { cancel, ..Plan::nothing(&view.timer) };
    let backfill = Backfill { status: BackfillStatus::Stopped, ..stored.clone() };
    Ok(withdrawing(next(view, plan, backfill, stored, now)))
}

/// Returns why a running backfill creates no runs at the moment.
pub fn backfill_waits_for(state: &crate::job::JobState, backfill: &Backfill) -> Option<&'static str> {
    if backfill.status != BackfillStatus::Running {
        None
    } else if state.error.is_some() {
        Some("the schedule of the job cannot be read")
    } else if state.status == JobStatus::Paused && !backfill.settings.paused_ok {
        Some("the job is paused")
    } else {
        None
    }
}

fn waits_for(view: &JobView, backfill: &Backfill) -> Option<&'static str> {
    backfill_waits_for(&view.job.state, backfill)
}

/// Why the job has no slots for a backfill any more.
fn impossible(view: &JobView, backfill: &Backfill) -> Option<String> {
    let job = view.job();
    if view.job.state.status == JobStatus::Retired {
        return Some("the job was retired".to_owned());
    }
    if job.is_one_time() {
        return Some(format!("the job has been a one-time job since version {}", job.version));
    }
    match (job.scope, &backfill.org) {
        (Scope::PerOrg, None) => Some(format!("the job has fired per org since version {}", job.version)),
        (Scope::Global, Some(_)) => Some(format!("the job has not fired per org since version {}", job.version)),
        (Scope::PerOrg, Some(_)) if view.org.is_none() => Some("the org was deleted".to_owned()),
        _ => None,
    }
}

/// The schedule that the slots are read from.
fn spec_of(view: &JobView) -> Result<Spec, Invalid> {
    match view.org_spec()? {
        Some(spec) => Ok(spec),
        None => view.job().spec.clone().map_err(|broken| Invalid::new("schedule", broken.reason)),
    }
}

fn chunk(view: &JobView, spec: &Spec, backfill: &mut Backfill, facts: &BackfillFacts<'_>, now: Timestamp) -> Plan {
    let (known, max_active) = (facts.slots, facts.max_active);
    let input = ChunkInput { job: view.job(), spec, timer: &view.timer, active: &view.active, known, max_active, now };
    Plan { runs: backfill.next_chunk(&input), ..Plan::nothing(&view.timer) }
}

fn end_if_done(backfill: &mut Backfill, spec: &Spec) {
    if backfill.open.is_empty() && backfill.next_slots(spec, 1).is_empty() {
        backfill.status = BackfillStatus::Done;
    }
}

fn expect(stored: &Backfill, status: BackfillStatus, refusal: &str) -> Result<(), Invalid> {
    if stored.status == status {
        return Ok(());
    }
    Err(Invalid::new("status", format!("{refusal}: it is {}", stored.status)))
}

/// The change to the next revision.
fn next(view: &JobView, plan: Plan, backfill: Backfill, stored: &Backfill, now: Timestamp) -> JobChange {
    let backfill = backfill.at_revision(stored.revision + 1, now);
    changed(view, plan, backfill, Some(stored.revision), false)
}

fn withdrawing(mut change: JobChange) -> JobChange {
    if let Some(write) = &mut change.backfill {
        write.withdraws = true;
    }
    change
}

fn changed(
    view: &JobView,
    plan: Plan,
    backfill: Backfill,
    expected_revision: Option<u64>,
    withdraws: bool,
) -> JobChange {
    let write = BackfillWrite { backfill, expected_revision, withdraws };
    JobChange { backfill: Some(Box::new(write)), ..view.planned(plan) }
}
