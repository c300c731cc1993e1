//! The state of jobs in files: which of them are paused.
//!
//! A definition has no field for it, so applying a definition again cannot undo a pause. The state stands in blocks of its
//! own, which `jobs export --with-state` writes and `jobs apply` reads.

use everbell_wire as wire;
use everbell_wire::job::JobStatus;
use everbell_wire::job_toml;
use jiff::Timestamp;
use serde::Serialize;

/// A paused job, as a `[[job_state]]` block says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PausedJob {
    /// Its key.
    pub job_key: String,
    /// Why it is paused.
    pub pause_reason: String,
    /// When it resumes automatically.
    pub paused_until: Option<Timestamp>,
}

impl PausedJob {
    /// The state of a job, if it is paused.
    pub(super) fn from_job(job: &wire::Job) -> Option<PausedJob> {
        let reason = job.pause_reason.clone().filter(|_| job.status == JobStatus::Paused)?;
        Some(PausedJob { job_key: job.job_key.clone(), pause_reason: reason, paused_until: job.paused_until })
    }

    /// Whether the pause is over at this time.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.paused_until.is_some_and(|until| until <= now)
    }

    /// Writes it as a block.
    pub(super) fn block(&self) -> String {
        let quoted = job_toml::quoted;
        let mut lines = vec![
            "[[job_state]]".to_owned(),
            format!("job_key = {}", quoted(&self.job_key)),
            format!("pause_reason = {}", quoted(&self.pause_reason)),
        ];
        lines.extend(self.paused_until.map(|until| format!("paused_until = {}", quoted(&until.to_string()))));
        format!("{}\n", lines.join("\n"))
    }
}
