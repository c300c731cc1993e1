//! Moving a database: every durable row of one is copied into another, and compared there.
//!
//! Both databases are locked for as long as it takes, so no server uses either. The target is written in one transaction,
//! which is committed only if the rows that it then holds have the checksums of the source: a copy that is interrupted leaves
//! an empty target and can be started again. Before that commit the source is marked, so at no moment can both fire; the mark
//! says that the copy has begun, and behind the commit that it is done.
//!
//! Rows pass as values that both databases share (`portable/value.rs`), table by table (`portable/tables.rs`), a batch at a time.

mod ending;
mod report;
#[cfg(all(test, feature = "postgres", feature = "sqlite"))]
mod schema_tests;
mod side;

use std::path::{Path, PathBuf};
use std::time::Duration;

use everbell_core::store::{StoreError, StoreResult};
use everbell_core::{Invalid, RunId};
use futures_util::StreamExt;
use jiff::{SignedDuration, Timestamp};

pub use report::{CopiedTable, CopyProgress, CopyReport, CopyStep, TableSum};

use self::ending::Ending;
use self::side::Side;
use crate::inspection::Inspection;
pub use crate::moved::MovedMark;
use crate::portable::tables::{TABLES, Table};
use crate::portable::value::{Row, RowSum, Value};
use crate::portable::{Access, Limit};
use crate::upkeep::inspect;
use crate::url::Address;

/// The most rows that are written at once, and about the most bytes.
const BATCH_ROWS: usize = 1_000;
const BATCH_BYTES: usize = 4 << 20;

/// How a database is copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyOptions {
    /// Copies runs, gaps, audit entries and answered requests that are younger than this; `None` copies all of them.
    pub history: Option<Duration>,
    /// Only counts the rows, also while a server runs.
    pub dry_run: bool,
    /// Does not mark the source as moved, so that both can be started.
    pub keep_source: bool,
    /// The name of the target in the mark of the source, which holds no password.
    pub target_name: String,
}

/// Copies the database at `from` into the one at `to`, which is created or migrated if needed and must be empty. A target
/// that already has these very rows is left as it is, so a copy that was interrupted at its end can be repeated.
pub async fn copy(
    from: &str,
    to: &str,
    options: &CopyOptions,
    progress: &(dyn Fn(&CopyProgress) + Send + Sync),
) -> StoreResult<CopyReport> {
    check_addresses(from, to)?;
    check_source(&inspect(from).await?)?;
    let access = if options.dry_run { Access::Look } else { Access::Source };
    let mut source = Side::open(from, access).await?;
    let moved = source.moved().await?;
    let identity = Side::identity(to)?;
    if let Some(moved) = moved.as_ref().filter(|moved| moved.target != identity) {
        return Err(moved.refuse_other());
    }
    let is_ready = check_target(to).await?;
    let limit = limit(source.now().await?, options.history)?;
    let counts = count(&mut source, limit, progress).await?;
    if options.dry_run {
        return Ok(CopyReport::planned(&counts, is_ready));
    }
    // Creates it, or brings its schema up to date. A database that was moved itself is refused.
    drop(crate::connect(to).await.map_err(|error| in_target(&error))?);
    let mut target = Side::open(to, Access::Target).await?;
    let found = FoundRows { rows: found_rows(&mut target).await?, moved };
    let total = counts.iter().map(|count| count.kept).sum();
    let progress = &Progressing { report: progress, total };
    let (sources, was_there) = if found.rows.is_empty() {
        (write_all(&mut source, &mut target, limit, progress).await?, false)
    } else {
        (compare_sums(&mut source, &mut target, limit, &counts, &found, progress).await?, true)
    };
    let step = CopyStep::Verifying;
    let targets = sum_all(&mut target, limit.filter(|_| was_there), step, progress).await?;
    let mut report = CopyReport::compared(&counts, &sources, &targets, was_there);
    if !report.is_equal() {
        if was_there {
            return Err(found.refuse());
        }
        target.rollback().await?;
        source.rollback().await?;
        return Ok(report);
    }
    report.source_marked = !options.keep_source;
    progress.show(CopyStep::Finishing, "moves", total);
    let ending = Ending { to, options, identity: Side::identity(to)?, sources, was_there };
    ending.finish(source, target).await?;
    Ok(report)
}

