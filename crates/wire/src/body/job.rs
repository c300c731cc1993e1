//! The form of a job in the API and in configuration files.

use everbell_core::after::ChainOn;
use everbell_core::cron::{Expression, ParseError};
use everbell_core::fan_in::{DEFAULT_WITHIN, GroupBy, MAX_PARENTS};
use everbell_core::{Draft, Invalid, ParentDraft, Scope, Timing, Zone};
use jiff::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::form::{Fault, Field, Form, Kind, Naming, TEXT, optional, required};
use crate::policies::fields as policies;
use crate::problem::FaultCode;
use crate::time_input::{Refusal, TimeReader};

/// A cron expression; longer texts are refused before they are parsed.
pub const EXPRESSION: Kind = Kind::Text { min: 1, max: 1_000 };
/// The name of a time zone.
pub const ZONE: Kind = Kind::Text { min: 1, max: 100 };

/// The job before.
pub(crate) const AFTER: &[Field] = &[
    required("job", TEXT, "The key of the job whose runs start this one."),
    optional(
        "on",
        Kind::Word(&["success", "failure", "any"]),
        "The outcomes of its runs that count: a failed run has failed in its last attempt. Default: `success`.",
    ),
    optional("manual", Kind::Flag, "Also start after manual runs, reruns and backfills. Default: false."),
];

macro_rules! with_job_fields {
    ($($own:expr),* ; $need:ident) => {
        &[
            $($own,)*
            $need("target", TEXT, "The target that the job runs."),
            optional("scheduleType", Kind::Word(&["recurring", "one_time", "after"]), "Whether the job fires repeatedly, once, or after another job. Default: `after` if `after` is given, `one_time` if only `runAt` is given, otherwise `recurring`."),
            optional("cronExpression", EXPRESSION, "When a recurring job fires: five fields, six with leading seconds, a macro such as `@daily`, or `@every 90s`."),
            optional("runAt", Kind::Time, "When a one-time job fires. A time without an offset is in `timezone`."),
            optional("after", Kind::ComponentOrList { name: "AfterInput", fields: AFTER, max: MAX_PARENTS }, "Start when runs of another job end, instead of `cronExpression` or `runAt`; with a list, once when runs of all of these jobs have ended."),
            optional("afterGroup", Kind::Word(&["slot", "local_date"]), "With a list of jobs: which of their runs belong together, those of the same slot or those of the same local date in `timezone`. Default: `slot`."),
            optional("afterWithin", Kind::Span, "With a list of jobs: how long to wait after the first of their runs ends, from 1 minute to 31 days. After that, the job does not start, and a gap is recorded. Default: 24 hours."),
            optional("timezone", ZONE, "The IANA time zone of the schedule. Default: UTC."),
            optional("scope", Kind::Word(&["global", "per_org"]), "Whether the job fires once for each slot, or for each org in the time zone of the org. Default: `global`."),
            optional("payload", Kind::Json, "The input of the target. Default: {}."),
            optional("startAt", Kind::Time, "The job does not fire before this time."),
            optional("endAt", Kind::Time, "The job does not fire after this time."),
            optional("policies", Kind::Component("PoliciesInput", policies::FIELDS), "Rules for late slots, overlapping runs, retries and daylight saving time."),
            optional("description", Kind::Text { min: 0, max: 10_000 }, "A description for people."),
            optional("labels", Kind::Texts, "Names and values to filter jobs by."),
        ]
    };
}

/// A whole job.
pub const JOB: &[Field] =
    with_job_fields!(required("jobKey", TEXT, "The unique name of the job, which all its versions share."); required);

/// A new job in the API, which may begin paused.
pub const NEW_JOB: &[Field] = with_job_fields!(
    required("jobKey", TEXT, "The unique name of the job, which all its versions share."),
    optional("pauseReason", Kind::Text { min: 3, max: 500 }, "Create the job paused, for this reason: it does not fire before it is resumed.");
    required
);

/// The fields of an edit: an absent member keeps its value, `null` resets it.
pub const EDIT: &[Field] = with_job_fields!(
    optional("reason", Kind::Text { min: 3, max: 500 }, "The reason, for the audit trail."),
    optional("activate", Kind::Flag, "Activate the new version even if the job is paused.");
    optional
);

/// The fields of an edit of many jobs: what may be the same for all of them.
pub const BULK_EDIT: &[Field] = &[
    optional("target", TEXT, "The target."),
    optional("labels", Kind::Texts, "Labels to set. `null` removes a label; other labels are kept."),
    optional(
        "policies",
        Kind::Component("PoliciesInput", policies::FIELDS),
        "Policies to change. `null` resets a policy; other policies are kept.",
    ),
];

