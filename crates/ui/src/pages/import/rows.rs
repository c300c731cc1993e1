//! The lines of a crontab, or the objects of another text, and the jobs that they would become.

use everbell_core::{Draft, Timing, Zone};
use everbell_wire::crontab::{self, IMPORTED_LABEL, Line, Verdict};
use everbell_wire::import::{Advice, Item, Kind, command, read_cronjobs, read_units};
use jiff::Timestamp;

use crate::request::UiRequest;

/// The most objects of Kubernetes, or timers, that are read at once.
const MAX_OBJECTS: usize = 1_000;

/// Advice about results, on this page.
const ADVICE: Advice =
    Advice { zone: "choose another zone above", suspended: "select “Import suspended CronJobs too” above" };

/// A line and its result.
pub(super) struct Row {
    pub(super) number: usize,
    /// Its number, or the name of the object.
    pub(super) source: String,
    pub(super) verdict: Verdict,
    pub(super) detail: String,
    /// Where cron may have meant something else.
    pub(super) differences: Vec<String>,
    pub(super) job: Option<Wanted>,
    pub(super) outcome: Option<Outcome>,
}

/// The job that a line would become.
pub(super) struct Wanted {
    pub(super) key: String,
    pub(super) expression: String,
    pub(super) command: String,
    pub(super) draft: Draft,
    pub(super) selected: bool,
}

/// The lines or objects of a text, and the blocks of the configuration that mail failures.
pub(super) type ReadText = (Vec<Row>, Option<String>);

/// The actual or expected result of a line.
pub(super) enum Outcome {
    /// It would be made.
    Fine,
    Made {
        part: String,
    },
    Refused(String),
}

/// Reads a text, or says why it cannot be read.
pub(super) fn found_in(
    text: &str,
    kind: Kind,
    zone: &Zone,
    (has_users, suspended): (bool, bool),
    now: Timestamp,
) -> Result<ReadText, String> {
    match kind {
        Kind::Crontab => crontab::check_length(text).map(|()| of_lines(crontab::read(text, zone, has_users), now)),
        Kind::CronJob => {
            read_cronjobs(text, zone, suspended, ADVICE).map_err(|why| first_line(&why)).and_then(of_items)
        }
        Kind::Timers => of_items(read_units(text, zone)),
    }
}

/// The first line of the error of a reader: the others draw the text, which is above.
fn first_line(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    format!("this {}", line.replace(": error: ", ": "))
}

/// The lines of a crontab.
fn of_lines(lines: Vec<Line>, now: Timestamp) -> ReadText {
    let mail = crontab::mail_blocks(lines.iter().filter_map(|line| line.entry.as_ref()));
    let row = |Line { number, verdict, entry, detail }: Line| Row {
        number,
        source: number.to_string(),
        verdict,
        detail,
        differences: entry.as_ref().map_or_else(Vec::new, |entry| entry.differences(now)),
        job: entry.map(|entry| Wanted { command: entry.command.clone(), ..Wanted::new(entry.draft("", "")) }),
        outcome: None,
    };
    (lines.into_iter().map(row).collect(), mail)
}

/// Objects of Kubernetes, or timers.
fn of_items(items: Vec<Item>) -> Result<ReadText, String> {
    if items.len() > MAX_OBJECTS {
        let objects = items.len();
        return Err(format!("the text has {objects} objects; at most {MAX_OBJECTS} are read at once, so split it"));
    }
    let row = |(index, Item { source, verdict, result }): (usize, Item)| {
        let (detail, differences, job) = match result {
            Ok(found) => (found.detail, found.differences, Some(Wanted::new(found.draft))),
            Err(why) => (why, Vec::new(), None),
        };
        Row { number: index + 1, source, verdict, detail, differences, job, outcome: None }
    };
    Ok((items.into_iter().enumerate().map(row).collect(), None))
}

impl Row {
    /// Applies what was chosen for it. The first time, every job is selected.
    pub(super) fn choose(&mut self, request: &UiRequest) {
        let number = self.number;
        let Some(job) = &mut self.job else { return };
        if let Some(key) = request.sent(&format!("key-{number}")) {
            key.clone_into(&mut job.key);
        }
        let selection = request.sent_all("pick");
        job.selected = request.sent("read").is_none() || selection.contains(&number.to_string().as_str());
    }
}

impl Wanted {
    fn new(draft: Draft) -> Wanted {
        let expression = match &draft.timing {
            Timing::Cron(expression) => expression.clone(),
            _ => String::new(),
        };
        let command = command(&draft).unwrap_or_default();
        Wanted { key: draft.key.clone(), expression, command, draft, selected: true }
    }

    /// The job with this target, labeled with the name of its file.
    pub(super) fn draft(&self, target: &str, file: &str) -> Draft {
        let mut draft = Draft { key: self.key.clone(), target: Some(target.to_owned()), ..self.draft.clone() };
        draft.labels.insert(IMPORTED_LABEL.to_owned(), file.to_owned());
        draft
    }
}
