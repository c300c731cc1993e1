//! Store errors, classified by what the caller can do about them.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::ids::Invalid;

/// The answer of a store.
pub type StoreResult<T> = Result<T, StoreError>;

/// Why a store could not do what it was asked. No type of a database driver shows.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// The database cannot be reached, is read-only, full or overloaded: try again later.
    Unavailable {
        /// The operation, and what the database said; never a password.
        what: String,
        /// The obstacle.
        reason: UnavailableReason,
        /// The answer to a commit was lost, so it may have happened.
        maybe_done: bool,
        /// The driver's own error.
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// Something else is there already, or is changing at this moment: read again.
    Conflict {
        /// The conflicting object, with its name.
        what: String,
    },
    /// The object is not at the revision that the caller has read: read it again and decide again.
    Stale {
        /// The object, with its name.
        what: String,
        /// The revision that the caller has read.
        expected: u64,
        /// Its current revision; `None` if it does not exist.
        found: Option<u64>,
    },
    /// Nothing of this name.
    NotFound {
        /// The kind of object, such as `job`.
        kind: &'static str,
        /// The name that was looked up.
        name: String,
    },
    /// The request was refused; nothing has changed.
    Invalid(Invalid),
    /// A stored row cannot be read: an operator must look at it.
    Corrupt {
        /// The table and row, and what is wrong with it.
        what: String,
    },
}

/// Why a database is not available.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnavailableReason {
    /// The connection cannot be made, or broke; or the database gave a reason that is none of the others.
    #[default]
    Unreachable,
    /// The database did not finish within this time.
    TimedOut(Duration),
    /// Another session holds a lock for too long.
    Locked,
    /// The database accepts no changes.
    ReadOnly,
    /// The disk of the database is full.
    DiskFull,
    /// The server has no connection left.
    TooManyConnections,
    /// A table or a column is missing, or is not the one of this release: an operator has to act.
    Schema,
    /// The role lacks a permission in the database: an operator has to act.
    Permission,
}

impl fmt::Display for UnavailableReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnavailableReason::Unreachable => f.write_str("the database is not available"),
            UnavailableReason::TimedOut(time) => {
                write!(f, "the database did not finish within {:.0} s", time.as_secs_f64().max(1.0))
            }
            UnavailableReason::Locked => f.write_str("another session of the database holds a lock that is needed"),
            UnavailableReason::ReadOnly => f.write_str("the database is read-only"),
            UnavailableReason::DiskFull => f.write_str("the disk of the database is full"),
            UnavailableReason::TooManyConnections => f.write_str("the database server has no free connections"),
            UnavailableReason::Schema => f.write_str("the schema of the database does not match this release"),
            UnavailableReason::Permission => f.write_str("the role of everbell lacks a permission in the database"),
        }
    }
}

/// Why a database cannot be used until someone does something about it. It is the `source` of
/// [`StoreError::Unavailable`] then, and may be shown to anyone: it names no folder and no host.
#[derive(Debug)]
pub struct NeedsOperator {
    /// The problem, then the remedy.
    pub reason: String,
}

impl fmt::Display for NeedsOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl Error for NeedsOperator {}

impl StoreError {
    /// Returns the problem that an operator has to solve, if the store knows one.
    pub fn needs_operator(&self) -> Option<&NeedsOperator> {
        match self {
            StoreError::Unavailable { source: Some(source), .. } => source.downcast_ref(),
            _ => None,
        }
    }

    /// Nothing of this kind and name.
    pub fn not_found(kind: &'static str, name: impl fmt::Display) -> StoreError {
        StoreError::NotFound { kind, name: name.to_string() }
    }

    /// Refuses to change what is not at the revision that the caller has read, if that matters to them.
    pub fn expect_revision(
        kind: &str,
        name: impl fmt::Display,
        expected: Option<u64>,
        found: Option<u64>,
    ) -> Result<(), StoreError> {
        match expected {
            Some(expected) if found != Some(expected) => {
                Err(StoreError::Stale { what: format!("{kind} `{name}`"), expected, found })
            }
            _ => Ok(()),
        }
    }

    /// Whether another writer was faster: reading and deciding again may succeed.
    pub fn is_conflict(&self) -> bool {
        matches!(self, StoreError::Conflict { .. } | StoreError::Stale { .. })
    }

    /// Whether the call may have done its work although it failed: the answer was lost.
    pub fn may_be_done(&self) -> bool {
        matches!(self, StoreError::Unavailable { maybe_done: true, .. })
    }

    /// Whether the database did not finish in time: the same call with less to do may succeed.
    pub fn is_timeout(&self) -> bool {
        matches!(self, StoreError::Unavailable { reason: UnavailableReason::TimedOut(_), .. })
    }

    /// Whether another session holds a lock that is needed: calls that need other rows may succeed.
    pub fn is_locked(&self) -> bool {
        matches!(self, StoreError::Unavailable { reason: UnavailableReason::Locked, .. })
    }

    /// Whether the same call may succeed later without intervention.
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
            StoreError::Unavailable { what, reason, maybe_done: false, .. } => write!(f, "{reason}: {what}"),
            StoreError::Unavailable { what, maybe_done: true, .. } => {
                write!(f, "the database went away during a commit, which may have happened: {what}")
            }
            StoreError::Conflict { what } => write!(f, "conflict: {what}"),
            StoreError::Stale { what, expected: 0, found: Some(_) } => write!(f, "{what} already exists"),
            StoreError::Stale { what, expected, found: Some(found) } => {
                write!(f, "{what} is at revision {found}, not {expected}")
            }
            StoreError::Stale { what, expected, found: None } => {
                write!(f, "{what} does not exist, so it is not at revision {expected}")
            }
            StoreError::NotFound { kind, name } => write!(f, "there is no {kind} `{name}`"),
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