/// A job, as far as it could be read, and its faults.
#[derive(Debug)]
pub struct JobForm {
    /// The job; fields that could not be read have their defaults.
    pub draft: Draft,
    /// Every fault of the document.
    pub faults: Vec<Fault>,
}

/// Reads a job. `payload` is its JSON text, so no number loses a digit.
pub fn read(value: &Value, payload: Option<&RawValue>, naming: Naming) -> JobForm {
    read_fields(value, payload, naming, JOB)
}

/// Reads a new job of the API, and the reason why it begins paused.
pub fn read_new(value: &Value, payload: Option<&RawValue>) -> (JobForm, Option<String>) {
    let reason = value.get("pauseReason").and_then(Value::as_str).map(str::to_owned);
    (read_fields(value, payload, Naming::Camel, NEW_JOB), reason)
}

fn read_fields(value: &Value, payload: Option<&RawValue>, naming: Naming, fields: &'static [Field]) -> JobForm {
    let mut form = Form::read(value, fields, naming);
    if !value.is_object() {
        // It is not an object, so there is nothing else to check.
        return JobForm { draft: Draft::new("any", daily()), faults: form.faults() };
    }
    let zone = form.text("timezone").and_then(|name| Zone::get(name).ok()).unwrap_or_else(Zone::utc);
    let timing = timing(&mut form, &zone);
    let mut draft = Draft {
        // The form has noted a missing target already.
        target: Some(form.text("target").unwrap_or("any").to_owned()),
        timezone: form.text("timezone").map(str::to_owned),
        payload: payload.map(|payload| Ok(payload.get().to_owned())),
        start_at: time(&mut form, "startAt", &zone),
        end_at: time(&mut form, "endAt", &zone),
        description: form.text("description").unwrap_or_default().to_owned(),
        labels: form.texts("labels").map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        scope: form.word("scope", Scope::from_word).unwrap_or_default(),
        ..Draft::new(form.text("jobKey").unwrap_or("any"), timing)
    };
    policies::read(&form, &mut draft);
    if form.has("jobKey") && form.text("jobKey") == form.text("policies.dependsOn.jobKey") {
        form.fault(
            "policies.dependsOn.jobKey",
            FaultCode::Invalid,
            "is the job itself, which would wait for itself forever",
        );
    }
    for invalid in draft.check().err().unwrap_or_default() {
        refuse(&mut form, &invalid);
    }
    JobForm { draft, faults: form.faults() }
}

/// A substitute for a missing schedule, so that everything else can be checked.
fn daily() -> Timing {
    Timing::Cron("@daily".to_owned())
}

/// Reads the schedule. Returns a substitute if it is missing or wrong.
fn timing(form: &mut Form<'_>, zone: &Zone) -> Timing {
    if form.has("after") || form.text("scheduleType") == Some("after") {
        return following(form);
    }
    for belongs in ["afterGroup", "afterWithin"] {
        if form.has(belongs) {
            form.fault(belongs, FaultCode::Invalid, "is only for a job that starts after several others");
        }
    }
    let run_at = time(form, "runAt", zone);
    let expression = form.text("cronExpression").map(str::to_owned);
    let once = match form.text("scheduleType") {
        Some(word) => word == "one_time",
        None => form.has("runAt") && !form.has("cronExpression"),
    };
    let (wanted, other) = if once { ("runAt", "cronExpression") } else { ("cronExpression", "runAt") };
    let kind = if once { "one-time" } else { "recurring" };
    if !form.has(wanted) {
        form.fault(wanted, FaultCode::Required, format!("is required for a {kind} job"));
    }
    if form.has(other) {
        form.fault(other, FaultCode::Invalid, format!("a {kind} job has `{}` instead", form.spell(wanted)));
    }
    if once {
        // A valid time, so that only the missing one is a fault.
        return Timing::Once(run_at.unwrap_or(Timestamp::UNIX_EPOCH));
    }
    expression.map_or_else(daily, Timing::Cron)
}

