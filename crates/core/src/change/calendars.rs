//! Jobs follow the edits of their calendars.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Edit, JobChange, JobView, new_version};
use crate::calendar::Calendar;
use crate::ids::{Invalid, JobId};

/// Makes the next version of a job whose calendars have other days now. Nothing else about it changes, a pause goes on, and
/// the slots of the new days begin now.
pub fn follow_calendars(
    view: &JobView,
    current: Vec<Arc<Calendar>>,
    id: JobId,
    by: &str,
    now: Timestamp,
) -> Result<JobChange, Invalid> {
    view.expect_living()?;
    if view.job().is_current(&current) {
        return Err(Invalid::new("policies.calendar", "the job already has the days of its calendars"));
    }
    let edit = Edit { calendars: current, ..Edit::default() };
    let mut change = new_version(view, edit, id, false, by, now)?;
    // The declaration is the same, and so is what it says: only days have changed.
    if let Some(successor) = &mut change.successor
        && let Some(declaration) = view.job.state.declaration.as_ref()
        && declaration.version == view.job().version
    {
        successor.state.declaration = Some(declaration.clone().at_version(successor.definition.version));
    }
    Ok(change)
}
