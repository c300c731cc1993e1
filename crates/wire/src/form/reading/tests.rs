//! Values that fit their fields, and values that do not.

use serde_json::json;

use super::*;
use crate::form::{TEXT, optional, required};
use crate::problem::FaultCode;

const INNER: &[Field] = &[
    optional("maxAttempts", Kind::Integer { min: 1, max: 100 }, "how often"),
    optional("initial", Kind::Span, "the first wait"),
];
const FIELDS: &[Field] = &[
    required("jobKey", TEXT, "its name"),
    optional("status", Kind::Word(&["active", "paused"]), "where it stands"),
    optional("force", Kind::Flag, "whatever else is active"),
    optional("labels", Kind::Texts, "for filters"),
    optional("retry", Kind::Object(INNER), "how often"),
    optional("ids", Kind::List { of: &TEXT, max: 2 }, "which"),
    optional("runAt", Kind::Time, "when"),
    optional("payload", Kind::Json, "what"),
    optional("headers", Kind::Map(&Kind::Secret), "with which"),
];

fn faults(value: &Value, naming: Naming) -> Vec<String> {
    let faults = Form::read(value, FIELDS, naming).faults();
    faults.into_iter().map(|fault| format!("{} {}: {}", fault.pointer, fault.code, fault.detail)).collect()
}

#[test]
fn everything_that_fits_is_read() {
    let value = json!({
        "jobKey": "daily", "status": "paused", "force": true, "labels": {"team": "ops"}, "ids": ["a", "b"],
        "retry": {"maxAttempts": 3, "initial": "90s"}, "runAt": null, "payload": [1],
    });
    let form = Form::read(&value, FIELDS, Naming::Camel);
    assert_eq!((form.text("jobKey"), form.text("status"), form.flag("force")), (Some("daily"), Some("paused"), true));
    assert_eq!((form.count("retry.maxAttempts"), form.span("retry.initial")), (Some(3), Some(Duration::from_secs(90))));
    assert_eq!((form.list("ids"), form.has("runAt"), form.has("payload")), (vec!["a", "b"], false, true));
    assert_eq!(form.texts("labels").collect::<Vec<_>>(), [("team", "ops")]);
    assert_eq!(form.faults(), []);
}

#[test]
fn everything_that_does_not_fit_is_told_at_once() {
    let value = json!({
        "status": "lost", "force": "yes", "labels": {"a/b": 1}, "ids": ["a", 2, "c"], "stauts": 1,
        "retry": {"maxAttempts": 1.5, "initial": "soon", "max": 1}, "runAt": 12,
    });
    let expected = [
        "/force wrong_type: must be true or false, not a text",
        "/ids out_of_range: must be at most 2, not 3",
        "/ids/1 wrong_type: must be a text, not a number",
        "/labels/a~1b wrong_type: must be a text, not a number",
        "/retry/initial invalid: `soon` is not a duration; write it as `90s`, `15m`, `1h 30m`, `7d` or `PT15M`",
        "/retry/max unknown_field: is not known here; did you mean `maxAttempts`?",
        "/retry/maxAttempts out_of_range: must be a whole number from 1 to 100",
        "/runAt wrong_type: must be a time as text, such as \"2027-03-13T09:00:00Z\", not a number",
        "/status invalid: must be one of active, paused",
        "/stauts unknown_field: is not known here; did you mean `status`?",
        "/jobKey required: is required: its name",
    ];
    assert_eq!(faults(&value, Naming::Camel), expected);
    let far = faults(&json!({"jobKey": "a", "retry": {"foo": 1}}), Naming::Camel);
    assert_eq!(far, ["/retry/foo unknown_field: is not known here; known: maxAttempts, initial"]);
    assert_eq!(faults(&json!([1]), Naming::Camel), [" wrong_type: must be an object, not a list"]);
    assert_eq!(faults(&json!({"jobKey": "a\u{0}b"}), Naming::Camel), ["/jobKey invalid: must not contain NUL"]);
    assert_eq!(faults(&json!({"jobKey": null}), Naming::Camel), ["/jobKey wrong_type: must be a text, not null"]);
}

#[test]
fn configuration_files_spell_names_with_underscores() {
    let value = json!({"job_key": "daily", "retry": {"max_attempts": 2}});
    let form = Form::read(&value, FIELDS, Naming::Snake);
    assert_eq!((form.text("jobKey"), form.integer("retry.maxAttempts")), (Some("daily"), Some(2)));
    assert_eq!(faults(&json!({"jobKey": "daily"}), Naming::Snake).len(), 2);
}

#[test]
fn secret_is_a_text_or_a_source_and_never_repeated() {
    let headers = json!({
        "a": "hunter2", "b": {"env": "B"}, "c": {"file": "/c"}, "d": 7, "e": {"env": "E", "file": "/e"},
        "f": {"env": ""}, "g": {}, "h": {"var": "H"}, "i": "hunter2\u{0}",
    });
    let found = faults(&json!({"job_key": "daily", "headers": headers}), Naming::Snake);
    let forms = "must be a text, `{ env = \"NAME\" }` or `{ file = \"PATH\" }`";
    let expected = ["d wrong_type", "e invalid", "f invalid", "g invalid", "h invalid"];
    let mut expected: Vec<_> = expected.iter().map(|at| format!("/headers/{at}: {forms}")).collect();
    expected.push("/headers/i invalid: must not contain NUL".to_owned());
    assert_eq!(found, expected);
}

#[test]
fn a_configuration_file_has_tables() {
    let value = json!({"job_key": "daily", "retry": 1, "payload": {}, "status": {}, "headers": []});
    let expected = [
        "/headers wrong_type: must be a table, not a list",
        "/retry wrong_type: must be a table, not a number",
        "/status wrong_type: must be a text, not a table",
    ];
    assert_eq!(faults(&value, Naming::Snake), expected);
}

#[test]
fn faults_of_core_point_at_their_member() {
    let value = json!({"job_key": "daily"});
    let mut form = Form::read(&value, FIELDS, Naming::Snake);
    form.refuse(&Invalid::new("retry.maxAttempts", "must be odd"));
    form.refuse(&Invalid::new("retry.maxAttempts", "must be even"));
    assert_eq!(form.faults(), [Fault::new("/retry/max_attempts", FaultCode::Invalid, "must be odd")]);
}