/// Reads the schedule of a job that starts after another one, which has no clock.
fn following(form: &mut Form<'_>) -> Timing {
    if !form.has("after") {
        form.fault("after", FaultCode::Required, "is required for a job that starts after another one");
    }
    for clock in ["cronExpression", "runAt"] {
        if form.has(clock) {
            let after = form.spell("after");
            form.fault(
                clock,
                FaultCode::Invalid,
                format!("cannot be combined with `{after}`: the job starts after another one"),
            );
        }
    }
    if form.text("scheduleType").is_some_and(|word| word != "after") {
        form.fault(
            "scheduleType",
            FaultCode::Invalid,
            "must be `after` for a job that starts after another one, or absent",
        );
    }
    let after = form.value("after").cloned().unwrap_or_default();
    let (mut parents, is_list) = match &after {
        Value::Array(items) => (items.iter().map(parent).collect(), items.len() != 1),
        one => (vec![parent(one)], false),
    };
    match parents.pop() {
        Some(ParentDraft { job, on, manual }) if !is_list => {
            for belongs in ["afterGroup", "afterWithin"] {
                if form.has(belongs) {
                    let after = form.spell("after");
                    form.fault(belongs, FaultCode::Invalid, format!("is only for a list of jobs in `{after}`"));
                }
            }
            Timing::After { job, on, manual }
        }
        last => Timing::AfterAll {
            parents: parents.into_iter().chain(last).collect(),
            group: form.word("afterGroup", GroupBy::from_word).unwrap_or_default(),
            within: form.span("afterWithin").unwrap_or(DEFAULT_WITHIN),
        },
    }
}

/// Reads a job that another one starts after. The form has noted what is missing or wrong.
fn parent(value: &Value) -> ParentDraft {
    let text = |name| value.get(name).and_then(Value::as_str);
    ParentDraft {
        job: text("job").unwrap_or("another").to_owned(),
        on: text("on").and_then(ChainOn::from_word).unwrap_or_default(),
        manual: value.get("manual").and_then(Value::as_bool).unwrap_or(false),
    }
}

/// Reads a time, and notes a fault if that fails.
pub fn time(form: &mut Form<'_>, path: &str, zone: &Zone) -> Option<Timestamp> {
    let text = form.text(path)?.to_owned();
    let read = TimeReader { now: Timestamp::UNIX_EPOCH, zone }.absolute(&text);
    let message = |Refusal { reason, hint }| match hint {
        Some(hint) => format!("{reason}; {hint}"),
        None => reason,
    };
    read.map_err(|refusal| form.fault(path, FaultCode::Invalid, message(refusal))).ok()
}

/// Notes a fault that core found, with the codes of the API for expressions and zones.
fn refuse(form: &mut Form<'_>, invalid: &Invalid) {
    match (invalid.field, form.text("cronExpression").map(Expression::parse)) {
        ("cronExpression", Some(Err(error))) => {
            form.fault("cronExpression", FaultCode::from(&error), expression_fault(&error));
        }
        ("timezone", _) => form.fault("timezone", FaultCode::UnknownZone, invalid.reason.clone()),
        _ => form.refuse(invalid),
    }
}

/// Describes a fault of an expression, and what is allowed.
pub fn expression_fault(error: &ParseError) -> String {
    let fault = format!("{error}; allowed: {}", error.allowed());
    error.hint().map_or_else(|| fault.clone(), |hint| format!("{fault}; {hint}"))
}

#[cfg(test)]
mod tests {
    use everbell_core::{Definition, JobId, Made, Source};
    use serde_json::json;

    use super::super::definition::{changes_timing, document, merge};
    use super::*;

    fn faults(value: &Value) -> Vec<String> {
        let faults = read(value, None, Naming::Camel).faults;
        faults.into_iter().map(|fault| format!("{} {}", fault.pointer, fault.code)).collect()
    }

    fn definition(value: &Value) -> Definition {
        let read = read(value, None, Naming::Camel);
        assert_eq!(read.faults, [], "{value}");
        let at = "2026-11-15T12:00:00Z".parse().unwrap();
        read.draft.definition(&Made { id: JobId::new(at, [7; 10]), source: Source::Api, by: "ana", at }).unwrap()
    }

    fn full() -> Value {
        json!({
            "jobKey": "daily", "target": "brief", "cronExpression": "0 8 * * mon-fri", "timezone": "Europe/Paris",
            "startAt": "2027-01-01T00:00:00Z", "endAt": "2028-01-01T00:00:00Z", "description": "d", "labels": {"a": "b"},
            "policies": {
                "overlap": "queue", "maxConcurrentRuns": 2, "catchUp": "all", "catchUpLimit": 5, "catchUpWindow": "PT2H",
                "grace": "PT30S", "timeout": "PT1H", "jitter": "PT5S", "onLeaseLoss": "continue", "pauseAfterFailures": 3,
                "retry": {"maxAttempts": 4, "initial": "PT1S", "max": "PT1M"},
                "dependsOn": {"jobKey": "etl", "within": "PT24H"}, "dst": {"gap": "skip", "fold": "both"}, "onLost": "retry",
                "priority": -7, "calendar": {"exclude": ["weekend"], "only": [], "roll": "previous"},
            },
        })
    }

