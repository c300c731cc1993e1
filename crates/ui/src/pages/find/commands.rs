//! Actions on jobs: on the one whose page is open, and on those that a text names, as in `pause nightly`.

use everbell::{JobRow, JobStatus};
use everbell_http::access::Role;
use everbell_wire::job::Schedule;

use super::SearchResult;
use crate::UiRequest;
use crate::markup::url_part;

/// A job that was found.
pub(super) struct Subject {
    pub(super) key: String,
    pub(super) paused: bool,
    /// Its schedule in words.
    pub(super) schedule: String,
    /// Whether it has slots to skip and to make up.
    pub(super) recurring: bool,
}

impl Subject {
    pub(super) fn new(row: &JobRow) -> Subject {
        let definition = &*row.job.definition;
        let schedule = Schedule::from(definition);
        Subject {
            key: definition.key.to_string(),
            paused: row.job.state.status == JobStatus::Paused,
            recurring: schedule.expression.is_some(),
            schedule: schedule.text,
        }
    }

    /// The link to its page.
    pub(super) fn link(&self) -> SearchResult {
        let paused = if self.paused { "paused · " } else { "" };
        SearchResult::new(&self.key, format!("{paused}{}", self.schedule), self.path())
    }

    fn path(&self) -> String {
        format!("/jobs/{}", url_part(&self.key))
    }
}

/// An action on a job.
struct JobAction {
    /// The words before the key.
    name: &'static str,
    /// The words that find it.
    words: &'static [&'static str],
    /// The last part of its address.
    path: &'static str,
    role: Role,
    opens_dialog: bool,
    applies: fn(&Subject) -> bool,
}

/// The actions, the most frequent first.
const ACTIONS: [JobAction; 6] = [
    JobAction {
        name: "Run now:",
        words: &["run", "now", "start", "trigger"],
        path: "run-now",
        role: Role::Operator,
        opens_dialog: true,
        applies: |_| true,
    },
    JobAction {
        name: "Pause",
        words: &["pause", "hold", "stop"],
        path: "pause",
        role: Role::Operator,
        opens_dialog: true,
        applies: |job| !job.paused,
    },
    JobAction {
        name: "Resume",
        words: &["resume", "continue", "unpause"],
        path: "resume",
        role: Role::Operator,
        opens_dialog: true,
        applies: |job| job.paused,
    },
    JobAction {
        name: "Skip the next run of",
        words: &["skip", "next"],
        path: "skip-next",
        role: Role::Operator,
        opens_dialog: true,
        applies: |job| job.recurring && !job.paused,
    },
    JobAction {
        name: "Backfill",
        words: &["backfill"],
        path: "backfill",
        role: Role::Operator,
        opens_dialog: true,
        applies: |job| job.recurring,
    },
    JobAction {
        name: "Edit",
        words: &["edit", "change", "schedule"],
        path: "new-version",
        role: Role::Admin,
        opens_dialog: false,
        applies: |_| true,
    },
];

/// How many actions a job has that was found by its key alone.
const USUAL_ACTIONS: usize = 2;

/// Splits `pause nightly` into the word of an action and the rest. Without such a word the first part is empty.
pub(super) fn split(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    if first.chars().count() >= 2 && ACTIONS.iter().any(|action| action.is_called(first)) {
        (first, rest.trim_start())
    } else {
        ("", text)
    }
}

/// The usual actions on a job.
pub(super) fn usual(request: &UiRequest, job: &Subject) -> Vec<SearchResult> {
    actions(request, job, |_| true).take(USUAL_ACTIONS).collect()
}

/// The actions on a job that a word names.
pub(super) fn called(request: &UiRequest, job: &Subject, word: &str) -> Vec<SearchResult> {
    actions(request, job, |action| action.is_called(word)).collect()
}

/// The actions on the job whose page is open: all that every word of the text belongs to.
pub(super) fn on_open(request: &UiRequest, job: &Subject, text: &str) -> Vec<SearchResult> {
    let key = job.key.to_lowercase();
    let fits = |action: &JobAction| {
        text.split_whitespace().all(|word| action.is_called(word) || key.contains(&word.to_lowercase()))
    };
    actions(request, job, fits).collect()
}

fn actions<'a>(
    request: &'a UiRequest,
    job: &'a Subject,
    fits: impl Fn(&JobAction) -> bool + 'a,
) -> impl Iterator<Item = SearchResult> + 'a {
    let allowed = |action: &&JobAction| request.barred(action.role).is_none() && (action.applies)(job);
    ACTIONS.iter().filter(move |action| allowed(action) && fits(action)).map(|action| SearchResult {
        opens_dialog: action.opens_dialog,
        ..SearchResult::new(format!("{} {}", action.name, job.key), "", format!("{}/{}", job.path(), action.path))
    })
}

impl JobAction {
    /// Whether one of its words begins with a word, in any case.
    fn is_called(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        self.words.iter().any(|own| own.starts_with(&word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_may_begin_with_an_action() {
        assert_eq!(split("pause nightly"), ("pause", "nightly"));
        assert_eq!(split("Pau  nightly backup"), ("Pau", "nightly backup"));
        assert_eq!(split("resume"), ("resume", ""));
        for text in ["", "n", "nightly pause", "r x"] {
            assert_eq!(split(text), ("", text));
        }
    }
}
