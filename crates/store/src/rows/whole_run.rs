//! Runs with their outputs, which only the page of one run reads.

use everbell_core::handover::Remote;
use everbell_core::store::StoreResult;
use everbell_core::{Run, RunStatus};

use super::RunColumns;
use super::from_row::by_name;
use super::remote::{milliseconds, progress};
use crate::micros::Micros;

/// A run with its output.
#[derive(Clone, Debug)]
pub(crate) struct WholeRun {
    run: RunColumns,
    output: Option<String>,
    remote_lease: Option<i64>,
    remote_deadline: Option<Micros>,
    progress: Option<i32>,
    progress_message: Option<String>,
}

by_name!(WholeRun { output, remote_lease, remote_deadline, progress, progress_message } flatten { run });

impl WholeRun {
    pub(crate) fn read(self) -> StoreResult<Run> {
        let mut run = self.run.read()?;
        run.output = self.output;
        // Of the last hand-over, which may be one of an earlier attempt.
        if run.status == RunStatus::Running
            && run.is_handed_over()
            && let Some((lease, deadline)) = self.remote_lease.zip(self.remote_deadline)
        {
            let progress = progress(self.progress, self.progress_message);
            run.remote = Some(Remote { lease: milliseconds(lease), deadline: deadline.into(), progress });
        }
        Ok(run)
    }
}
