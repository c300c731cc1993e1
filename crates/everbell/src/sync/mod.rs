//! Bringing the jobs of a database up to what is declared.
//!
//! [`diff`] decides, for each key by itself, from what is declared and what is there; [`Syncer`] reads and writes. The same
//! declaration again changes nothing, so every instance does it at its start, also two at once.
//!
//! A job belongs to the program that declares it, by its name ([`Builder::app`](crate::Builder::app)). A sync leaves the jobs
//! of other programs alone. It changes a job only if its *declaration* changed since this program last synced it
//! ([`everbell_core::compare`]), so an operator's edit stays, and only if no newer release of the program is running
//! ([`everbell_core::Releases`]), so old and new instances of a deployment do not undo each other's work.
//!
//! | declared | in the database | what happens |
//! |---|---|---|
//! | yes | nothing | created |
//! | yes | the same content | untouched, with its next fire and an operator's pause |
//! | yes, as synced last | other content: it was edited | untouched, and the plan mentions it |
//! | yes, and not as synced last | other content | the next version, an operator's pause goes on |
//! | yes | the same content, declared by no program by name | this program takes it over |
//! | yes | paused because it was not declared any more | resumed |
//! | yes | owned by another program | a conflict, or the next version if it may be adopted |
//! | yes, as synced last | retired | stays retired: an operator wanted that, or it fired once and is done |
//! | yes, and not as synced last | retired | the next version: a changed declaration is a new wish |
//! | yes | retired because it was not declared any more | the next version |
//! | yes, once, in the past | nothing | nothing: an edit never fires retroactively |
//! | not any more | living, declared by this program | kept, paused or retired, see [`Removed`] |
//! | no | living, declared by no program by name | kept, and the plan mentions it |
//!
//! Calendars that are declared come first: see [`calendars`].

mod apply;
mod calendars;
mod diff;
mod plan;

pub(crate) use apply::Syncer;
pub use calendars::{CalendarAction, CalendarStep};
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
