//! Lists of jobs: where a page goes on, and what a label looks like in its column.

use std::collections::HashMap;

use everbell_core::store::{Cursor, JobRow, JobSort, Page, StoreResult};
use uuid::Uuid;

pub(crate) use super::pages::cut;
use super::{Definitions, JobListColumns, RunColumns, bad_cursor, readable};
use crate::micros::Micros;

/// The page of these rows, with the last runs of the jobs.
pub(crate) fn page(
    rows: Vec<JobListColumns>,
    next: Option<Cursor>,
    runs: &HashMap<Uuid, RunColumns>,
    known: &Definitions,
) -> Page<JobRow> {
    let read = |row: JobListColumns| {
        let run = row.last_run_id.and_then(|id| runs.get(&id).cloned()).map(RunColumns::read).transpose()?;
        row.read(known, run)
    };
    let (items, unreadable) = readable(rows, |row| row.job.id, read);
    Page::new(items, next, unreadable)
}

/// Behind this row.
pub(crate) fn cursor(sort: JobSort, row: &JobListColumns) -> Cursor {
    let value = match sort {
        JobSort::Key => format!("{} {}", row.job.version, row.job.job_key),
        JobSort::NextRunAt => time_text(row.next_run_at.or(row.next_org_run_at)),
        JobSort::CreatedAt => row.job.created_at.0.to_string(),
        JobSort::Target => row.job.target.clone(),
        JobSort::LastRun => time_text(row.last_run_at),
    };
    Cursor { value, id: row.job.id }
}

fn time_text(at: Option<Micros>) -> String {
    at.map_or("-".to_owned(), |at| at.0.to_string())
}

/// The version and key of a cursor by key.
pub(crate) fn key_of(value: &str) -> StoreResult<(i32, String)> {
    let read = value.split_once(' ').and_then(|(version, key)| Some((version.parse().ok()?, key.to_owned())));
    read.ok_or_else(bad_cursor)
}

/// The time of a cursor by time; `None` is never.
pub(crate) fn micros_of(value: &str) -> StoreResult<Option<Micros>> {
    if value == "-" {
        return Ok(None);
    }
    value.parse().map(|micros| Some(Micros(micros))).map_err(|_| bad_cursor())
}

/// A label as it stands in its column, behind `{` or `,`: nowhere else can these be followed by a quote that nothing
/// escapes. So a text can be looked for, and no row can spoil a list because it is no JSON.
pub(crate) fn label_text((name, value): &(String, Option<String>)) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    match value {
        Some(value) => format!("{}:{}", quoted(name), quoted(value)),
        None => format!("{}:", quoted(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_found_where_it_is_and_nowhere_else() {
        let labels = |pairs: &[(&str, &str)]| {
            let labels: std::collections::BTreeMap<&str, &str> = pairs.iter().copied().collect();
            serde_json::to_string(&labels).unwrap()
        };
        let found = |column: &str, name: &str, value: Option<&str>| {
            let text = label_text(&(name.to_owned(), value.map(str::to_owned)));
            column.starts_with(&format!("{{{text}")) || column.contains(&format!(",{text}"))
        };
        let column = labels(&[("a", "1"), ("b,\"c", "x\",\"team\":\"ops\""), ("it's", "2"), ("z", "\\")]);
        for (name, value) in [("a", "1"), ("b,\"c", "x\",\"team\":\"ops\""), ("it's", "2"), ("z", "\\")] {
            assert!(found(&column, name, None) && found(&column, name, Some(value)), "{name} in {column}");
        }
        for (name, value) in [("c", None), ("team", None), ("team", Some("ops")), ("a", Some("12")), ("a", Some(""))] {
            assert!(!found(&column, name, value), "{name} in {column}");
        }
        assert!(!found(&labels(&[("ab", "10")]), "b", None) && !found(&labels(&[("a", "10")]), "a", Some("1")));
        assert!(!found("{}", "a", None) && !found("no", "a", None));
    }
}
