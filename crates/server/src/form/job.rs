//! A job as the API and the configuration file write it down.

use everbell::{Backoff, CatchUp, DstFold, DstGap, OnLeaseLoss, Overlap, Schedule, Scope};
use everbell_core::cron::{Expression, ParseError};
use everbell_core::{Invalid, PolicyValues, Zone};
use jiff::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Fault, Field, Form, Kind, Naming, TEXT, optional, required};
use crate::time_input::{Refusal, TimeReader};

const KEY: Kind = Kind::Text { min: 1, max: 200 };
/// Longer ones are no expressions, and are refused before anybody looks at them.
pub(crate) const EXPRESSION: Kind = Kind::Text { min: 1, max: 1_000 };
pub(crate) const ZONE: Kind = Kind::Text { min: 1, max: 100 };

const RETRY: &[Field] = &[
    optional("maxAttempts", Kind::Integer { min: 1, max: 100 }, "How often a run is tried; 1 if absent."),
    optional(
        "initial",
        Kind::Span,
        "The wait before the second attempt, then twice as long each time; PT10S if absent.",
    ),
    optional("max", Kind::Span, "The longest wait; PT1H if absent."),
];

const DEPENDS_ON: &[Field] =
    &[required("jobKey", KEY, "The job that must have succeeded."), required("within", Kind::Span, "How recently.")];

/// What happens when clocks change.
pub(crate) const DST: &[Field] = &[
    optional(
        "gap",
        Kind::Word(&["shift", "skip"]),
        "What happens to local times that do not exist when clocks go forward.",
    ),
    optional(
        "fold",
        Kind::Word(&["first", "last", "both"]),
        "Which of two equal local times fires when clocks go back.",
    ),
];

/// What a job wants when slots are late, runs overlap, handlers fail.
const POLICIES: &[Field] = &[
    optional(
        "overlap",
        Kind::Word(&["skip", "queue", "replace", "allow"]),
        "What happens to a slot while an earlier run is active.",
    ),
    optional(
        "maxConcurrentRuns",
        Kind::Integer { min: 1, max: 1_000 },
        "How many runs may be active before `overlap` is asked.",
    ),
    optional(
        "catchUp",
        Kind::Word(&["once", "none", "all"]),
        "What happens to slots that were missed because nothing was running.",
    ),
    optional("catchUpLimit", Kind::Integer { min: 1, max: 1_000 }, "How many missed slots `all` runs at the most."),
    optional("catchUpWindow", Kind::Span, "Slots older than this are not caught up."),
    optional("grace", Kind::Span, "A slot younger than this is on time."),
    optional("timeout", Kind::Span, "A run that takes longer is stopped."),
    optional("jitter", Kind::Span, "Each slot is delayed by a share of this."),
    optional("retry", Kind::Object(RETRY), "How often a run is tried, and the waits between."),
    optional(
        "onLeaseLoss",
        Kind::Word(&["stop", "continue"]),
        "What happens to a run whose instance cannot reach the database for so long that others may start the next run: stop it before, or let both run; absent means stop, or continue if `overlap` is allow.",
    ),
    optional("pauseAfterFailures", Kind::Integer { min: 1, max: 1_000 }, "So many failures in a row pause the job."),
    optional("dependsOn", Kind::Object(DEPENDS_ON), "Another job that must have succeeded, else the slot is skipped."),
    optional("dst", Kind::Object(DST), "What happens when clocks change."),
];

macro_rules! with_job_fields {
    ($($own:expr),* ; $need:ident) => {
        &[
            $($own,)*
            $need("target", TEXT, "The label of what to do, one of the targets that are served."),
            optional("scheduleType", Kind::Word(&["recurring", "one_time"]), "Whether it fires again and again; told by the presence of `runAt` if absent."),
            optional("cronExpression", EXPRESSION, "When it fires: five fields, six with leading seconds, a macro such as `@daily`, or `@every 90s`."),
            optional("runAt", Kind::Time, "When it fires once; a time without an offset is read in `timezone`."),
            optional("timezone", ZONE, "The IANA time zone in which the expression is read; UTC if absent."),
            optional("scope", Kind::Word(&["global", "per_org"]), "Whether it fires once for all, or for each org at its own local time; global if absent."),
            optional("payload", Kind::Json, "What the target gets; {} if absent."),
            optional("startAt", Kind::Time, "No slot before this."),
            optional("endAt", Kind::Time, "No slot after this."),
            optional("policies", Kind::Object(POLICIES), "What happens when slots are late, runs overlap, handlers fail."),
            optional("description", Kind::Text { min: 0, max: 10_000 }, "For people."),
            optional("labels", Kind::Texts, "For filters."),
        ]
    };
}

/// A whole job.
pub(crate) const JOB: &[Field] =
    with_job_fields!(required("jobKey", KEY, "The name that all versions share."); required);

