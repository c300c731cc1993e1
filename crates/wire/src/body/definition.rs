//! The definition of a job as a body, and merge patches of it.

use everbell_core::after::{After, ChainOn};
use everbell_core::{Definition, When};
use serde_json::{Map, Value, json};

use crate::Policies;
use crate::form::iso;
use crate::job_schedule::Schedule;

/// The fields of the schedule.
const TIMING: [&str; 10] = [
    "scheduleType",
    "cronExpression",
    "runAt",
    "after",
    "afterGroup",
    "afterWithin",
    "timezone",
    "startAt",
    "endAt",
    "policies.dst",
];

/// Returns the body that would create this definition, without its payload.
pub fn document(job: &Definition) -> Value {
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    put("jobKey", json!(job.key.as_str()));
    put("target", json!(job.target.as_str()));
    match &job.spec {
        Ok(spec) => {
            match spec.when() {
                When::Cron(expression) | When::Every { expression, .. } => {
                    put("cronExpression", json!(expression.as_str()));
                }
                When::Once(at) => put("runAt", json!(at.to_string())),
                When::After(after) => put("after", after_document(after)),
                When::AfterAll(fan_in) => {
                    put("after", fan_in.parents.iter().map(after_document).collect());
                    put("afterGroup", json!(fan_in.group.as_str()));
                    put("afterWithin", json!(iso(fan_in.within)));
                }
            }
            put("timezone", json!(spec.zone().name()));
        }
        Err(broken) => {
            match broken.run_at.filter(|_| broken.expression.is_none()) {
                Some(at) => put("runAt", json!(at.to_string())),
                None => put("cronExpression", json!(broken.expression)),
            }
            put("timezone", json!(broken.timezone));
        }
    }
    let (start_at, end_at) = job.bounds();
    put("startAt", json!(start_at.map(|at| at.to_string())));
    put("endAt", json!(end_at.map(|at| at.to_string())));
    put("scope", json!(job.scope.as_str()));
    put("policies", json!(Policies::from(job)));
    put("description", json!(job.description));
    put("labels", json!(job.labels));
    Value::Object(body)
}

/// Returns the body that would create this definition, without its payload and with the type of its schedule.
pub fn typed_document(job: &Definition) -> Value {
    let mut body = document(job);
    body["scheduleType"] = json!(Schedule::from(job).kind);
    body
}

/// Returns the rule by which a job starts after another one; members with their usual values are left out.
fn after_document(after: &After) -> Value {
    let mut members = json!({ "job": after.job_key.as_str() });
    if after.on != ChainOn::default() {
        members["on"] = json!(after.on.as_str());
    }
    if after.manual {
        members["manual"] = json!(true);
    }
    members
}

/// Whether an edit changes the schedule. If not, a fixed rate keeps its anchor.
pub fn changes_timing(edit: &Value) -> bool {
    TIMING.iter().any(|path| {
        let mut names = path.split('.');
        names.try_fold(edit, |value, name| value.get(name)).is_some()
    })
}

/// The members of which a job has one: what starts it.
const KINDS: [&str; 3] = ["cronExpression", "runAt", "after"];

/// Applies a merge patch (RFC 7396): `null` removes a member, an absent one stays.
pub fn merge(document: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *document = patch.clone();
        return;
    };
    if !document.is_object() {
        *document = Value::Object(Map::new());
    }
    let Value::Object(members) = document else { return };
    for (name, value) in patch {
        if value.is_null() {
            members.remove(name);
        } else {
            merge(members.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
    // One kind of schedule replaces the other.
    for added in KINDS {
        for replaced in KINDS.into_iter().filter(|replaced| *replaced != added) {
            if patch.get(added).is_some_and(|value| !value.is_null()) && !patch.contains_key(replaced) {
                members.remove(replaced);
            }
        }
    }
    // They belong to a list of jobs.
    if !members.get("after").is_some_and(Value::is_array) {
        for belongs in ["afterGroup", "afterWithin"] {
            if !patch.contains_key(belongs) {
                members.remove(belongs);
            }
        }
    }
}
