//! Schedules before they are jobs.

use everbell_core::cron::Warning;
use serde::Serialize;
use utoipa::ToSchema;

use super::times;

/// What an expression means.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Preview)]
pub(crate) struct PreviewDocument {
    pub(crate) valid: bool,
    pub(crate) expression: String,
    pub(crate) normalized: String,
    /// In words.
    pub(crate) description: String,
    pub(crate) timezone: String,
    pub(crate) next: Vec<FireDocument>,
    pub(crate) warnings: Vec<WarningDocument>,
}

/// A fire to come.
#[derive(Serialize, ToSchema)]
#[schema(as = Fire)]
pub(crate) struct FireDocument {
    pub(crate) at: String,
    /// The same in the zone of the schedule.
    pub(crate) local: String,
    /// What daylight saving did to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub(crate) note: Option<String>,
}

/// What may surprise.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Warning)]
pub(crate) struct WarningDocument {
    pub(crate) code: &'static str,
    pub(crate) detail: String,
    pub(crate) local_date: Option<String>,
    pub(crate) at: Option<String>,
}

impl From<&Warning> for WarningDocument {
    fn from(warning: &Warning) -> WarningDocument {
        WarningDocument {
            code: warning.code.as_str(),
            detail: warning.detail.clone(),
            local_date: warning.local_date.map(|date| date.to_string()),
            at: times(warning.at),
        }
    }
}
