//! Runs with their outputs, which only the page of one run reads.

use everbell_core::Run;
use everbell_core::store::StoreResult;

use super::RunColumns;
use super::from_row::by_name;

/// A run with its output.
#[derive(Clone, Debug)]
pub(crate) struct WholeRun {
    run: RunColumns,
    output: Option<String>,
}

by_name!(WholeRun { output } flatten { run });

impl WholeRun {
    pub(crate) fn read(self) -> StoreResult<Run> {
        let mut run = self.run.read()?;
        run.output = self.output;
        Ok(run)
    }
}