/// What the next version does differently: absent keeps, `null` clears.
pub(crate) const EDIT: &[Field] = with_job_fields!(
    optional("reason", Kind::Text { min: 3, max: 500 }, "Why, for the audit trail."),
    optional("activate", Kind::Flag, "The new version is active, also if the job is paused.");
    optional
);

/// A job, as far as it could be read, and what is wrong with it.
#[derive(Debug)]
pub(crate) struct JobForm {
    pub(crate) schedule: Schedule,
    pub(crate) faults: Vec<Fault>,
}

/// Reads a job. `payload` is its JSON as it was written, so that no number loses a digit.
pub(crate) fn read(value: &Value, payload: Option<&RawValue>, naming: Naming) -> JobForm {
    let mut form = Form::read(value, JOB, naming);
    if !value.is_object() {
        // It says nothing about a job, so nothing more is wrong with that.
        return JobForm { schedule: Schedule::cron("any", "@daily").target("any"), faults: form.faults() };
    }
    let zone = form.text("timezone").and_then(|name| Zone::get(name).ok()).unwrap_or_else(Zone::utc);
    let schedule = timed(&mut form, &zone);
    let schedule = with_policies(&form, schedule);
    let mut schedule = with_texts(&form, schedule);
    if let Some(at) = time(&mut form, "startAt", &zone) {
        schedule = schedule.start_at(at);
    }
    if let Some(at) = time(&mut form, "endAt", &zone) {
        schedule = schedule.end_at(at);
    }
    if let Some(payload) = payload {
        schedule = schedule.payload(payload);
    }
    if form.has("jobKey") && form.text("jobKey") == form.text("policies.dependsOn.jobKey") {
        form.fault("policies.dependsOn.jobKey", "invalid", "is the job itself, which would wait for itself for ever");
    }
    for invalid in schedule.check().err().unwrap_or_default() {
        refuse(&mut form, &invalid);
    }
    JobForm { schedule, faults: form.faults() }
}

/// When it fires. Something is always made of it, so that everything else can be checked too.
fn timed(form: &mut Form<'_>, zone: &Zone) -> Schedule {
    let key = form.text("jobKey").unwrap_or("any").to_owned();
    let run_at = time(form, "runAt", zone);
    let expression = form.text("cronExpression").map(str::to_owned);
    let once = match form.text("scheduleType") {
        Some(word) => word == "one_time",
        None => form.has("runAt") && !form.has("cronExpression"),
    };
    let (wanted, other) = if once { ("runAt", "cronExpression") } else { ("cronExpression", "runAt") };
    let kind = if once { "one-time" } else { "recurring" };
    if !form.has(wanted) {
        form.fault(wanted, "required", format!("is required for a {kind} job"));
    }
    if form.has(other) {
        form.fault(other, "invalid", format!("a {kind} job has `{}` instead", form.spell(wanted)));
    }
    if once {
        // A year that every spec can hold, so that nothing but the missing time is told.
        return Schedule::once(key, run_at.unwrap_or(Timestamp::UNIX_EPOCH));
    }
    Schedule::cron(key, expression.unwrap_or_else(|| "@daily".to_owned()))
}

/// A time, which is noted if it cannot be read.
pub(crate) fn time(form: &mut Form<'_>, path: &str, zone: &Zone) -> Option<Timestamp> {
    let text = form.text(path)?.to_owned();
    let read = TimeReader { now: Timestamp::UNIX_EPOCH, zone }.absolute(&text);
    let told = |Refusal { reason, hint }| match hint {
        Some(hint) => format!("{reason}; {hint}"),
        None => reason,
    };
    read.map_err(|refusal| form.fault(path, "invalid", told(refusal))).ok()
}

fn with_texts(form: &Form<'_>, mut schedule: Schedule) -> Schedule {
    // A target that is missing is told by the form.
    schedule = schedule.target(form.text("target").unwrap_or("any"));
    if let Some(zone) = form.text("timezone") {
        schedule = schedule.tz(zone);
    }
    schedule = schedule.scope(form.word("scope", Scope::from_word).unwrap_or_default());
    if let Some(text) = form.text("description") {
        schedule = schedule.description(text);
    }
    form.texts("labels").fold(schedule, |schedule, (name, value)| schedule.label(name, value))
}

