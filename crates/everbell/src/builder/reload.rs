//! Replacing the targets and declared jobs of a running program by those of another builder.

use crate::bell::Everbell;
use crate::build_error::BuildError;
use crate::builder::Builder;
use crate::sync::SyncPlan;

impl Everbell {
    /// Starts a builder.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Checks a builder as [`Everbell::reload`] does, and returns what that would do with the declared jobs.
    pub async fn plan_reload(&self, builder: Builder) -> Result<SyncPlan, BuildError> {
        let (_, _, next) = builder.checked_reload(&self.parts)?;
        next.expect_no_conflict(&self.parts).await
    }

    /// Replaces the targets that this program serves and the jobs that it declares by those of another builder, without
    /// disturbing runs in flight. The builder needs no database; of its options only the roles count, and its observers,
    /// clock and tracing are not used.
    ///
    /// Everything is checked first, and nothing changes if something is wrong. New targets are served before jobs are
    /// synced, and the others are dropped afterwards: a run that was claimed by then still ends with its old handler, later
    /// ones are left to other instances. If the database fails half-way, the jobs that were written
    /// by then keep their new definition, and old and new targets are served; repeating the reload completes it.
    pub async fn reload(&self, builder: Builder) -> Result<SyncPlan, BuildError> {
        let mut syncer = self.declared.syncer.lock().await;
        let (mut targets, states, next) = builder.checked_reload(&self.parts)?;
        next.expect_no_conflict(&self.parts).await?;
        let before = self.parts.targets.now();
        targets.tracing = before.tracing.clone();
        states.set_bell(self.downgrade());
        self.parts.targets.add(&targets);
        match next.apply(&self.parts).await {
            Ok(done) => {
                self.parts.targets.replace(targets);
                *self.parts.declared_calendars.write().await = next.declared_calendars();
                *syncer = next;
                Ok(done)
            }
            // Jobs that were written name the new targets, the others the old ones: both are served.
            Err(error) => Err(error),
        }
    }

    /// Replaces only the targets that this program serves by those of another builder, as [`Everbell::reload`] does: runs in
    /// flight keep their handler. The builder is checked as a whole, and the jobs that it declares are left as they are.
    pub async fn reload_targets(&self, builder: Builder) -> Result<(), BuildError> {
        let _one_at_a_time = self.declared.syncer.lock().await;
        let (mut targets, states, _) = builder.checked_reload(&self.parts)?;
        targets.tracing = self.parts.targets.now().tracing.clone();
        states.set_bell(self.downgrade());
        self.parts.targets.replace(targets);
        Ok(())
    }
}
