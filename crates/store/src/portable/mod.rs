//! Rows as values that both databases share, which a copy reads from one and writes into the other.

pub(crate) mod tables;
pub(crate) mod value;

use everbell_core::RunId;
use jiff::Timestamp;

/// How a database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Only reads, also while a server runs.
    Look,
    /// Only writes the mark, also while a server runs.
    Mark,
    /// Alone: no server runs, and none can start. Reads, and writes the mark.
    Source,
    /// Alone, to be written.
    Target,
}

impl Access {
    /// The word for it in messages.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Access::Look | Access::Mark | Access::Source => "source",
            Access::Target => "target",
        }
    }
}

/// The time before which history stays behind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) at: Timestamp,
    pub(crate) first_run: RunId,
}
