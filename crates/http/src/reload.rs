//! Reloading the configuration of the server. What that means, the server says: see [`Reload`].

use async_trait::async_trait;
use everbell_wire as wire;

use super::problem::{Kind, Problem};

/// Reads the configuration again.
#[async_trait]
pub trait Reload: Send + Sync {
    /// Checks all of the new configuration, and applies it unless `dry_run` is set. The audit trail names the actor.
    async fn reload(&self, actor: &str, dry_run: bool) -> Result<wire::Reloaded, ReloadError>;
}

/// Why a reload did not happen.
#[derive(Debug)]
pub enum ReloadError {
    /// The problems of the new configuration. Nothing was changed.
    Invalid(Vec<String>),
    /// The database failed.
    Store(everbell::StoreError),
}

impl From<ReloadError> for Problem {
    fn from(error: ReloadError) -> Problem {
        match error {
            ReloadError::Invalid(problems) => {
                let detail =
                    format!("The configuration was not reloaded; nothing was changed: {}", problems.join("; "));
                Problem::new(Kind::Conflict, detail).with("problems", problems)
            }
            ReloadError::Store(error) => error.into(),
        }
    }
}