/// Removes the mark of a database that was copied elsewhere, and returns it. Nothing fires twice only if the copy is not
/// used any more.
pub async fn reopen(url: &str) -> StoreResult<Option<MovedMark>> {
    check_source(&inspect(url).await?)?;
    let mut side = Side::open(url, Access::Mark).await?;
    let moved = side.moved().await?;
    side.clear_mark().await?;
    side.commit("removing the mark").await?;
    Ok(moved)
}

/// The rows of a table in the source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableCount {
    pub(crate) name: &'static str,
    /// Rows that are copied.
    pub(crate) kept: u64,
    /// Rows that are too old for that.
    pub(crate) too_old: u64,
}

/// Where progress is reported, and the number of rows that it leads to.
struct Progressing<'a> {
    report: &'a (dyn Fn(&CopyProgress) + Send + Sync),
    total: u64,
}

impl Progressing<'_> {
    fn show(&self, step: CopyStep, table: &'static str, rows: u64) {
        (self.report)(&CopyProgress { step, table, rows, total: self.total });
    }
}

async fn count(
    source: &mut Side,
    limit: Option<Limit>,
    progress: &(dyn Fn(&CopyProgress) + Send + Sync),
) -> StoreResult<Vec<TableCount>> {
    let mut counts = Vec::new();
    for table in &TABLES {
        progress(&CopyProgress { step: CopyStep::Counting, table: table.name, rows: 0, total: 0 });
        let all = source.count(table, None).await?;
        let kept = if limit.is_some() { source.count(table, limit).await? } else { all };
        counts.push(TableCount { name: table.name, kept, too_old: all.saturating_sub(kept) });
    }
    Ok(counts)
}

/// The tables that hold rows, although the database has no jobs yet if it is a new one.
async fn found_rows(target: &mut Side) -> StoreResult<Vec<(&'static str, u64)>> {
    let mut found = Vec::new();
    for table in TABLES.iter().filter(|table| !table.is_seeded) {
        let rows = target.count(table, None).await?;
        if rows > 0 {
            found.push((table.name, rows));
        }
    }
    Ok(found)
}

/// Writes every table of an empty target, and returns the sums of the rows that were read.
async fn write_all(
    source: &mut Side,
    target: &mut Side,
    limit: Option<Limit>,
    progress: &Progressing<'_>,
) -> StoreResult<Vec<RowSum>> {
    target.prepare().await?;
    let (mut sums, mut before) = (Vec::new(), 0);
    for table in &TABLES {
        if table.is_seeded {
            target.clear(table).await?;
        }
        let sum = write_table(source, target, table, limit, |rows| {
            progress.show(CopyStep::Copying, table.name, before + rows);
        })
        .await?;
        if let Some(last) = source.last_identity(table).await? {
            target.set_identity(table, last).await?;
        }
        before += sum.rows;
        sums.push(sum);
    }
    target.complete().await?;
    Ok(sums)
}

async fn write_table(
    source: &mut Side,
    target: &mut Side,
    table: &'static Table,
    limit: Option<Limit>,
    report: impl Fn(u64),
) -> StoreResult<RowSum> {
    let (mut sum, mut batch, mut bytes) = (RowSum::default(), Vec::<Row>::new(), 0);
    report(0);
    let mut rows = source.rows(table, limit);
    while let Some(row) = rows.next().await {
        let row = row?;
        sum.add(&row);
        bytes += row.iter().map(Value::size).sum::<usize>();
        batch.push(row);
        if batch.len() >= BATCH_ROWS || bytes >= BATCH_BYTES {
            target.insert(table, std::mem::take(&mut batch)).await?;
            bytes = 0;
            report(sum.rows);
        }
    }
    if !batch.is_empty() {
        target.insert(table, batch).await?;
    }
    report(sum.rows);
    Ok(sum)
}

/// Reads every table, and returns its sums.
async fn sum_all(
    side: &mut Side,
    limit: Option<Limit>,
    step: CopyStep,
    progress: &Progressing<'_>,
) -> StoreResult<Vec<RowSum>> {
    let (mut sums, mut read) = (Vec::new(), 0_u64);
    for table in &TABLES {
        let mut sum = RowSum::default();
        let mut rows = side.rows(table, limit);
        while let Some(row) = rows.next().await {
            sum.add(&row?);
            read += 1;
            if read.is_multiple_of(BATCH_ROWS as u64) {
                progress.show(step, table.name, read);
            }
        }
        drop(rows);
        sums.push(sum);
    }
    Ok(sums)
}

