//! A pause, as the API shows it.

use serde::Serialize;
use utoipa::ToSchema;

use super::JobDocument;

/// A job that does not fire.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Paused)]
pub(crate) struct PausedDocument {
    #[serde(flatten)]
    pub(crate) job: JobDocument,
    /// How many runs have not begun and wait until the job is resumed.
    pub(crate) held_runs: u64,
    /// How many runs that had not begun were canceled.
    pub(crate) canceled_runs: u64,
}
