//! [`Inspection`]: what a look at a database finds.

use everbell_core::store::JobCount;
use jiff::Timestamp;

use crate::moved::MovedMark;

/// How many runs are counted at the most, so that looking at a database stays cheap.
pub const MAX_COUNTED_RUNS: u64 = 100_000;

/// A database as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Such as `sqlite 3.50` or `postgres 15.18`.
    pub product: String,
    /// The number of the last migration, 0 before the first.
    pub schema_version: u32,
    /// The one that this binary needs.
    pub needed_version: u32,
    /// Whether its tables are where an old release created them: the next start moves them to their own schema, or gives
    /// them their prefix.
    pub old_layout: bool,
    /// Bytes on disk.
    pub size_bytes: Option<u64>,
    /// The start of the oldest open transaction of another session.
    pub oldest_transaction_at: Option<Timestamp>,
    /// The mark of a database that was copied elsewhere, if it has the schema that this binary needs.
    pub moved: Option<MovedMark>,
    /// Its content, if it has the schema that this binary needs.
    pub content: Option<Content>,
}

/// The content of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Jobs of each status and kind.
    pub jobs: Vec<JobCount>,
    /// Runs, or [`MAX_COUNTED_RUNS`] if there are more.
    pub runs: u64,
    /// Whether there are more.
    pub more_runs: bool,
    /// The time of the oldest run.
    pub oldest_run_at: Option<Timestamp>,
}

impl Content {
    /// `runs` was counted to one more than the most.
    pub(crate) fn new(jobs: Vec<JobCount>, runs: u64, oldest_run_at: Option<Timestamp>) -> Content {
        Content { jobs, runs: runs.min(MAX_COUNTED_RUNS), more_runs: runs > MAX_COUNTED_RUNS, oldest_run_at }
    }
}
