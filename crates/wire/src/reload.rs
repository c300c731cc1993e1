//! The result of reloading the configuration.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::words::words;

words!(
    /// A part of the configuration.
    ConfigPart {
        /// A target.
        Target = "target",
        /// A job.
        Job = "job",
        /// A calendar.
        Calendar = "calendar",
        /// A channel for notifications.
        Notify = "notify",
        /// A rule of notifications.
        Rule = "rule",
        /// A template of a schedule.
        Template = "template",
        /// A setting.
        Setting = "setting",
    }
);

/// The changes of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reloaded {
    /// Whether the configuration was only checked.
    pub dry_run: bool,
    /// The file that was read; null if there is none.
    pub file: Option<String>,
    /// The host and process of the instance that reloaded, such as `web-1:4711`.
    pub instance: String,
    /// Every change, in the order of the configuration's sections.
    pub changes: Vec<ConfigChange>,
    /// Settings that differ from those in use and need a restart, such as `server.listen`.
    pub needs_restart: Vec<String>,
    /// Settings that are valid but unwise.
    pub warnings: Vec<String>,
}

/// A change of one part of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigChange {
    /// The part that changed.
    pub part: ConfigPart,
    /// Its label, key or name.
    pub name: String,
    /// The change in words, such as `added`.
    pub change: String,
}
