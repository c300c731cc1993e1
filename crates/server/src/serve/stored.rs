//! Targets that admins define: read from the database, resolved on this instance, and served beside those of the file.
//!
//! Every instance looks for changes every [`POLL_INTERVAL`]; the one that wrote takes its change at once. Secrets are read
//! again every [`RESOLVE_INTERVAL`], so that a file that was missing or has changed counts without a restart. Targets are
//! replaced by [`Everbell::reload_targets`](everbell::Everbell::reload_targets) only if something differs: runs in flight keep
//! what they began with.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use everbell::{StoreError, StoreResult};
use everbell_core::Json;
use everbell_core::store::{Store, StoredTarget};
use everbell_http::{ConfiguredTarget, TargetEditor};
use everbell_wire::form::Fault;
use serde_json::Value;

use super::builder;
use super::reload::Reloader;
use crate::config::{Config, Environment, described_stored_target};
use crate::targets::TargetSettings;

const POLL_INTERVAL: Duration = Duration::from_secs(2);
const RESOLVE_INTERVAL: Duration = Duration::from_secs(30);

/// The stored targets as this instance has them.
#[derive(Default)]
pub(super) struct Stored {
    rows: Vec<StoredTarget>,
    /// Those that can be served.
    pub(super) settings: Vec<TargetSettings>,
    /// Why the others cannot, by label.
    problems: BTreeMap<String, String>,
}

impl Stored {
    /// Reads the targets, if the configuration allows any.
    pub(super) async fn load(config: &Config, environment: &Environment, store: &dyn Store) -> StoreResult<Stored> {
        if config.target_rules.editable.is_empty() {
            return Ok(Stored::default());
        }
        Ok(Stored::resolve(config, environment, store.stored_targets().await?))
    }

    fn resolve(config: &Config, environment: &Environment, rows: Vec<StoredTarget>) -> Stored {
        let (mut settings, mut problems) = (Vec::new(), BTreeMap::new());
        for row in &rows {
            let label = row.label.as_str();
            match config.resolve_stored_target(label, &definition(&row.definition), environment) {
                Ok(target) => settings.push(target),
                Err(problem) => drop(problems.insert(label.to_owned(), problem)),
            }
        }
        Stored { rows, settings, problems }
    }

    /// Logs what is not served, and what is again, compared with the targets before.
    fn log(&self, before: &Stored) {
        for (label, problem) in
            self.problems.iter().filter(|(label, problem)| before.problems.get(*label) != Some(*problem))
        {
            tracing::warn!("the stored target `{label}` is not served by this instance: {problem}");
        }
        for label in before.problems.keys().filter(|label| !self.problems.contains_key(*label)) {
            tracing::info!("the stored target `{label}` no longer has a problem");
        }
    }
}

fn definition(text: &Json) -> Value {
    // It was written as JSON; a row that was damaged is refused for its missing type.
    serde_json::from_str(text.as_str()).unwrap_or_default()
}

impl Reloader {
    /// Serves the stored targets of this moment.
    async fn refresh_targets(&self) -> StoreResult<()> {
        let current = self.current.lock().await;
        let before = self.stored();
        let stored = Stored::load(&current, &self.environment, &**self.bell.store()).await?;
        if stored.settings != before.settings {
            let supervisor = self.supervisor.supervisor(&current, &stored.settings);
            let changed = match builder(&current, &stored.settings, &self.metrics, &supervisor) {
                Ok(builder) => self.bell.reload_targets(builder).await.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            if let Err(error) = changed {
                return Err(StoreError::Corrupt { what: format!("the stored targets cannot be served: {error}") });
            }
            let labels: Vec<&str> = stored.settings.iter().map(|target| target.label.as_str()).collect();
            tracing::info!("stored targets that this instance serves: {}", labels.join(", "));
        }
        stored.log(&before);
        self.set_stored(stored);
        Ok(())
    }

    /// Takes changes of other instances, forever.
    pub(super) async fn follow_targets(&self) {
        let mut resolved = tokio::time::Instant::now();
        let mut is_failing = false;
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            if self.current.lock().await.target_rules.editable.is_empty() {
                continue;
            }
            let looked = async {
                let rows = self.bell.store().stored_targets().await?;
                if rows != self.stored().rows || resolved.elapsed() >= RESOLVE_INTERVAL {
                    resolved = tokio::time::Instant::now();
                    self.refresh_targets().await?;
                }
                Ok::<(), StoreError>(())
            };
            match looked.await {
                Ok(()) => is_failing = false,
                // One line for an outage, however long it lasts.
                Err(error) if !is_failing => {
                    is_failing = true;
                    tracing::warn!(%error, "cannot read the stored targets; the previous ones stay in use");
                }
                Err(_) => {}
            }
        }
    }

    /// Notes the targets that the server started with, and logs those that it cannot serve.
    pub(super) fn begin_with(&self, stored: Stored) {
        stored.log(&Stored::default());
        self.set_stored(stored);
    }

    pub(super) fn stored(&self) -> Arc<Stored> {
        Arc::clone(&self.stored.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_stored(&self, stored: Stored) {
        *self.stored.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(stored);
    }
}

#[async_trait]
impl TargetEditor for Reloader {
    async fn editable(&self) -> Vec<String> {
        self.current.lock().await.target_rules.editable.clone()
    }

    async fn check(&self, label: &str, definition: &Value) -> Vec<Fault> {
        self.current.lock().await.check_stored_target(label, definition)
    }

    async fn clash(&self, label: &str) -> Option<String> {
        self.current.lock().await.label_clash(label)
    }

    async fn problem(&self, label: &str, definition: &Value) -> Option<String> {
        self.current.lock().await.resolve_stored_target(label, definition, &self.environment).err()
    }

    async fn refresh(&self) -> StoreResult<()> {
        self.refresh_targets().await
    }

    fn describe(&self, label: &str, definition: &Value) -> ConfiguredTarget {
        described_stored_target(label, definition)
    }

    fn known_problem(&self, stored: &StoredTarget) -> Option<String> {
        let known = self.stored();
        if let Some(problem) = known.problems.get(stored.label.as_str()) {
            return Some(problem.clone());
        }
        let is_taken = known.rows.iter().any(|row| row.label == stored.label && row.revision == stored.revision);
        (!is_taken).then(|| "this instance takes this revision within a few seconds".to_owned())
    }
}