/// Sums up a source whose rows may be in the target already. A target with another number of rows is refused at once.
async fn compare_sums(
    source: &mut Side,
    target: &mut Side,
    limit: Option<Limit>,
    counts: &[TableCount],
    found: &FoundRows,
    progress: &Progressing<'_>,
) -> StoreResult<Vec<RowSum>> {
    for (table, count) in TABLES.iter().zip(counts) {
        if target.count(table, limit).await? != count.kept {
            return Err(found.refuse());
        }
    }
    sum_all(source, limit, CopyStep::Comparing, progress).await
}

fn limit(now: Timestamp, history: Option<Duration>) -> StoreResult<Option<Limit>> {
    let Some(history) = history else { return Ok(None) };
    let at = SignedDuration::try_from(history).ok().and_then(|history| now.checked_sub(history).ok());
    let at = at.ok_or_else(|| Invalid::new("history", "is longer than the calendar goes back"))?;
    Ok(Some(Limit { at, first_run: RunId::first_at(at) }))
}

fn check_addresses(from: &str, to: &str) -> StoreResult<()> {
    let (source, target) = (Address::parse(from)?, Address::parse(to)?);
    for (address, side) in [(&source, "source"), (&target, "target")] {
        if *address == Address::SqliteMemory {
            return Err(Invalid::new(side, "is in the memory of one process, so it cannot be copied").into());
        }
    }
    if Side::identity(from)? == Side::identity(to)? {
        Err(Invalid::new("target", "the source and the target are the same database").into())
    } else {
        Ok(())
    }
}

/// The path without links. Of a file that does not exist yet, that of its folder.
fn real_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let in_folder = || Some(absolute.parent()?.canonicalize().ok()?.join(absolute.file_name()?));
    absolute.canonicalize().ok().or_else(in_folder).unwrap_or(absolute)
}

fn check_source(found: &Inspection) -> StoreResult<()> {
    let Inspection { schema_version: version, needed_version: needed, .. } = found;
    let reason = if found.old_layout || version < needed {
        format!(
            "the source has an older schema ({version}, and this binary needs {needed}): bring it up to date first with \
                 `everbell db migrate --database URL`"
        )
    } else if version > needed {
        format!("the source has a newer schema ({version}) than this binary knows ({needed}): use the newer release")
    } else {
        return Ok(());
    };
    Err(Invalid::new("source", reason).into())
}

/// Whether the target is empty, without a change to it. One that cannot be a target is refused: a newer schema, and an older
/// one with jobs, which would be migrated under a server that uses it.
async fn check_target(to: &str) -> StoreResult<bool> {
    let found = match inspect(to).await {
        Err(StoreError::NotFound { .. }) => return Ok(true),
        found => found?,
    };
    let (version, needed) = (found.schema_version, found.needed_version);
    let reason = if version > needed {
        format!("the target has a newer schema ({version}) than this binary knows ({needed}): use the newer release")
    } else if found.old_layout {
        "the target has tables of an old release: name an empty database".to_owned()
    } else if version == 0 {
        return Ok(true);
    } else {
        let mut target = Side::open(to, Access::Look).await?;
        if version == needed {
            return Ok(found_rows(&mut target).await?.is_empty());
        }
        if !target.is_used().await? {
            return Ok(true);
        }
        format!("the target has an older schema ({version}) and is in use, or was: name an empty database")
    };
    Err(Invalid::new("target", reason).into())
}

fn in_target(error: &StoreError) -> StoreError {
    match error {
        StoreError::Invalid(invalid) => {
            Invalid::new("target", format!("the target cannot be used: {}", invalid.reason)).into()
        }
        other => StoreError::Unavailable {
            what: format!("the target: {other}"),
            reason: everbell_core::store::UnavailableReason::Unreachable,
            maybe_done: false,
            source: None,
        },
    }
}

/// The rows of a target that is not empty, and the mark of the source, if it was copied there before.
struct FoundRows {
    rows: Vec<(&'static str, u64)>,
    moved: Option<MovedMark>,
}

impl FoundRows {
    /// Refuses to write into a target that is in use, or was.
    fn refuse(&self) -> StoreError {
        let rows: Vec<String> = self.rows.iter().map(|(table, rows)| format!("{table} {rows}")).collect();
        let before = self.moved.as_ref().map_or_else(String::new, MovedMark::says_of_target);
        let reason = format!(
            "{before}the target is not empty, and its rows are not those of the source ({}); name an empty database, or empty \
             this one: drop its schema (`drop schema everbell cascade`) or remove its file with the files beside it",
            rows.join(", ")
        );
        Invalid::new("target", reason).into()
    }
}
