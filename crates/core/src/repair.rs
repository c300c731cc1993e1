//! Active jobs that would never fire again: their timer has no next fire although their schedule has more slots.
//!
//! No decision of this crate leaves a job like that, but a row can be damaged, and the cause of an error can go away, for
//! instance with a release that knows a zone again. So every instance looks for such jobs now and then and asks [`needed`]
//! about each. Jobs whose schedule has ended have no next fire by right, and are left alone.

use crate::job::{Job, JobStatus, Scope, Timer};

/// A repair that lets a job fire again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repair {
    /// Its timer lost its next fire. It is armed again after its mark, so `catchUp` decides about missed slots.
    Arm,
    /// It was errored, and its schedule can be read again. The slots of that time become an `errored` gap.
    EndError,
}
crate::policy::words!(Repair { Arm = "armed", EndError = "error_ended" });

/// Returns the repair that a job needs to fire again; `None` if it fires, or rightly does not.
///
/// `timer` is the one of a job that fires for no org. Org updates repair the timers of orgs.
pub fn needed(job: &Job, timer: Option<&Timer>) -> Option<Repair> {
    let spec = job.definition.spec.as_ref().ok().filter(|_| job.state.status == JobStatus::Active)?;
    let resting = |timer: &Timer| timer.next_run_at.is_none();
    match (job.definition.scope, timer) {
        (Scope::PerOrg, _) => job.state.error.is_some().then_some(Repair::EndError),
        (Scope::Global, Some(timer)) if resting(timer) && job.state.error.is_some() => Some(Repair::EndError),
        (Scope::Global, Some(timer)) if resting(timer) => {
            spec.next_after(timer.last_slot_at).is_some().then_some(Repair::Arm)
        }
        (Scope::Global, _) => None,
    }
}
