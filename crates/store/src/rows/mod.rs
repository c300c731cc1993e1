//! Rows of both databases and what they mean. The columns have the same names and order of meaning everywhere, so one
//! set of structs reads them all.

pub(crate) mod alerts;
pub(crate) mod backfills;
mod batch;
pub(crate) mod binds;
pub(crate) mod calendars;
pub(crate) mod chain;
pub(crate) mod counters;
mod counts;
pub(crate) mod declarations;
mod deed;
mod definitions;
mod due;
pub(crate) mod earlier;
pub(crate) mod errored;
pub(crate) mod freezes;
pub(crate) mod from_row;
mod job;
pub(crate) mod job_list;
pub(crate) mod org_updates;
pub(crate) mod orgs;
pub(crate) mod origins;
mod pages;
pub(crate) mod placeholders;
mod policies;
mod rearm;
pub(crate) mod remote;
pub(crate) mod reports;
mod run;
pub(crate) mod run_groups;
pub(crate) mod scan;
mod sessions;
mod settling;
mod small_tables;
pub(crate) mod summary;
pub(crate) mod targets;
mod whole_run;

pub(crate) use batch::{GapValues, PlanBatch, Recording, Starts, TimerValues};
pub(crate) use counts::{ActiveCountColumns, DueColumns, JobCountColumns, counts, job_counts, target_counts};
pub(crate) use deed::{RequestRow, deed_text, remembered};
pub(crate) use definitions::{Definitions, LoadedJobs};
pub(crate) use due::{DueTimers, Owner, PlanContext, active_by_owner, owners_of, successes_by_key};
pub(crate) use job::{JobColumns, JobListColumns, JobValues};
pub(crate) use pages::{bad_cursor, check_cap, check_limit, cursor_time, page_of};
pub(crate) use rearm::{Asked, GapCuts, clock_trace};
pub(crate) use run::{ActiveColumns, ClaimColumns, RunColumns, RunValues};
pub(crate) use sessions::SessionColumns;
pub(crate) use settling::{SettlingColumns, settling};
pub(crate) use small_tables::{
    AuditColumns, GapColumns, InstanceColumns, TimerColumns, TokenColumns, audit_json, token_from, words_of,
};
pub(crate) use whole_run::WholeRun;

use everbell_core::store::{StoreError, StoreResult};
use everbell_core::{Invalid, JobId, Json, OrgId, Timer};
use jiff::Timestamp;

/// A row that cannot be read.
pub(crate) fn corrupt(table: &str, id: impl std::fmt::Display, why: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt { what: format!("{table} {id}: {why}") }
}

/// The org of a key column, in which no org is the empty text.
pub(crate) fn org(text: &str) -> Result<Option<OrgId>, Invalid> {
    if text.is_empty() { Ok(None) } else { OrgId::new(text).map(Some) }
}

/// The key column of an org.
pub(crate) fn org_text(org: Option<&OrgId>) -> &str {
    org.map_or("", OrgId::as_str)
}

/// A timer that is not there, as far as a decision cares: of a job that has one for each org, or of an org that has none.
pub(crate) fn blank_timer(job: JobId, org: Option<&OrgId>, since: Timestamp) -> Timer {
    everbell_core::with!(Timer { org: org.cloned(), ..Timer::new(job, since) })
}

/// A JSON column that may be empty.
pub(crate) fn json(field: &'static str, text: Option<&str>) -> Result<Option<Json>, Invalid> {
    text.map(|text| Json::parse(field, text)).transpose()
}

/// A word of an enum, or why it is none.
pub(crate) fn word<T: Copy>(all: &[T], as_str: fn(T) -> &'static str, text: &str) -> Result<T, Invalid> {
    let found = all.iter().copied().find(|choice| as_str(*choice) == text);
    found.ok_or_else(|| Invalid::new("word", format!("`{text}` is not known")))
}

/// Numbers that the schema keeps positive.
pub(crate) fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Reads every row; those that cannot be read are left out and named.
pub(crate) fn readable<R, T, I: ToString>(
    rows: Vec<R>,
    id: impl Fn(&R) -> I,
    read: impl Fn(R) -> StoreResult<T>,
) -> (Vec<T>, Vec<String>) {
    let mut bad = Vec::new();
    let mut good = Vec::with_capacity(rows.len());
    for row in rows {
        let id = id(&row);
        match read(row) {
            Ok(value) => good.push(value),
            Err(_) => bad.push(id.to_string()),
        }
    }
    (good, bad)
}
