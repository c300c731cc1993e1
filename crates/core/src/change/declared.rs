//! Changes of jobs that a program or a configuration file declares.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Edit, JobChange, JobView, NewJob, new_version, touched};
use crate::calendar::Calendar;
use crate::declaration::Declaration;
use crate::draft::Draft;
use crate::ids::{Invalid, JobId};
use crate::job::Definition;
use crate::plan::Plan;

impl NewJob {
    /// Records the sync that creates it.
    #[must_use]
    pub fn declared(mut self, declaration: Declaration) -> NewJob {
        self.state.declaration = Some(declaration);
        self
    }
}

impl JobChange {
    /// Records the last sync with the job, or with its next version.
    #[must_use]
    pub fn declared(mut self, declaration: Declaration) -> JobChange {
        let state = self.successor.as_mut().map_or(&mut self.state, |successor| &mut successor.state);
        state.declaration = Some(declaration);
        self
    }
}

/// Records the last sync of a job that is as it was declared, and changes nothing else.
pub fn record_declaration(
    view: &JobView,
    declaration: Declaration,
    by: &str,
    now: Timestamp,
) -> Result<JobChange, Invalid> {
    view.expect_living()?;
    let (state, plan) = (touched(view, by, now), Plan::nothing(&view.timer));
    let change = JobChange::new(state, plan);
    Ok(change.declared(declaration))
}

/// Makes the next version of a job that was edited, with the content that its declaration has. `declared` is the version
/// that the last sync wrote, and `calendars` are the current ones.
pub fn restore_declaration(
    view: &JobView,
    declared: &Definition,
    calendars: &[Arc<Calendar>],
    id: JobId,
    by: &str,
    now: Timestamp,
) -> Result<JobChange, Invalid> {
    view.expect_living()?;
    let declaration = view.job.state.declaration.clone().ok_or_else(|| {
        Invalid::new(
            "declaration",
            "no program and no configuration file declares this job: there is nothing to restore",
        )
    })?;
    if !declaration.is_edited(view.job()) {
        return Err(Invalid::new("declaration", "the job is as it was declared: there is nothing to restore"));
    }
    if declared.key != view.job().key || declared.version != declaration.version {
        let reason = format!("was synced as version {}, not as {}", declaration.version, declared.version);
        return Err(Invalid::new("declaration", reason));
    }
    let edit = Draft::from_definition(declared).edit_of(view.job(), now);
    let edit = edit.map_err(|problems| {
        let first = problems.into_iter().next();
        first.unwrap_or_else(|| Invalid::new("declaration", "can no longer be read"))
    })?;
    let edit = Edit { calendars: calendars.to_vec(), ..edit };
    let declaration = declaration.at_version(view.job().version + 1);
    Ok(new_version(view, edit, id, false, by, now)?.declared(declaration))
}
