//! Examples of documents, for the API reference.
//!
//! They belong together: the job `daily-report` sends a report on weekdays at 08:00 in Berlin, `briefing` fires for each org,
//! and it is the morning of Monday, March 15, 2027.

mod calendars;
mod cluster;
mod jobs;
mod notify;
mod orgs;
mod reports;
mod runs;

use jiff::Timestamp;
use serde_json::Value;

use crate::{Items, Page, Raw};

pub use jobs::{created_job, planned_backfill, rescheduled_job, restored_job, retired_job, skipped_job, updated_job};
pub use orgs::{written_org, written_override};
pub use runs::{skipped_run, tried_target};

const JOB_ID: &str = "01a44f3e-1880-7d1c-9d1e-5a0b6f6f2f11";
const NEXT_JOB_ID: &str = "01a49743-2b40-7a52-8c3f-0d9e4b7c1a22";
const ORG_JOB_ID: &str = "01a44f40-2c10-7be4-a1d5-93c27a1e0b33";
const RUN_ID: &str = "01a496b9-fb00-8b54-97f9-c11314940498";
const INSTANCE_ID: &str = "01a48c6e-5d00-749f-8fbe-985f99a4a030";
const BACKFILL_ID: &str = "01a49740-6e20-77a1-be08-a4c10dd15b55";
const ORG_UPDATE_ID: &str = "01a49741-58f0-72aa-9e17-294a8a572564";
const ACTOR: &str = "token:ops";
const CREATED_AT: &str = "2027-03-01T10:00:00Z";
const NOW: &str = "2027-03-15T09:30:00Z";
const SLOT_AT: &str = "2027-03-15T07:00:00Z";
const NEXT_RUN_AT: &str = "2027-03-16T07:00:00Z";

/// A document with an example.
pub trait Example: Sized {
    /// Returns a typical document.
    fn example() -> Self;

    /// Returns the same document as an item of a list, where long members are left out.
    fn example_item() -> Self {
        Self::example()
    }
}

impl<T: Example> Example for Page<T> {
    fn example() -> Page<T> {
        Page { items: vec![T::example_item()], next_cursor: None, unreadable: Vec::new() }
    }
}

impl<T: Example> Example for Items<T> {
    fn example() -> Items<T> {
        Items { items: vec![T::example_item()] }
    }
}

impl<T: Example> Example for Vec<T> {
    fn example() -> Vec<T> {
        vec![T::example_item()]
    }
}

/// A time of an example. A test reads all of them.
fn at(text: &str) -> Timestamp {
    text.parse().unwrap_or_default()
}

fn raw(value: &Value) -> Option<Raw> {
    Raw::from_value(value)
}

#[cfg(test)]
mod tests;
