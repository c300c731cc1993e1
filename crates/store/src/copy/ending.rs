//! The last steps of a copy: the mark of the source, and the commit of the target.

use everbell_core::store::{StoreError, StoreResult, UnavailableReason};

use super::side::Side;
use super::{CopyOptions, found_rows};
use crate::portable::Access;
use crate::portable::tables::TABLES;
use crate::portable::value::RowSum;

/// The end of a copy whose rows are equal.
pub(super) struct Ending<'a> {
    pub(super) to: &'a str,
    pub(super) options: &'a CopyOptions,
    pub(super) identity: String,
    /// The rows that the target has, unless its commit fails.
    pub(super) sources: Vec<RowSum>,
    pub(super) was_there: bool,
}

impl Ending<'_> {
    /// Marks the source, and then commits the target: whatever fails in between, at most one of them can be started.
    pub(super) async fn finish(&self, mut source: Side, mut target: Side) -> StoreResult<()> {
        if self.options.keep_source {
            return target.commit("committing the copy").await;
        }
        source.write_mark(&self.options.target_name, &self.identity).await?;
        source.commit("marking the source as moved").await?;
        let committed = target.commit("committing the copy").await;
        drop(target);
        if let Err(error) = committed
            && !self.is_there(&error).await?
        {
            // If this fails, the mark says that a copy has not finished, which is true.
            source.clear_mark().await?;
            return Err(error);
        }
        source.end_mark().await.map_err(|error| in_doubt(&error))
    }

    /// Whether the target has the rows, although its commit failed. One that is in doubt is looked for: the locks wait until
    /// the transaction has ended.
    async fn is_there(&self, error: &StoreError) -> StoreResult<bool> {
        if self.was_there || !matches!(error, StoreError::Unavailable { maybe_done: true, .. }) {
            return Ok(self.was_there);
        }
        let look = async {
            let mut target = Side::open(self.to, Access::Target).await?;
            let found = found_rows(&mut target).await?;
            let mut is_equal = true;
            for (table, sum) in TABLES.iter().zip(&self.sources) {
                is_equal &= target.count(table, None).await? == sum.rows;
            }
            target.rollback().await?;
            Ok::<_, StoreError>((found.is_empty(), is_equal))
        };
        match look.await {
            Ok((_, true)) => Ok(true),
            Ok((true, false)) => Ok(false),
            Ok((false, false)) | Err(_) => Err(in_doubt(error)),
        }
    }
}

/// A copy that may be complete: the mark of the source says that it has begun.
fn in_doubt(error: &StoreError) -> StoreError {
    StoreError::Unavailable {
        what: format!(
            "{error}; it is not known whether the target has the rows, and no server starts on the source: run `everbell db \
             copy` again, which looks, or allow the source again with `everbell db reopen` if the target is empty"
        ),
        reason: UnavailableReason::Unreachable,
        maybe_done: true,
        source: None,
    }
}
