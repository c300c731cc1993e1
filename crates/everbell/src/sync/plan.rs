//! [`SyncPlan`]: what a sync does, for people to read before or after.

use std::fmt;

use everbell_core::{JobKey, Source};
use jiff::Timestamp;

/// The actions of a sync, in the order of the job keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyncPlan {
    /// One step for each job that is, or was, declared.
    pub steps: Vec<SyncStep>,
}

/// The action for one job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyncStep {
    /// The key of the job.
    pub key: JobKey,
    /// The action.
    pub action: SyncAction,
}

/// An action of a sync.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncAction {
    /// Creates the job: version 1, or the next one of a key whose versions are all retired.
    Create {
        /// The new version.
        version: u32,
        /// When it fires.
        next_run_at: Option<Timestamp>,
    },
    /// Replaces the job by its next version.
    NewVersion {
        /// The version that is retired.
        from: u32,
        /// The parts that differ: `schedule`, `target`, `payload`, `policies`, `description`, `labels`, `source`.
        changed: Vec<&'static str>,
        /// When the old version would have fired.
        old_next_run_at: Option<Timestamp>,
        /// When the new one fires; `None` if it stays paused.
        next_run_at: Option<Timestamp>,
        /// Whether it stays paused.
        paused: bool,
    },
    /// Changes nothing.
    Unchanged {
        /// The version.
        version: u32,
        /// When it fires.
        next_run_at: Option<Timestamp>,
        /// The actor who paused it, if it is paused.
        paused_by: Option<String>,
    },
    /// Resumes a job that was paused because it was no longer declared.
    Resume {
        /// The version.
        version: u32,
    },
    /// Leaves it retired.
    StaysRetired {
        /// The version.
        version: u32,
        /// The actor who retired it; `everbell` for a one-time job that has fired.
        by: String,
    },
    /// Skips a one-time job in the past.
    Past {
        /// Its time.
        run_at: Timestamp,
    },
    /// Pauses a job that is no longer declared.
    Pause {
        /// The version.
        version: u32,
    },
    /// Retires a job that is no longer declared.
    Retire {
        /// The version.
        version: u32,
    },
    /// Leaves a job alone that is no longer declared.
    Undeclared {
        /// The version.
        version: u32,
    },
    /// Refuses a job of another owner.
    Conflict {
        /// The version.
        version: u32,
        /// The owner.
        owner: Source,
    },
}

impl SyncAction {
    /// Whether it writes something.
    pub fn is_change(&self) -> bool {
        match self {
            SyncAction::Create { .. }
            | SyncAction::NewVersion { .. }
            | SyncAction::Resume { .. }
            | SyncAction::Pause { .. }
            | SyncAction::Retire { .. } => true,
            SyncAction::Unchanged { .. }
            | SyncAction::StaysRetired { .. }
            | SyncAction::Past { .. }
            | SyncAction::Undeclared { .. }
            | SyncAction::Conflict { .. } => false,
        }
    }
}

impl SyncPlan {
    /// Returns the number of jobs that change.
    pub fn changes(&self) -> usize {
        self.steps.iter().filter(|step| step.action.is_change()).count()
    }

    /// Returns the action for this job.
    pub fn get(&self, key: &str) -> Option<&SyncAction> {
        self.steps.iter().find(|step| step.key.as_str() == key).map(|step| &step.action)
    }

    /// Returns the jobs that belong to another owner: they block the whole sync.
    pub fn conflicts(&self) -> impl Iterator<Item = &SyncStep> {
        self.steps.iter().filter(|step| matches!(step.action, SyncAction::Conflict { .. }))
    }
}

impl fmt::Display for SyncPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            writeln!(f, "{step}")?;
        }
        write!(f, "{} of {} jobs change", self.changes(), self.steps.len())
    }
}

impl fmt::Display for SyncStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let next = |at: &Option<Timestamp>| at.map_or_else(|| "never".to_owned(), |at| at.to_string());
        match &self.action {
            SyncAction::Create { version, next_run_at } => {
                write!(f, "+ create       {key} v{version}, next {}", next(next_run_at))
            }
            SyncAction::NewVersion { from, changed, old_next_run_at, next_run_at, paused } => {
                let what = changed.join(", ");
                let to = if *paused { "paused".to_owned() } else { next(next_run_at) };
                let old = next(old_next_run_at);
                write!(f, "~ new version  {key} v{from} -> v{} ({what}), next {old} -> {to}", from + 1)
            }
            SyncAction::Unchanged { version, paused_by: Some(by), .. } => {
                write!(f, "= unchanged    {key} v{version}, paused by {by}")
            }
            SyncAction::Unchanged { version, next_run_at, paused_by: None } => {
                write!(f, "= unchanged    {key} v{version}, next {}", next(next_run_at))
            }
            SyncAction::Resume { version } => write!(f, "~ resume       {key} v{version}, declared again"),
            SyncAction::StaysRetired { version, by } => {
                write!(f, "= retired      {key} v{version}, by {by}")
            }
            SyncAction::Past { run_at } => write!(f, "= past         {key}, once at {run_at}"),
            SyncAction::Pause { version } => write!(f, "- pause        {key} v{version}, no longer declared"),
            SyncAction::Retire { version } => write!(f, "- retire       {key} v{version}, no longer declared"),
            SyncAction::Undeclared { version } => write!(f, "! keep         {key} v{version}, no longer declared"),
            SyncAction::Conflict { version, owner } => {
                write!(f, "! conflict     {key} v{version}, owned by {owner}; allow to adopt it")
            }
        }
    }
}
