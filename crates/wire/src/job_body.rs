//! [`JobBody`], and the bodies that would create jobs, so that jobs of any source can be compared.

use everbell_core::{Definition, Draft, Invalid, JobId, Made, Source};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::body::definition;
use crate::body::job::{self, JOB, JobForm};
use crate::form::Naming;

/// The body of a request that creates or changes a job. Its payload is sent as it was written, so no number loses a digit.
#[derive(Clone, Debug, Default, Serialize)]
pub struct JobBody {
    /// The members, named as in the API, except the payload.
    #[serde(flatten)]
    pub members: Map<String, Value>,
    /// The payload as it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Box<RawValue>>,
}

impl JobBody {
    /// A job that fires by a cron expression.
    pub fn recurring(job_key: &str, target: &str, cron_expression: &str) -> JobBody {
        let body = JobBody::default().with("jobKey", job_key).with("target", target);
        body.with("cronExpression", cron_expression)
    }

    /// A job that fires once.
    pub fn one_time(job_key: &str, target: &str, run_at: Timestamp) -> JobBody {
        JobBody::default().with("jobKey", job_key).with("target", target).with("runAt", run_at.to_string())
    }

    /// A job that starts when runs of another job succeed.
    pub fn following(job_key: &str, target: &str, parent: &str) -> JobBody {
        JobBody::default().with("jobKey", job_key).with("target", target).with("after", json!({ "job": parent }))
    }

    /// The key of the job, if it was set.
    pub fn job_key(&self) -> Option<&str> {
        self.text("jobKey")
    }

    /// The target, if it was set.
    pub fn target(&self) -> Option<&str> {
        self.text("target")
    }

    /// The cron expression as it was written, if it was set.
    pub fn cron_expression(&self) -> Option<&str> {
        self.text("cronExpression")
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.members.get(name)?.as_str()
    }

    /// Reads the job, as far as that is possible, and every fault.
    pub fn read(&self) -> JobForm {
        job::read(&Value::Object(self.members.clone()), self.payload.as_deref(), Naming::Camel)
    }

    /// Sets a member, named as in the API.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> JobBody {
        self.put(name, value);
        self
    }

    /// Sets a member, named as in the API.
    pub fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.members.insert(name.to_owned(), value.into());
    }

    /// Sets a member of `policies`, or of an object in it.
    pub fn put_policy(&mut self, path: &str, value: impl Into<Value>) {
        let mut object = self.members.entry("policies").or_insert_with(|| json!({}));
        let mut names = path.split('.').peekable();
        while let Some(name) = names.next() {
            if names.peek().is_none() {
                object[name] = value.into();
                return;
            }
            if !object[name].is_object() {
                object[name] = json!({});
            }
            object = &mut object[name];
        }
    }
}

impl From<Map<String, Value>> for JobBody {
    fn from(members: Map<String, Value>) -> JobBody {
        JobBody { members, payload: None }
    }
}

/// Reads the definition of a job from its document. The error says why it cannot be read.
pub fn read_definition(document: &Value, now: Timestamp) -> Result<Definition, String> {
    let own = JOB.iter().map(|field| field.name).filter(|name| !["payload", "scheduleType"].contains(name));
    let members = own.filter_map(|name| Some((name.to_owned(), document.get(name)?.clone())));
    let body = Value::Object(members.collect::<Map<_, _>>());
    let payload = document.get("payload").and_then(|payload| to_raw_value(payload).ok());
    let read = job::read(&body, payload.as_deref(), Naming::Camel);
    match read.faults.first() {
        Some(fault) => Err(format!("{}: {}", fault.pointer.trim_start_matches('/'), fault.detail)),
        None => declared(&read.draft, now),
    }
}

/// Checks a draft and returns its definition.
pub fn declared(draft: &Draft, now: Timestamp) -> Result<Definition, String> {
    let made = Made { id: JobId::new(now, [0; 10]), source: Source::Api, by: "", at: now };
    let first = |problems: Vec<Invalid>| problems.first().map(ToString::to_string).unwrap_or_default();
    draft.definition(&made).map_err(first)
}

/// Returns the body that would create a job, with its payload and without members that are `null`.
pub fn body(own: &Definition) -> Value {
    let mut body = definition::document(own);
    body["payload"] = serde_json::from_str(own.payload.as_str()).unwrap_or_default();
    without_nothing(&mut body);
    body
}

/// Returns the merge patch (RFC 7396) from one body to another. A payload is one value.
pub fn patch(from: &Value, to: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (from, to) else { return to.clone() };
    let mut patch = Map::new();
    for (name, value) in new {
        match old.get(name) {
            Some(old) if old == value => {}
            Some(old) if old.is_object() && value.is_object() && name != "payload" => {
                patch.insert(name.clone(), self::patch(old, value));
            }
            _ => drop(patch.insert(name.clone(), value.clone())),
        }
    }
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    Value::Object(patch)
}

/// Returns the shortest body that would create a job: members with default values are left out.
pub fn essential(own: &Definition, now: Timestamp) -> Result<Value, String> {
    const ALWAYS: [&str; 5] = ["jobKey", "target", "cronExpression", "runAt", "after"];
    let mut body = body(own);
    let plain = plain(&body, now)?;
    if let Some(policies) = body.get_mut("policies") {
        without_usual(policies, &plain["policies"]);
    }
    if let Value::Object(members) = &mut body {
        let empty = json!({});
        members.retain(|name, member| {
            let usual = if name == "policies" { Some(&empty) } else { plain.get(name) };
            ALWAYS.contains(&name.as_str()) || usual != Some(&*member)
        });
    }
    Ok(body)
}

/// The body of a job with the same key, target and time, and defaults for everything else.
fn plain(whole: &Value, now: Timestamp) -> Result<Value, String> {
    let mut bare = json!({ "jobKey": whole["jobKey"], "target": whole["target"] });
    for name in ["cronExpression", "runAt", "after"] {
        if let Some(value) = whole.get(name) {
            bare[name] = value.clone();
        }
    }
    let read = job::read(&bare, None, Naming::Camel);
    Ok(body(&declared(&read.draft, now)?))
}

/// Removes members with default values, at every depth.
fn without_usual(value: &mut Value, usual: &Value) {
    let Value::Object(members) = value else { return };
    members.retain(|name, member| {
        let usual = usual.get(name);
        if let Some(usual) = usual.filter(|usual| usual.is_object()) {
            without_usual(member, usual);
            return member.as_object().is_none_or(|left| !left.is_empty());
        }
        usual != Some(&*member)
    });
}

/// Removes members that are `null`, except in payloads, where `null` is a value.
fn without_nothing(body: &mut Value) {
    let Value::Object(members) = body else { return };
    for (_, member) in members.iter_mut().filter(|(name, _)| *name != "payload") {
        without_nothing(member);
    }
    members.retain(|name, member| name == "payload" || !member.is_null());
}
