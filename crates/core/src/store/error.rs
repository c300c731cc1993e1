//! What can go wrong in a store, named by what the caller can do about it.

use std::error::Error;
use std::fmt;

use crate::ids::Invalid;

/// The answer of a store.
pub type StoreResult<T> = Result<T, StoreError>;

/// Why a store could not do what it was asked. No type of a database driver shows.
#[derive(Debug)]
pub enum StoreError {
    /// The database cannot be reached, is read-only, full or overloaded: try again later.
    Unavailable {
        /// What was being done, and what the database said; never a password.
        what: String,
        /// The answer to a commit was lost, so it may have happened.
        maybe_done: bool,
        /// The driver's own error.
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// Something else is there already, or has changed since it was read: read again.
    Conflict {
        /// What is in the way, with its name.
        what: String,
    },
    /// Nothing of this name.
    NotFound {
        /// What was looked for, with its name.
        what: String,
    },
    /// The request was refused; nothing has changed.
    Invalid(Invalid),
    /// What is stored cannot be read: somebody must look.
    Corrupt {
        /// Which row of which table, and what is wrong with it.
        what: String,
    },
}

impl StoreError {
    /// Nothing of this kind and name.
    pub fn not_found(kind: &str, name: impl fmt::Display) -> StoreError {
        StoreError::NotFound { what: format!("{kind} `{name}`") }
    }

    /// Whether the same call may succeed later without anybody's help.
    pub fn is_transient(&self) -> bool {
        matches!(self, StoreError::Unavailable { .. })
    }
}

impl From<Invalid> for StoreError {
    fn from(invalid: Invalid) -> Self {
        StoreError::Invalid(invalid)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Unavailable { what, maybe_done: false, .. } => {
                write!(f, "the database is not available: {what}")
            }
            StoreError::Unavailable { what, maybe_done: true, .. } => {
                write!(f, "the database went away during a commit, which may have happened: {what}")
            }
            StoreError::Conflict { what } => write!(f, "conflict: {what}"),
            StoreError::NotFound { what } => write!(f, "there is no {what}"),
            StoreError::Invalid(invalid) => invalid.fmt(f),
            StoreError::Corrupt { what } => write!(f, "stored data cannot be read: {what}"),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            StoreError::Unavailable { source: Some(source), .. } => Some(source.as_ref()),
            _ => None,
        }
    }
}
