//! Runs that are to be settled.

use everbell_core::settle::Settling;
use everbell_core::{Definition, JobId, RunId, RunStatus};
use uuid::Uuid;

use super::from_row::by_name;
use super::{LoadedJobs, earlier};

/// A running run whose lease ran out.
#[derive(Clone, Debug)]
pub(crate) struct SettlingColumns {
    pub(crate) run_id: Uuid,
    pub(crate) job_id: Option<Uuid>,
    pub(crate) attempt: i32,
    pub(crate) earlier: Option<String>,
}

by_name!(SettlingColumns { run_id, job_id, attempt, earlier });

/// Runs to be settled, with what their jobs say about attempts. A run whose job cannot be read is lost all the same.
pub(crate) fn settling(rows: &[SettlingColumns], learned: &LoadedJobs) -> Vec<Settling> {
    let job_of = |row: &SettlingColumns| row.job_id.and_then(|id| learned.get(JobId::from_uuid(id)));
    rows.iter().map(|row| row.read(job_of(row).as_deref())).collect()
}

impl SettlingColumns {
    fn read(&self, job: Option<&Definition>) -> Settling {
        let (id, attempt) = (RunId::from_uuid(self.run_id), u32::try_from(self.attempt).unwrap_or(0));
        // Attempts that cannot be read all count, so that the run comes to its end.
        let earlier = earlier::read(self.earlier.as_deref()).unwrap_or_default();
        Settling::new(id, RunStatus::Running, attempt, job.map(|job| &job.policies)).after(earlier)
    }
}
