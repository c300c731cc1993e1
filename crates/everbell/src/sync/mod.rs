//! Bringing the jobs of a database up to what is declared.
//!
//! [`diff`] decides, for each key by itself, from what is declared and what is there; [`Syncer`] reads and writes. The same
//! declaration again changes nothing, so every instance does it at its start, also two at once.
//!
//! | declared | in the database | what happens |
//! |---|---|---|
//! | yes | nothing | created |
//! | yes | the same content | untouched, with its next fire and an operator's pause |
//! | yes | other content | the next version, an operator's pause goes on |
//! | yes | paused because it was not declared any more | resumed |
//! | yes | owned by somebody else | a conflict, or the next version if it may be adopted |
//! | yes | retired, the same content | stays retired: somebody wanted that, or it fired once and is done |
//! | yes | retired, other content | the next version: a changed declaration is a new wish |
//! | yes | retired because it was not declared any more | the next version |
//! | yes, once, in the past | nothing | nothing: an edit never fires retroactively |
//! | not any more | living, owned by the same source | kept, paused or retired, see [`Removed`] |

mod apply;
mod diff;
mod plan;

pub(crate) use apply::Syncer;
pub(crate) use diff::{Declared, Rules, diff};
pub use plan::{SyncAction, SyncPlan, SyncStep};

/// How a job is treated that is no longer declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Removed {
    /// It stays active, and the plan mentions it.
    #[default]
    Keep,
    /// It is paused, until it is declared again.
    Pause,
    /// It is retired. Declared again, it continues as a new version.
    Retire,
}
