//! The result of a copy, for people and programs.

use everbell_core::Invalid;
use everbell_core::store::StoreError;

use super::TableCount;
use crate::moved::MovedMark;
use crate::portable::value::RowSum;

/// How far a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// The work at this moment.
    pub step: CopyStep,
    /// The table, without its schema or prefix.
    pub table: &'static str,
    /// Rows of this step so far, of all tables.
    pub rows: u64,
    /// Rows of this step in all; 0 while they are counted.
    pub total: u64,
}

/// The steps of a copy, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyStep {
    /// Rows of the source are counted.
    Counting,
    /// Rows are read from the source and written to the target.
    Copying,
    /// Rows of the source are read again, because the target has rows.
    Comparing,
    /// Rows of the target are read, and summed up.
    Verifying,
    /// The source is marked, and the target is committed: from here on it is not to be interrupted.
    Finishing,
}

/// The result of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyReport {
    /// In the order in which they were copied.
    pub tables: Vec<CopiedTable>,
    /// Whether the target was empty before.
    pub was_empty: bool,
    /// Whether the source is marked as moved.
    pub source_marked: bool,
}

/// A table in both databases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedTable {
    /// Without its schema or prefix.
    pub name: &'static str,
    /// The rows of the source that are copied.
    pub rows: u64,
    /// The rows of the source that are too old to be copied.
    pub too_old: u64,
    /// Both sums, unless nothing was copied.
    pub sums: Option<[TableSum; 2]>,
}

/// The rows of a table of one database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSum {
    /// Their number.
    pub rows: u64,
    /// The sum of their SHA-256 hashes, in hexadecimal digits.
    pub checksum: String,
}

impl MovedMark {
    /// Refuses to copy it to another database than before.
    pub(super) fn refuse_other(&self) -> StoreError {
        let (to, at) = (&self.to, self.when());
        let reason = if self.is_done {
            format!(
                "the source was already copied to `{to}` at {at}, where its jobs continue; copy that one, or, if it is not in \
                 use, allow this one again with `everbell db reopen`"
            )
        } else {
            format!(
                "a copy of the source to `{to}` that began at {at} did not finish: copy it there again, or, if that \
                 database is not in use, run `everbell db reopen` first"
            )
        };
        Invalid::new("source", reason).into()
    }

    /// The begin of a refusal of a target that has other rows than the source.
    pub(super) fn says_of_target(&self) -> String {
        let at = self.when();
        if self.is_done {
            format!("the source was copied here at {at}, and the target was used since: start the server on it. ")
        } else {
            format!(
                "a copy that began at {at} may have finished here or not: if these are the jobs of the source, a server has \
                 used them since, and you continue with it. If not, "
            )
        }
    }
}

impl CopiedTable {
    /// Whether both databases hold the same rows.
    pub fn is_equal(&self) -> bool {
        self.sums.as_ref().is_none_or(|[source, target]| source == target)
    }
}

impl CopyReport {
    /// Whether both databases hold the same rows in every table.
    pub fn is_equal(&self) -> bool {
        self.tables.iter().all(CopiedTable::is_equal)
    }

    pub(super) fn planned(counts: &[TableCount], is_ready: bool) -> CopyReport {
        let table =
            |count: &TableCount| CopiedTable { name: count.name, rows: count.kept, too_old: count.too_old, sums: None };
        CopyReport { tables: counts.iter().map(table).collect(), was_empty: is_ready, source_marked: false }
    }

    pub(super) fn compared(
        counts: &[TableCount],
        sources: &[RowSum],
        targets: &[RowSum],
        was_there: bool,
    ) -> CopyReport {
        let sum = |sum: &RowSum| TableSum { rows: sum.rows, checksum: sum.checksum() };
        let tables = counts.iter().zip(sources.iter().zip(targets));
        let table = |(count, (source, target)): (&TableCount, (&RowSum, &RowSum))| CopiedTable {
            name: count.name,
            rows: source.rows,
            too_old: count.too_old,
            sums: Some([sum(source), sum(target)]),
        };
        CopyReport { tables: tables.map(table).collect(), was_empty: !was_there, source_marked: false }
    }
}
