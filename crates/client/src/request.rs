//! Bodies of requests, named as in the OpenAPI document. A member that is `None` is not sent.

use everbell_wire::policies::{CalendarPolicy, DstPolicy};
use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// Pauses a job.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PauseRequest {
    /// The reason, from 3 to 500 characters, which is shown with the job.
    pub reason: String,
    /// When the job resumes automatically.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Cancel the runs that have not started. Otherwise they wait until the job is resumed.
    pub cancel_pending: bool,
}

/// How the slots of a pause are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MissedSlots {
    /// Run none of them.
    Skip,
    /// Run the latest.
    FireOnce,
}

/// Resumes a job.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ResumeRequest {
    /// How the slots of the pause are handled; by default as the policies of the job say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<MissedSlots>,
    /// The reason, for the audit trail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Runs a job now.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunNowRequest {
    /// The org, for a job with scope `per_org`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub org_id: Option<String>,
    /// The payload of this run; by default the payload of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Box<RawValue>>,
    /// Start even if other runs of the job are active.
    pub force: bool,
    /// Wait for active runs of the job to end instead of being skipped.
    pub queue: bool,
    /// The reason, for the audit trail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The orgs of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrgSelection {
    /// Every org that the job fires for.
    All,
    /// These orgs, at most 100.
    Named(Vec<String>),
}

impl Serialize for OrgSelection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            OrgSelection::All => serializer.serialize_str("all"),
            OrgSelection::Named(ids) => ids.serialize(serializer),
        }
    }
}

/// Moves the next run of a job.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RescheduleRequest {
    /// The new time of the next run.
    pub next_run_at: Timestamp,
    /// The org, for a job with scope `per_org`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub org_id: Option<String>,
    /// The reason, for the audit trail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Skips the next runs of a job.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SkipNextRequest {
    /// How many slots to skip, from 1 to 100; 1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// The org, for a job with scope `per_org`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub org_id: Option<String>,
    /// The reason, for the audit trail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Runs past slots that have no run.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackfillRequest {
    /// The start of the range, inclusive.
    pub from: Timestamp,
    /// The end of the range, inclusive.
    pub to: Timestamp,
    /// The org, for a job with scope `per_org`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub org_id: Option<String>,
    /// Every org, for a job with scope `per_org`.
    #[serde(rename = "orgs", serialize_with = "all", skip_serializing_if = "is_false")]
    pub all_orgs: bool,
    /// How many of its runs may be at work at once; default: what the job allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u32>,
    /// How many runs it creates in a time, as in `10/m`; default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// The newest slot first.
    #[serde(rename = "order", serialize_with = "newest", skip_serializing_if = "is_false")]
    pub newest_first: bool,
    /// Whether it continues while the job is paused; default: only if the job is paused now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_ok: Option<bool>,
    /// The reason, for the audit trail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Return the plan without creating runs.
    pub dry_run: bool,
}

/// Changes how a backfill runs. `None` keeps the current value.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackfillSettings {
    /// How many of its runs may be at work at once; 0 returns to what the job allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u32>,
    /// The rate at which it creates runs, such as `10/m`; `off` removes the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Whether it continues while the job is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_ok: Option<bool>,
    /// The reason, for the audit trail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn newest<S: serde::Serializer>(_: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("newest")
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn all<S: Serializer>(_: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("all")
}

/// Creates or updates an org.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OrgInput {
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The IANA time zone. Required for a new org.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Whether jobs fire for the org.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Any JSON object of at most 64 KiB. Replaced as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Box<RawValue>>,
    /// The reason, for the audit trail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Sets an org's override of a job.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OverridePut {
    /// Whether the job fires for the org.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The cron expression for this org instead of the job's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron_expression: Option<String>,
    /// `HH:MM`, which replaces the hour and minute of the job's expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_time: Option<String>,
    /// The reason, for the audit trail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Acknowledges a problem.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProblemAcknowledge {
    /// The reason, which is shown with the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Mutes a problem.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProblemMute {
    /// The reason, which is shown with the problem.
    pub reason: String,
    /// When the silence ends; with the problem if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// Creates a calendar, or replaces its days.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CalendarInput {
    /// The IANA time zone whose days they are; that of the job or the org if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Days: `2027-01-01`, `2027-04-02..2027-04-05` or `*-12-25`, each optionally followed by a name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dates: Vec<String>,
    /// Days of every week, such as `sat`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weekly: Vec<String>,
    /// The text of an iCalendar file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ics: Option<String>,
    /// The reason, for the audit trail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Announces a freeze.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FreezeInput {
    /// The first instant that may not fire; now if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// The first instant that may fire again.
    pub until: Timestamp,
    /// The IANA time zone of times without an offset; these times need none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// The reason, which is shown with the freeze.
    pub reason: String,
    /// Only jobs with this label, as `name=value` or `name`; all jobs if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The keys of jobs that are exempt from the freeze.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
}

/// Creates a token.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenCreate {
    /// A unique name, which the audit trail shows.
    pub name: String,
    /// The role: `viewer`, `operator` or `admin`.
    pub role: String,
    /// When the token expires; never if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// Explains a cron expression.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CronPreviewRequest {
    /// The expression.
    pub cron_expression: String,
    /// Its IANA time zone; UTC if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// List times after this one; now if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// How many times to list; 10 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// The schedule does not fire before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Timestamp>,
    /// The schedule does not fire after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_at: Option<Timestamp>,
    /// How changes to and from daylight saving time are treated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst: Option<DstPolicy>,
    /// Calendars that limit the days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calendar: Option<CalendarPolicy>,
}

/// Runs a target once, without a job.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TryTargetRequest {
    /// The input of the target; `{}` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Box<RawValue>>,
}

/// A body that has only a reason, for the audit trail.
#[derive(Serialize)]
pub(crate) struct ReasonRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_members_are_not_sent() {
        let at: Timestamp = "2027-03-13T00:00:00Z".parse().unwrap();
        let backfill = |all_orgs| {
            json!(BackfillRequest {
                from: at,
                to: at,
                org_id: None,
                all_orgs,
                parallel: None,
                rate: None,
                newest_first: false,
                paused_ok: None,
                reason: None,
                dry_run: true
            })
        };
        let plain = json!({ "from": "2027-03-13T00:00:00Z", "to": "2027-03-13T00:00:00Z", "dryRun": true });
        assert_eq!((backfill(false), &backfill(true)["orgs"]), (plain, &json!("all")));
        assert_eq!(json!(OrgInput::default()), json!({}));
        let resume = ResumeRequest { missed: Some(MissedSlots::FireOnce), reason: None };
        assert_eq!(json!(resume), json!({ "missed": "fire_once" }));
        assert_eq!(json!(OrgSelection::Named(vec!["acme".to_owned()])), json!(["acme"]));
    }
}
