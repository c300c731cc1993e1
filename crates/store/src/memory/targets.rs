//! Targets that admins define.

use async_trait::async_trait;
use everbell_core::store::{
    AuditEntry, MAX_NAMED_USERS, MAX_STORED_TARGETS, StoreError, StoreResult, StoredTarget, TargetStore,
};
use everbell_core::{JobKey, JobStatus, Json, Target};

use super::MemoryStore;
use super::state::micros;
use crate::rows::targets::too_many;

#[async_trait]
impl TargetStore for MemoryStore {
    async fn stored_targets(&self) -> StoreResult<Vec<StoredTarget>> {
        self.with(|state| Ok(state.targets.values().cloned().collect()))
    }

    async fn put_target(
        &self,
        label: &Target,
        definition: &Json,
        expected_revision: Option<u32>,
        audit: &AuditEntry,
    ) -> StoreResult<StoredTarget> {
        self.once_quietly(audit, |state| {
            let before = state.targets.get(label);
            StoredTarget::expect(before, label, expected_revision)?;
            if before.is_none() && state.targets.len() >= MAX_STORED_TARGETS {
                return Err(too_many().into());
            }
            let written = StoredTarget::next(before, label, definition, &audit.actor, micros(audit.at));
            state.targets.insert(label.clone(), written.clone());
            state.write_audit(audit);
            Ok(written)
        })
    }

    async fn delete_target(
        &self,
        label: &Target,
        expected_revision: Option<u32>,
        force: bool,
        audit: &AuditEntry,
    ) -> StoreResult<()> {
        self.once_quietly(audit, |state| {
            let before = state.targets.get(label);
            if before.is_none() {
                return Err(StoreError::not_found("target", label));
            }
            StoredTarget::expect(before, label, expected_revision)?;
            if !force {
                let is_user = |job: &&everbell_core::Job| {
                    job.state.status != JobStatus::Retired && job.definition.target == *label
                };
                let mut users: Vec<JobKey> =
                    state.jobs.values().filter(is_user).map(|job| job.definition.key.clone()).collect();
                users.sort();
                users.truncate(MAX_NAMED_USERS + 1);
                StoredTarget::expect_unused(label, &users)?;
            }
            state.targets.remove(label);
            state.write_audit(audit);
            Ok(())
        })
    }
}