    #[test]
    fn definition_and_document_convert_both_ways() {
        for body in [
            full(),
            json!({"jobKey": "a", "target": "t", "cronExpression": "@every 90s"}),
            json!({"jobKey": "a", "target": "t", "runAt": "2027-03-13T09:00:00", "timezone": "Asia/Tokyo"}),
        ] {
            let made = definition(&body);
            let again = definition(&document(&made));
            assert_eq!(made.content_hash(), again.content_hash(), "{body}");
        }
        let mut document = document(&definition(&full()));
        assert_eq!(document["policies"], full()["policies"]);
        merge(&mut document, &json!({"policies": {"catchUpWindow": null}, "timezone": null, "labels": {"c": "d"}}));
        let merged = definition(&document);
        assert_eq!((merged.policies.catch_up_window, merged.labels.len()), (None, 2));
        assert_eq!(merged.spec.unwrap().zone().name(), "UTC");
    }

    #[test]
    fn one_kind_of_schedule_takes_the_place_of_the_other() {
        let mut body = document(&definition(&full()));
        // A one-time job cannot have calendars.
        merge(&mut body, &json!({"runAt": "2027-03-13T09:00:00Z", "policies": {"calendar": null}}));
        assert!(definition(&body).is_one_time());
        merge(&mut body, &json!({"cronExpression": "@daily"}));
        assert!(!definition(&body).is_one_time());
    }

    #[test]
    fn everything_is_told_at_once() {
        let body = json!({
            "cronExpression": "61 * * * *", "timezone": "../../etc/passwd", "labels": {"": "x"}, "runAt": "tomorrow",
            "startAt": "9999-01-01T00:00:00Z", "policies": {"timeout": "PT0S", "retry": {"max": "P9D"}}, "crn": 1,
        });
        let mut found = faults(&body);
        found.sort();
        let expected = [
            "/crn unknown_field",
            "/cronExpression out_of_range",
            "/jobKey required",
            "/labels invalid",
            "/policies/retry/max invalid",
            "/policies/timeout invalid",
            "/runAt invalid",
            "/startAt invalid",
            "/target required",
            "/timezone unknown_zone",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_job_does_not_depend_on_itself() {
        let mut body = full();
        body["policies"]["dependsOn"]["jobKey"] = json!("daily");
        assert_eq!(faults(&body), ["/policies/dependsOn/jobKey invalid"]);
    }

    #[test]
    fn value_that_is_not_an_object_has_one_fault() {
        for value in [json!([]), json!(null), json!("daily"), json!(7)] {
            assert_eq!(faults(&value), [" wrong_type"], "{value}");
        }
    }

    #[test]
    fn job_needs_exactly_one_kind_of_schedule() {
        let base = |more: &Value| {
            let mut body = json!({"jobKey": "a", "target": "t"});
            for (name, value) in more.as_object().unwrap() {
                body[name] = value.clone();
            }
            body
        };
        for (more, expected) in [
            (json!({}), vec!["/cronExpression required"]),
            (json!({"scheduleType": "one_time"}), vec!["/runAt required"]),
            (
                json!({"scheduleType": "one_time", "cronExpression": "@daily"}),
                vec!["/runAt required", "/cronExpression invalid"],
            ),
            (json!({"cronExpression": "@daily", "runAt": "2027-01-01T00:00:00Z"}), vec!["/runAt invalid"]),
            // 02:30 does not exist in New York on that day, 01:30 happens twice on the other.
            (json!({"runAt": "2027-03-14T02:30:00", "timezone": "America/New_York"}), vec!["/runAt invalid"]),
            (json!({"runAt": "2027-11-07T01:30:00", "timezone": "America/New_York"}), vec!["/runAt invalid"]),
            (json!({"cronExpression": "x".repeat(10_000)}), vec!["/cronExpression out_of_range"]),
        ] {
            assert_eq!(faults(&base(&more)), expected, "{more}");
        }
    }

    #[test]
    fn an_edit_of_something_else_leaves_the_timing_alone() {
        assert!(!changes_timing(&json!({"payload": 1, "policies": {"timeout": "1m"}})));
        for edit in [json!({"timezone": null}), json!({"policies": {"dst": {"gap": "skip"}}}), json!({"endAt": "x"})] {
            assert!(changes_timing(&edit), "{edit}");
        }
    }
}
