//! Schedules in plain English.
//!
//! The words come from the bit sets, not from the text: `0/5` and `*/5` in the minutes read alike. A sentence says the
//! time of day first (`time`), then the days and months (`day`). No restriction is ever left out; only a list that
//! would fill the screen becomes a count with its first and last member.

mod day;
mod time;
pub(super) mod words;

use super::parse::Kind;
use super::search::Fields;
use day::DayText;
use time::TimeText;

/// Sentences are kept below this, as far as counts instead of lists can do it.
const MAX_SENTENCE: usize = 400;

/// How long one list may be, from generous to tight: the first that gives a short enough sentence is taken.
const LIST_BUDGETS: [usize; 3] = [200, 60, 20];

/// The schedule as one sentence without a final dot.
pub(crate) fn describe(kind: &Kind) -> String {
    match kind {
        Kind::Every(every) => format!("Every {}", words::interval(every.seconds() as u64)),
        Kind::Fields(fields) => {
            let mut sentence = String::new();
            for budget in LIST_BUDGETS {
                sentence = describe_fields(fields, budget);
                if sentence.len() <= MAX_SENTENCE {
                    break;
                }
            }
            sentence
        }
    }
}

fn describe_fields(fields: &Fields, budget: usize) -> String {
    match (time::text(fields, budget), day::text(fields, budget)) {
        (TimeText::At(times), DayText::Every { months }) => {
            words::phrase(&format!("Every day at {times}"), " ", &months)
        }
        (TimeText::At(times), DayText::Some(days)) => format!("At {times} {days}"),
        (TimeText::Rate { text, all_day }, DayText::Every { months }) => {
            if all_day {
                words::phrase(&text, separator(&text), &months)
            } else {
                words::phrase(&format!("{text}, every day"), " ", &months)
            }
        }
        (TimeText::Rate { text, .. }, DayText::Some(days)) => words::phrase(&text, separator(&text), &days),
    }
}

/// Returns the separator before a continuation: a comma if the text ends with a remark that a comma sets off.
fn separator(text: &str) -> &'static str {
    if text.contains(time::RESTARTING_EACH) { ", " } else { " " }
}
