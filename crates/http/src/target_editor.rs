//! Targets that admins define. What the configuration allows, and how a definition becomes a target, the server says: see
//! [`TargetEditor`].

use async_trait::async_trait;
use everbell::StoreResult;
use everbell_core::store::StoredTarget;
use everbell_wire::form::Fault;
use serde_json::Value;

use crate::defined::ConfiguredTarget;

/// Knows the rules for stored targets, and serves them.
#[async_trait]
pub trait TargetEditor: Send + Sync {
    /// The types of targets that admins may define: none unless the configuration says so.
    async fn editable(&self) -> Vec<String>;

    /// Checks a definition by the rules of blocks and of the configuration. No secret is looked up.
    async fn check(&self, label: &str, definition: &Value) -> Vec<Fault>;

    /// Why the label cannot be used, if it cannot.
    async fn clash(&self, label: &str) -> Option<String>;

    /// Why this instance cannot serve this definition, if it cannot.
    async fn problem(&self, label: &str, definition: &Value) -> Option<String>;

    /// Serves the stored targets of this moment.
    async fn refresh(&self) -> StoreResult<()>;

    /// A stored target as people may know it.
    fn describe(&self, label: &str, definition: &Value) -> ConfiguredTarget;

    /// Why this instance does not serve a stored target, as far as it has looked.
    fn known_problem(&self, stored: &StoredTarget) -> Option<String>;
}
