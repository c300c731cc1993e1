//! [`SyncPlan`]: what a sync does, for people to read before or after.

use std::fmt;

use everbell_core::{App, JobKey, Source};
use jiff::Timestamp;

use super::CalendarStep;

/// The actions of a sync, in the order of the job keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyncPlan {
    /// One step for each job that is, or was, declared.
    pub steps: Vec<SyncStep>,
    /// One step for each calendar that is declared. They come before the jobs.
    pub calendars: Vec<CalendarStep>,
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
        /// The parts that differ: `schedule`, `target`, `payload`, `policies`, `description`, `labels`, `scope`,
        /// `source`, and `app` for a job that no program or another one declared before.
        changed: Vec<&'static str>,
        /// When the old version would have fired.
        old_next_run_at: Option<Timestamp>,
        /// When the new one fires; `None` if it stays paused.
        next_run_at: Option<Timestamp>,
        /// Whether it stays paused.
        paused: bool,
        /// The actor whose edit it replaces, because the declaration changed after the edit.
        replaces_edit_by: Option<String>,
    },
    /// Leaves an edit alone: the declaration is the one that was synced last, and the job differs from it.
    Edited {
        /// The version.
        version: u32,
        /// The actor who edited it.
        by: String,
        /// The parts that differ from the declaration.
        changed: Vec<&'static str>,
        /// When it fires.
        next_run_at: Option<Timestamp>,
        /// The actor who paused it, if it is paused.
        paused_by: Option<String>,
    },
    /// Records that this program declares a job, which is as declared already.
    Record {
        /// The version.
        version: u32,
        /// The program that declared it before, if that was another one.
        app: Option<App>,
        /// Whether the program had not declared the job before.
        is_new: bool,
    },
    /// Changes nothing, because another release replaced this one and is running. The sync is repeated when no instance of
    /// the other release is left.
    Held {
        /// The version, if there is one.
        version: Option<u32>,
        /// When the other release took over.
        since: Timestamp,
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
        /// The program that declares it.
        app: Option<App>,
    },
    /// Leaves a job alone that was declared before programs had names, and that this program does not declare.
    Unowned {
        /// The version.
        version: u32,
    },
}

impl SyncAction {
    /// Whether it writes something.
    pub fn is_change(&self) -> bool {
        match self {
            SyncAction::Create { .. }
            | SyncAction::NewVersion { .. }
            | SyncAction::Record { .. }
            | SyncAction::Resume { .. }
            | SyncAction::Pause { .. }
            | SyncAction::Retire { .. } => true,
            SyncAction::Unchanged { .. }
            | SyncAction::Edited { .. }
            | SyncAction::Held { .. }
            | SyncAction::Unowned { .. }
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

    /// Returns the jobs that were edited since they were declared, and stay so.
    pub fn edited(&self) -> impl Iterator<Item = &SyncStep> {
        self.steps.iter().filter(|step| matches!(step.action, SyncAction::Edited { .. }))
    }

    /// Returns the jobs that another release of the program keeps as they are.
    pub fn held(&self) -> impl Iterator<Item = &SyncStep> {
        self.steps.iter().filter(|step| matches!(step.action, SyncAction::Held { .. }))
    }

    /// Returns the jobs that belong to another owner: they block the whole sync.
    pub fn conflicts(&self) -> impl Iterator<Item = &SyncStep> {
        self.steps.iter().filter(|step| matches!(step.action, SyncAction::Conflict { .. }))
    }
}

impl fmt::Display for SyncPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.calendars {
            writeln!(f, "{step}")?;
        }
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
            SyncAction::NewVersion { from, changed, old_next_run_at, next_run_at, paused, replaces_edit_by } => {
                let what = changed.join(", ");
                write!(f, "~ new version  {key} v{from} -> v{} ({what}), ", from + 1)?;
                if *paused {
                    f.write_str("paused")?;
                } else {
                    write!(f, "next {} -> {}", next(old_next_run_at), next(next_run_at))?;
                }
                replaces_edit_by.iter().try_for_each(|by| write!(f, ", replaces the edit by {by}"))
            }
            SyncAction::Edited { version, by, changed, next_run_at, paused_by } => {
                let what = changed.join(", ");
                write!(f, "! edited       {key} v{version} by {by}, edited since; the declaration differs ({what}), ")?;
                match paused_by {
                    Some(by) => write!(f, "paused by {by}"),
                    None => write!(f, "next {}", next(next_run_at)),
                }
            }
            SyncAction::Record { version, app: Some(app), .. } => {
                write!(f, "~ take over    {key} v{version}, declared by {app} before")
            }
            SyncAction::Record { version, app: None, is_new: true } => {
                write!(f, "~ take over    {key} v{version}, declared by no program by name before")
            }
            SyncAction::Record { version, app: None, is_new: false } => {
                write!(f, "~ record       {key} v{version}, was edited to what is declared now")
            }
            SyncAction::Held { version, since } => {
                let version = version.map_or_else(String::new, |version| format!(" v{version}"));
                write!(f, "! held         {key}{version}, a newer release is running since {since}")
            }
            SyncAction::Unowned { version } => {
                write!(f, "! unowned      {key} v{version}, no program declares it by name; retire it manually")
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
            SyncAction::Conflict { version, owner, app } => {
                write!(f, "! conflict     {key} v{version}, {}; allow to adopt it", owned_by(*owner, app.as_ref()))
            }
        }
    }
}

/// Names the owner of a job.
pub(super) fn owned_by(owner: Source, app: Option<&App>) -> String {
    match (owner, app) {
        (Source::Code, Some(app)) => format!("owned by the program `{app}`"),
        (Source::Config, Some(app)) => format!("owned by the configuration file of `{app}`"),
        (owner, _) => format!("owned by {owner}"),
    }
}
