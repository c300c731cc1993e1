//! Actions on many jobs at once, in the words of the pages.

use everbell_wire::bulk::BulkAction;

use super::Outcome;

/// An action on many jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Pause,
    Resume,
    RunNow,
    SkipNext,
    Retire,
}

impl Act {
    /// The word of the API.
    pub(super) fn word(self) -> BulkAction {
        match self {
            Act::Pause => BulkAction::Pause,
            Act::Resume => BulkAction::Resume,
            Act::RunNow => BulkAction::RunNow,
            Act::SkipNext => BulkAction::SkipNext,
            Act::Retire => BulkAction::Retire,
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Act::Pause => "Pause jobs",
            Act::Resume => "Resume jobs",
            Act::RunNow => "Run jobs now",
            Act::SkipNext => "Skip next runs",
            Act::Retire => "Retire jobs",
        }
    }

    /// The title after the action.
    pub(super) fn results(self) -> &'static str {
        match self {
            Act::Pause => "Pause results",
            Act::Resume => "Resume results",
            Act::RunNow => "Run results",
            Act::SkipNext => "Skip results",
            Act::Retire => "Retire results",
        }
    }

    /// The words of the button before the number of jobs.
    pub(super) fn button(self) -> &'static str {
        match self {
            Act::Pause => "Pause",
            Act::Resume => "Resume",
            Act::RunNow => "Run",
            Act::SkipNext => "Skip next runs of",
            Act::Retire => "Retire",
        }
    }

    /// Returns the label of an outcome, before or after the action.
    pub(super) fn outcome(self, outcome: Outcome, done: bool) -> &'static str {
        match (outcome, self, done) {
            (Outcome::Stays, ..) => "Unchanged",
            (Outcome::Failed, ..) => "Failed",
            (Outcome::Changes, Act::Pause, false) => "Will be paused",
            (Outcome::Changes, Act::Pause, true) => "Paused",
            (Outcome::Changes, Act::Resume, false) => "Will be resumed",
            (Outcome::Changes, Act::Resume, true) => "Resumed",
            (Outcome::Changes, Act::RunNow, false) => "Will run now",
            (Outcome::Changes, Act::RunNow, true) => "Started",
            (Outcome::Changes, Act::SkipNext, false) => "Will skip",
            (Outcome::Changes, Act::SkipNext, true) => "Skips",
            (Outcome::Changes, Act::Retire, false) => "Will be retired",
            (Outcome::Changes, Act::Retire, true) => "Retired",
        }
    }

    /// The effect on this many jobs, `soon` of which run within the next hour.
    pub(super) fn effect(self, count: usize, soon: usize) -> String {
        let jobs = |kind: &str| format!("{count} {kind}{}", if count == 1 { "job" } else { "jobs" });
        let soon = match soon {
            0 => "none of them runs within the next hour".to_owned(),
            1 => "1 of them runs within the next hour".to_owned(),
            many => format!("{many} of them run within the next hour"),
        };
        match self {
            Act::Pause => format!("This pauses {}; {soon}.", jobs("active ")),
            Act::Resume => format!("This resumes {}; {soon}.", jobs("paused ")),
            Act::RunNow => format!("This runs {} now. Their schedules do not change.", jobs("")),
            Act::SkipNext => format!("This skips the next runs of {}; {soon}.", jobs("active ")),
            Act::Retire => format!("This retires {}, which is final; {soon}.", jobs("")),
        }
    }

    /// The result for this many jobs.
    pub(super) fn done(self, count: usize) -> String {
        let jobs = if count == 1 { "1 job".to_owned() } else { format!("{count} jobs") };
        match self {
            Act::Pause => format!("{jobs} paused."),
            Act::Resume => format!("{jobs} resumed."),
            Act::RunNow => format!("{jobs} started."),
            Act::SkipNext => format!("Next runs of {jobs} skipped."),
            Act::Retire => format!("{jobs} retired."),
        }
    }
}
