//! The mark of a database whose rows were copied to another one. Every start reads it, and `copy` writes it.

use everbell_core::Invalid;
use everbell_core::store::StoreError;
use jiff::Timestamp;

/// The mark of a database whose rows were copied to another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedMark {
    /// The name of the other database, without a password.
    pub to: String,
    /// Identifies that database, however its address is spelled.
    pub target: String,
    /// Whether the other database is known to have the rows.
    pub is_done: bool,
    /// The time of the copy.
    pub at: Timestamp,
}

impl MovedMark {
    /// Refuses to start on a database whose jobs go on elsewhere, or may.
    pub(crate) fn refuse(&self) -> StoreError {
        let (to, at) = (&self.to, self.when());
        let reason = if self.is_done {
            format!(
                "was copied to `{to}` at {at}, and its jobs continue there, so starting it would fire them twice; use that one, \
                 or, if it is not in use, allow this one again with `everbell db reopen`"
            )
        } else {
            format!(
                "a copy to `{to}` that began at {at} did not finish: run `everbell db copy` again, or allow this one again \
                 with `everbell db reopen`"
            )
        };
        Invalid::new("database", reason).into()
    }

    pub(crate) fn when(&self) -> impl std::fmt::Display {
        self.at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
    }
}
