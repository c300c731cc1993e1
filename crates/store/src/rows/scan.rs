//! The access path of a list of runs: the index with the fewest rows that do not match.

use everbell_core::store::{Cursor, Page, PageRequest, RunFilter};
use everbell_core::{Run, RunId, RunStatus};
use uuid::Uuid;

use super::RunColumns;

/// A way through history, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scan {
    /// All runs, by their id.
    All,
    /// The few that are pending or running, of given jobs if some are given.
    Active,
    /// All that ended, by their id.
    Ended,
    /// The few that failed or were canceled.
    Bad,
    /// The few that were skipped.
    Skipped,
    /// The runs of given jobs.
    ByJob,
}

impl Scan {
    /// The ways that together reach everything that the filter wants. What does not belong is left out on the way.
    pub(crate) fn choose(filter: &RunFilter) -> Vec<Scan> {
        let is_active = |status: &RunStatus| !status.is_terminal();
        if !filter.status.is_empty() && filter.status.iter().all(is_active) {
            return vec![Scan::Active];
        }
        if names_jobs(filter) {
            return vec![Scan::ByJob];
        }
        if filter.status.is_empty() && filter.failure_code.is_some() {
            return vec![Scan::Active, Scan::Bad];
        }
        // The instance of a run is known while it is active and when it has ended.
        let most = if filter.instance.is_some() { Scan::Ended } else { Scan::All };
        if filter.status.is_empty() {
            return if most == Scan::Ended { vec![Scan::Active, Scan::Ended] } else { vec![Scan::All] };
        }
        let mut scans: Vec<Scan> = filter
            .status
            .iter()
            .map(|status| match status {
                RunStatus::Pending | RunStatus::Running => Scan::Active,
                RunStatus::Failed | RunStatus::Canceled => Scan::Bad,
                RunStatus::Skipped => Scan::Skipped,
                RunStatus::Succeeded => most,
            })
            .collect();
        scans.sort_unstable();
        scans.dedup();
        if scans.contains(&Scan::All) {
            return vec![Scan::All];
        }
        if scans.contains(&Scan::Ended) {
            scans.retain(|scan| *scan != Scan::Bad);
        }
        scans
    }
}

/// Whether runs of given jobs are asked for.
pub(crate) fn names_jobs(filter: &RunFilter) -> bool {
    filter.job_id.is_some() || filter.job_key.is_some()
}

/// The ids that a page may have: `[first, end)`.
pub(crate) fn id_range(filter: &RunFilter, page: &PageRequest) -> (Uuid, Uuid) {
    let bound = |t: jiff::Timestamp| RunId::first_from(t).as_uuid();
    let first = filter.from.map_or(Uuid::nil(), bound);
    let end = filter.to.map_or(Uuid::max(), bound);
    (first, page.after.as_ref().map_or(end, |cursor| end.min(cursor.id)))
}

/// The page from what the scans found, each at most one more than the page holds.
pub(crate) fn page(mut rows: Vec<RunColumns>, limit: u32) -> Page<Run> {
    rows.sort_unstable_by_key(|row| std::cmp::Reverse(row.id));
    rows.dedup_by_key(|row| row.id);
    super::page_of(rows, limit, |row| Cursor { value: String::new(), id: row.id }, |row| row.id, RunColumns::read)
}

/// Defines the statements of a store for each way through history: those that list runs, and those that count them.
macro_rules! scan_statements {
    ($($scan:ident => $file:literal),+ $(,)?) => {
        /// The statement of each way through history.
        pub(super) fn list_sql(scan: Scan) -> &'static str {
            match scan {
                $(Scan::$scan => $crate::rows::placeholders::filled_sql!(include_str!($file)),)+
            }
        }

        /// Returns the statement that counts the rows.
        pub(super) fn count_sql(scan: Scan) -> &'static str {
            match scan {
                $(Scan::$scan => {
                    $crate::rows::placeholders::filled_sql!("select count(*) from (", include_str!($file), ") as few")
                })+
            }
        }
    };
}
pub(crate) use scan_statements;