fn with_policies(form: &Form<'_>, mut schedule: Schedule) -> Schedule {
    let defaults = PolicyValues::default();
    let count = |name: &str, default: u32| form.count(&format!("policies.{name}")).unwrap_or(default);
    let span = |name: &str| form.span(&format!("policies.{name}"));
    schedule = schedule
        .overlap(form.word("policies.overlap", Overlap::from_word).unwrap_or_default())
        .max_concurrent_runs(count("maxConcurrentRuns", defaults.max_concurrent_runs))
        .catch_up(form.word("policies.catchUp", CatchUp::from_word).unwrap_or_default())
        .catch_up_limit(count("catchUpLimit", defaults.catch_up_limit))
        .grace(span("grace").unwrap_or(defaults.grace))
        .timeout(span("timeout").unwrap_or(defaults.timeout))
        .jitter(span("jitter").unwrap_or(defaults.jitter))
        .dst_gap(form.word("policies.dst.gap", DstGap::from_word).unwrap_or_default())
        .dst_fold(form.word("policies.dst.fold", DstFold::from_word).unwrap_or_default());
    let waits = Backoff {
        initial: span("retry.initial").unwrap_or(defaults.backoff.initial),
        max: span("retry.max").unwrap_or(defaults.backoff.max),
    };
    schedule = schedule.retry(count("retry.maxAttempts", defaults.max_attempts), waits);
    if let Some(window) = span("catchUpWindow") {
        schedule = schedule.catch_up_window(window);
    }
    if let Some(choice) = form.word("policies.onLeaseLoss", OnLeaseLoss::from_word) {
        schedule = schedule.on_lease_loss(choice);
    }
    if let Some(failures) = form.count("policies.pauseAfterFailures") {
        schedule = schedule.pause_after_failures(failures);
    }
    if let (Some(key), Some(within)) = (form.text("policies.dependsOn.jobKey"), span("dependsOn.within")) {
        schedule = schedule.depends_on(key, within);
    }
    schedule
}

/// What core refused, with what the API says more about expressions and zones.
fn refuse(form: &mut Form<'_>, invalid: &Invalid) {
    match (invalid.field, form.text("cronExpression").map(Expression::parse)) {
        ("cronExpression", Some(Err(error))) => {
            form.fault("cronExpression", error.code(), expression_fault(&error));
        }
        ("timezone", _) => form.fault("timezone", "unknown_zone", invalid.reason.clone()),
        _ => form.refuse(invalid),
    }
}

/// What is wrong with an expression, and what is allowed.
pub(crate) fn expression_fault(error: &ParseError) -> String {
    let told = format!("{error}; allowed: {}", error.allowed());
    error.hint().map_or_else(|| told.clone(), |hint| format!("{told}; {hint}"))
}

#[cfg(test)]
mod tests {
    use everbell::{JobId, Made, Source};
    use everbell_core::Definition;
    use serde_json::json;

    use super::super::definition::{changes_timing, document, merge};
    use super::*;

    fn told(value: &Value) -> Vec<String> {
        let faults = read(value, None, Naming::Camel).faults;
        faults.into_iter().map(|fault| format!("{} {}", fault.pointer, fault.code)).collect()
    }

    fn definition(value: &Value) -> Definition {
        let read = read(value, None, Naming::Camel);
        assert_eq!(read.faults, [], "{value}");
        let at = "2026-11-15T12:00:00Z".parse().unwrap();
        read.schedule.definition(&Made { id: JobId::new(at, [7; 10]), source: Source::Api, by: "ana", at }).unwrap()
    }

    fn full() -> Value {
        json!({
            "jobKey": "daily", "target": "brief", "cronExpression": "0 8 * * mon-fri", "timezone": "Europe/Paris",
            "startAt": "2027-01-01T00:00:00Z", "endAt": "2028-01-01T00:00:00Z", "description": "d", "labels": {"a": "b"},
            "policies": {
                "overlap": "queue", "maxConcurrentRuns": 2, "catchUp": "all", "catchUpLimit": 5, "catchUpWindow": "PT2H",
                "grace": "PT30S", "timeout": "PT1H", "jitter": "PT5S", "onLeaseLoss": "continue", "pauseAfterFailures": 3,
                "retry": {"maxAttempts": 4, "initial": "PT1S", "max": "PT1M"},
                "dependsOn": {"jobKey": "etl", "within": "PT24H"}, "dst": {"gap": "skip", "fold": "both"},
            },
        })
    }

    #[test]
    fn a_definition_is_what_its_document_says_and_back() {
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
        merge(&mut body, &json!({"runAt": "2027-03-13T09:00:00Z"}));
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
        let mut told = told(&body);
        told.sort();
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
        assert_eq!(told, expected);
    }

    #[test]
    fn a_job_does_not_depend_on_itself() {
        let mut body = full();
        body["policies"]["dependsOn"]["jobKey"] = json!("daily");
        assert_eq!(told(&body), ["/policies/dependsOn/jobKey invalid"]);
    }

    #[test]
    fn what_is_no_object_has_one_fault() {
        for value in [json!([]), json!(null), json!("daily"), json!(7)] {
            assert_eq!(told(&value), [" wrong_type"], "{value}");
        }
    }

    #[test]
    fn a_job_fires_once_or_again_and_again() {
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
            assert_eq!(told(&base(&more)), expected, "{more}");
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
