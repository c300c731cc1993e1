//! Bodies of the reports of a remote side. A member that is `None` is not sent.

use serde::Serialize;
use serde_json::value::RawValue;

/// Says that a run is at work.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct RunHeartbeat {
    /// The attempt; by default the current one, or that of the run token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
}

/// Says how far a run has come.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunProgressReport {
    /// The part that is done, from 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// A message for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The attempt; by default the current one, or that of the run token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
}

/// Adds text to the output of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunLog {
    /// The text, of any number of lines.
    pub text: String,
    /// The attempt; by default the current one, or that of the run token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
}

/// Ends a run with success.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunComplete {
    /// The result of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// Text that is added to its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The attempt; by default the current one, or that of the run token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
}

/// Ends the attempt of a run with a failure.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunFail {
    /// Why it failed, as a stable word; by default `handler_error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Why it failed, in words.
    pub message: String,
    /// More about the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<RawValue>>,
    /// Whether another attempt makes sense, if the job allows one; by default it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// The shortest wait before the next attempt, such as `PT30S`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<String>,
    /// Text to append to the output of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The attempt; by default the current one, or that of the run token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
}
