//! Examples of request bodies, for the API reference. Those of responses are in [`everbell_wire::example`].

use serde_json::{Value, json};

/// Returns an example of the request body with this name; `null` for an unknown name.
pub(crate) fn request(name: &str) -> Value {
    of_jobs(name).or_else(|| of_surroundings(name)).unwrap_or_default()
}

/// Bodies about jobs, their schedules and their runs.
fn of_jobs(name: &str) -> Option<Value> {
    Some(match name {
        "JobCreate" => json!({
            "jobKey": "daily-report",
            "target": "send-report",
            "cronExpression": "0 8 * * 1-5",
            "timezone": "Europe/Berlin",
            "payload": { "format": "pdf" },
            "policies": { "timeout": "PT15M", "retry": { "maxAttempts": 3, "initial": "PT30S" } },
            "description": "Sends the sales report",
            "labels": { "team": "sales" },
        }),
        "JobPatch" => json!({ "policies": { "timeout": "PT30M" }, "reason": "The report takes longer by now" }),
        "BulkActionRequest" => json!({
            "action": "pause",
            "filter": { "label": "team=sales" },
            "reason": "The mail server is down",
            "dryRun": true,
        }),
        "RerunRequest" => json!({ "filter": { "label": "team=sales", "status": ["failed"] }, "dryRun": true }),
        "PauseRequest" => json!({ "reason": "The mail server is down", "until": "2027-03-16T06:00:00+01:00" }),
        "ResumeRequest" => json!({ "missed": "fire_once", "reason": "The mail server is back" }),
        "RunNowRequest" => json!({ "note": "The board needs the report today" }),
        "RescheduleRequest" => json!({ "nextRunAt": "2027-03-16T10:00:00+01:00", "reason": "The data arrives late" }),
        "SkipNextRequest" => json!({ "count": 2, "reason": "The office is closed" }),
        "BackfillRequest" => json!({
            "from": "2027-03-01T00:00:00+01:00",
            "to": "2027-03-02T00:00:00+01:00",
            "parallel": 4, "rate": "10/m", "reason": "The report of March 1 is missing",
        }),
        "BackfillSettings" => json!({ "parallel": 8, "rate": "off", "reason": "The night is quiet" }),
        "RunHeartbeat" => json!({}),
        "RunProgressReport" => json!({ "percent": 40, "message": "12 of 30 reports" }),
        "RunLog" => json!({ "text": "12 of 30 reports are written\n" }),
        "RunComplete" => json!({ "result": { "reports": 30 }, "output": "30 reports are written\n" }),
        "RunFail" => json!({ "code": "no_disk", "message": "The disk is full", "retryable": false }),
        "ReasonRequest" => json!({ "reason": "Requested by the sales team" }),
        "CronPreviewRequest" => json!({
            "cronExpression": "0 8 * * 1-5",
            "timezone": "Europe/Berlin",
            "from": "2027-03-15T09:30:00Z",
            "count": 2,
        }),
        "ScheduleCreate" => json!({
            "name": "daily-report",
            "target": "send-report",
            "cron_expression": "0 8 * * 1-5",
            "timezone": "Europe/Berlin",
            "payload": { "format": "pdf" },
        }),
        "SchedulePatch" => json!({ "enabled": false }),
        _ => return None,
    })
}

/// Bodies about what jobs depend on: orgs, targets, problems, calendars, freezes and tokens.
fn of_surroundings(name: &str) -> Option<Value> {
    Some(match name {
        "OrgInput" => json!({
            "name": "Acme Corporation",
            "timezone": "Asia/Tokyo",
            "enabled": true,
            "settings": { "plan": "pro" },
        }),
        "OrgLine" => json!({ "id": "acme", "name": "Acme Corporation", "timezone": "Asia/Tokyo" }),
        "OverridePut" => json!({ "localTime": "09:30", "reason": "Acme starts later" }),
        "TargetInput" => json!({
            "type": "http",
            "url": "https://reports.example.com/run",
            "headers": { "Authorization": { "env": "REPORTS_AUTH" } },
            "timeout": "2m",
        }),
        "TryTargetRequest" => json!({ "payload": { "format": "pdf" } }),
        "ProblemAcknowledge" => json!({ "reason": "The mail server is down" }),
        "ProblemMute" => json!({ "reason": "The mail server is replaced", "until": "2027-03-16T06:00:00Z" }),
        "CalendarInput" => json!({ "timezone": "Europe/Berlin", "dates": ["*-12-25 Christmas"], "weekly": ["sun"] }),
        "FreezeInput" => json!({
            "from": "2027-03-19T18:00:00",
            "until": "2027-03-22T08:00:00",
            "timezone": "Europe/Berlin",
            "reason": "Release weekend",
            "label": "team=sales",
            "except": ["nightly-backup"],
        }),
        "TokenCreate" => json!({ "name": "ci", "role": "operator", "expiresAt": "2028-01-01T00:00:00Z" }),
        _ => return None,
    })
}
