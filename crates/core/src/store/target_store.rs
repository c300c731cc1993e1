//! [`TargetStore`]: targets that admins define without a configuration file.

use async_trait::async_trait;
use jiff::Timestamp;

use super::interceptor::{Call, Interceptor, audit_entry, verbs};
use super::{AuditEntry, StoreError, StoreResult};
use crate::ids::{JobKey, Target};
use crate::json::Json;

verbs! {
    /// Keeps targets that admins define. Secrets are never in a definition: it names where each instance finds them.
    pub trait TargetStore {
        /// Every stored target, by label. A target that cannot be read is left out.
        async fn stored_targets(&self) -> StoreResult<Vec<StoredTarget>>;

        /// Writes the next revision of a target, or its first. `expected_revision` that is not the current one (0: there is
        /// none) is a [`StoreError::Stale`]. More than [`MAX_STORED_TARGETS`] are [`StoreError::Invalid`].
        async fn put_target(
            &self,
            label: &Target,
            definition: &Json,
            expected_revision: Option<u32>,
            audit: &AuditEntry,
        ) -> StoreResult<StoredTarget>;

        /// Deletes a target. A current job that names it is a [`StoreError::Conflict`] that names the jobs, unless `force` is
        /// set. `expected_revision` that is not the current one is a [`StoreError::Stale`].
        async fn delete_target(
            &self,
            label: &Target,
            expected_revision: Option<u32>,
            force: bool,
            audit: &AuditEntry,
        ) -> StoreResult<()>;
    }
}

/// The most stored targets.
pub const MAX_STORED_TARGETS: usize = 200;

/// The most jobs that a refusal names.
pub const MAX_NAMED_USERS: usize = 10;

/// A target as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTarget {
    /// The label that jobs name.
    pub label: Target,
    /// 1, 2, 3, …; grows with each edit.
    pub revision: u32,
    /// The members of its block, with references to secrets.
    pub definition: Json,
    /// The actor who wrote this revision.
    pub updated_by: String,
    /// When its first revision was written.
    pub created_at: Timestamp,
    /// When this revision was written.
    pub updated_at: Timestamp,
}

impl StoredTarget {
    /// The next revision, as it is written by an edit at `at`. `before` is the current one.
    pub fn next(
        before: Option<&StoredTarget>,
        label: &Target,
        definition: &Json,
        by: &str,
        at: Timestamp,
    ) -> StoredTarget {
        StoredTarget {
            label: label.clone(),
            revision: before.map_or(0, |before| before.revision) + 1,
            definition: definition.clone(),
            updated_by: by.to_owned(),
            created_at: before.map_or(at, |before| before.created_at),
            updated_at: at,
        }
    }

    /// Refuses an edit of another revision than the current one.
    pub fn expect(before: Option<&StoredTarget>, label: &Target, expected: Option<u32>) -> StoreResult<()> {
        let found = before.map_or(0, |before| before.revision);
        StoreError::expect_revision("target", label, expected.map(u64::from), Some(u64::from(found)))
    }

    /// Refuses a delete while jobs name the target. Of more than [`MAX_NAMED_USERS`] jobs one more is enough.
    pub fn expect_unused(label: &Target, users: &[JobKey]) -> StoreResult<()> {
        if users.is_empty() {
            return Ok(());
        }
        let named: Vec<&str> = users.iter().take(MAX_NAMED_USERS).map(JobKey::as_str).collect();
        let more = if users.len() > MAX_NAMED_USERS { " and more" } else { "" };
        let what = format!(
            "target `{label}` is used by {}{more}; change the target of these jobs first, or delete it with `force`",
            named.join(", ")
        );
        Err(StoreError::Conflict { what })
    }
}
