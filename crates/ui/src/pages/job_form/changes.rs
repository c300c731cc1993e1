//! [`Changes`]: what a form would change about a job, as a patch for the API and for people.

use everbell_core::Definition;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::request_body::RequestBody;
use everbell_wire::JobBody;
use everbell_wire::body::definition::typed_document;
use everbell_wire::job_body::declared;

/// The changes of a form.
pub(crate) struct Changes {
    /// Only what differs: `null` clears.
    pub(crate) patch: JobBody,
    pub(crate) shown: Vec<Change>,
}

/// A member that would be another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) field: String,
    /// Nothing if it says nothing.
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
}

impl Changes {
    pub(crate) fn between(own: &Definition, wanted: &RequestBody, now: Timestamp) -> Changes {
        let before = typed_document(own);
        let after = spelled(wanted, now).unwrap_or_else(|| Value::Object(wanted.body.members.clone()));
        let (mut patch, mut shown) = (JobBody::default(), Vec::new());
        patch.members = differing("", &before, &after, &mut shown);
        payload(own, wanted, &mut patch, &mut shown);
        Changes { patch, shown }
    }
}

/// The members as the API spells them, so that `90s` and `PT1M30S` are the same; nothing if they cannot be read.
fn spelled(wanted: &RequestBody, now: Timestamp) -> Option<Value> {
    let read = wanted.body.read();
    declared(&read.draft, now).ok().filter(|_| read.faults.is_empty()).map(|own| typed_document(&own))
}

fn payload(own: &Definition, wanted: &RequestBody, patch: &mut JobBody, shown: &mut Vec<Change>) {
    // A payload that is not JSON is reported at its field.
    if wanted.faults.iter().any(|fault| fault.pointer == "/payload") {
        return;
    }
    let (from, to) = (own.payload.as_str(), wanted.body.payload.as_ref().map_or("{}", |payload| payload.get()));
    if from == to {
        return;
    }
    patch.payload.clone_from(&wanted.body.payload);
    if patch.payload.is_none() {
        patch.put("payload", Value::Null);
    }
    shown.push(Change { field: "payload".to_owned(), from: Some(from.to_owned()), to: Some(to.to_owned()) });
}

/// The members that differ, at every depth. What says nothing is the same as what is absent.
fn differing(at: &str, before: &Value, after: &Value, shown: &mut Vec<Change>) -> Map<String, Value> {
    let names = |value: &Value| value.as_object().into_iter().flat_map(Map::keys).cloned().collect::<Vec<_>>();
    let mut all = names(before);
    all.extend(names(after));
    all.sort_unstable();
    all.dedup();
    let mut patch = Map::new();
    for name in all {
        let (from, to) = (non_empty(before.get(&name)), non_empty(after.get(&name)));
        if from == to {
            continue;
        }
        let field = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        if from.or(to).is_some_and(Value::is_object) {
            let nothing = Value::Null;
            let inner = differing(&field, from.unwrap_or(&nothing), to.unwrap_or(&nothing), shown);
            patch.insert(name, to.map_or(Value::Null, |_| Value::Object(inner)));
            continue;
        }
        shown.push(Change { field, from: from.map(plain), to: to.map(plain) });
        patch.insert(name, to.cloned().unwrap_or(Value::Null));
    }
    patch
}

