//! The states of a run.

use everbell_core as core;

use crate::words::words;

words!(
    /// The state of a run.
    RunStatus from core::RunStatus {
        /// It waits to start.
        Pending = "pending",
        /// Its handler is running.
        Running = "running",
        /// Its handler succeeded.
        Succeeded = "succeeded",
        /// Its last attempt failed.
        Failed = "failed",
        /// It was canceled.
        Canceled = "canceled",
        /// Its slot was skipped.
        Skipped = "skipped",
    }
);