fn non_empty(value: Option<&Value>) -> Option<&Value> {
    let is_empty = |value: &Value| value.is_null() || *value == json!("") || *value == json!({}) || *value == json!([]);
    value.filter(|value| !is_empty(value))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use everbell_wire::body::job;
    use everbell_wire::form::Naming;
    use serde_json::value::RawValue;

    use super::super::draft::Draft;
    use super::*;

    fn now() -> Timestamp {
        "2026-11-15T12:00:00Z".parse().unwrap()
    }

    fn own() -> Definition {
        let body = json!({
            "jobKey": "daily", "target": "brief", "cronExpression": "0 8 * * 1-5", "timezone": "Europe/Paris",
            "startAt": "2027-01-01T00:00:00Z", "description": "d", "labels": {"a": "b"},
            "policies": {
                "overlap": "queue", "timeout": "PT1H", "retry": {"maxAttempts": 4, "initial": "PT1M30S"},
                "dependsOn": {"jobKey": "etl", "within": "PT24H"},
            },
        });
        let payload = RawValue::from_string("{\"n\": 1.10}".to_owned()).unwrap();
        let read = job::read(&body, Some(&payload), Naming::Camel);
        assert_eq!(read.faults, []);
        declared(&read.draft, now()).unwrap()
    }

    fn changed(edits: &[(&str, &str)]) -> (String, Vec<String>) {
        changed_from(&own(), edits)
    }

    fn changed_from(own: &Definition, edits: &[(&str, &str)]) -> (String, Vec<String>) {
        let mut draft = Draft::from_definition(own, now());
        for (name, value) in edits {
            draft.set(name, value);
        }
        let changes = Changes::between(own, &RequestBody::new(&draft), now());
        let none = || "-".to_owned();
        let shown = |change: &Change| {
            let (from, to) = (change.from.clone().unwrap_or_else(none), change.to.clone().unwrap_or_else(none));
            format!("{}: {from} -> {to}", change.field)
        };
        (serde_json::to_string(&changes.patch).unwrap(), changes.shown.iter().map(shown).collect())
    }

    #[test]
    fn a_form_that_nobody_touched_changes_nothing() {
        assert_eq!(changed(&[]), ("{}".to_owned(), Vec::new()));
        assert_eq!(changed(&[("policies/retry/initial", "PT90S"), ("policies/timeout", "60m")]).0, "{}");
        let body = JobBody::following("report", "brief", "load");
        let chained = declared(&body.read().draft, now()).unwrap();
        assert_eq!(changed_from(&chained, &[]), ("{}".to_owned(), Vec::new()));
    }

    #[test]
    fn only_what_differs_is_sent() {
        let (patch, shown) = changed(&[("cronExpression", "30 7 * * 1-5"), ("policies/timeout", "5m")]);
        assert_eq!(patch, r#"{"cronExpression":"30 7 * * 1-5","policies":{"timeout":"PT5M"}}"#);
        assert_eq!(shown, ["cronExpression: 0 8 * * 1-5 -> 30 7 * * 1-5", "policies.timeout: PT1H -> PT5M"]);
    }

    #[test]
    fn what_is_emptied_is_cleared() {
        let (patch, _) = changed(&[("description", ""), ("labels", "c=d"), ("startAt", ""), ("payload", "")]);
        assert_eq!(patch, r#"{"description":null,"labels":{"a":null,"c":"d"},"payload":null,"startAt":null}"#);
        let (patch, _) = changed(&[("policies/dependsOn/jobKey", ""), ("policies/dependsOn/within", "")]);
        assert_eq!(patch, r#"{"policies":{"dependsOn":null}}"#);
    }

    #[test]
    fn one_kind_of_schedule_takes_the_place_of_the_other() {
        let (patch, _) = changed(&[("scheduleType", "one_time"), ("runAt", "2027-03-13T09:00")]);
        assert_eq!(patch, r#"{"cronExpression":null,"runAt":"2027-03-13T08:00:00Z","scheduleType":"one_time"}"#);
    }

    #[test]
    fn a_payload_keeps_its_digits() {
        let (patch, shown) = changed(&[("payload", "{\"n\": 1.100}")]);
        assert_eq!(patch, r#"{"payload":{"n": 1.100}}"#);
        assert_eq!(shown.len(), 1);
    }

    #[test]
    fn what_cannot_be_read_is_compared_as_it_is_written() {
        let (_, shown) = changed(&[("cronExpression", "61 * * * *")]);
        assert!(shown.contains(&"cronExpression: 0 8 * * 1-5 -> 61 * * * *".to_owned()), "{shown:?}");
    }
}
