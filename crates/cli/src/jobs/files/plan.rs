//! The changes that make the jobs of a server match a file.

use std::collections::BTreeMap;

use everbell_core::{Definition, Spec};
use everbell_wire as wire;
use everbell_wire::job::{ChangedField, JobStatus, Source};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use super::state::PausedJob;
use everbell_client::WithJson;
use everbell_wire::job_body::{self as body, patch};

/// The change of one job.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::jobs) struct Step {
    pub(in crate::jobs) action: Action,
    pub(in crate::jobs) job_key: String,
    /// The current version, if there is one.
    pub(in crate::jobs) version: Option<u32>,
    pub(in crate::jobs) changes: Vec<ChangedField>,
    /// When it fires next, before and after the change.
    pub(in crate::jobs) next_run_at: Option<String>,
    pub(in crate::jobs) new_next_run_at: Option<String>,
    /// The owner, if that is not the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::jobs) owner: Option<String>,
    /// The program or server that declares it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::jobs) app: Option<String>,
    /// The pause that the file asks for, if the job is not paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::jobs) pause: Option<PausedJob>,
    /// The body of the request: a new job, or a patch.
    #[serde(skip)]
    pub(in crate::jobs) body: Value,
    #[serde(skip)]
    pub(in crate::jobs) revision: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::jobs) enum Action {
    Create,
    NewVersion,
    Unchanged,
    Retire,
    /// Another owner declares it.
    Conflict,
}

impl Action {
    /// Whether a definition changes.
    pub(super) fn is_change(self) -> bool {
        ![Action::Unchanged, Action::Conflict].contains(&self)
    }
}

/// Returns the changes, sorted by key. `existing` are the current jobs of the server; with `prune`, those that were created
/// through the API and are not wanted are retired.
pub(in crate::jobs) fn plan(
    wanted: &[Definition],
    existing: &[WithJson<wire::Job>],
    prune: bool,
    now: Timestamp,
) -> Vec<Step> {
    let known: BTreeMap<&str, &WithJson<wire::Job>> =
        existing.iter().map(|job| (job.document.job_key.as_str(), job)).collect();
    let mut steps: Vec<Step> = wanted.iter().map(|job| step(job, known.get(job.key.as_str()).copied(), now)).collect();
    if prune {
        let is_wanted = |job: &wire::Job| wanted.iter().any(|definition| definition.key.as_str() == job.job_key);
        let jobs = existing.iter().map(|job| &job.document);
        let ours = jobs.filter(|job| job.source == Source::Api && !is_wanted(job));
        steps.extend(ours.map(|job| Step { new_next_run_at: None, ..existing_step(job, Action::Retire) }));
    }
    steps.sort_by(|a, b| a.job_key.cmp(&b.job_key));
    steps
}

/// Adds the pauses of a file to its steps. A job that is paused already keeps its reason and its end.
pub(super) fn add_pauses(steps: &mut [Step], existing: &[WithJson<wire::Job>], states: &[PausedJob], now: Timestamp) {
    let is_paused = |key: &str| {
        let job = existing.iter().map(|job| &job.document).find(|job| job.job_key == key);
        job.is_some_and(|job| job.status == JobStatus::Paused)
    };
    for step in steps.iter_mut().filter(|step| ![Action::Retire, Action::Conflict].contains(&step.action)) {
        let state = states.iter().find(|state| state.job_key == step.job_key && !state.is_over(now));
        step.pause = state.filter(|state| !is_paused(&state.job_key)).cloned();
        if step.pause.is_some() {
            step.new_next_run_at = None;
        }
    }
}

fn step(wanted: &Definition, existing: Option<&WithJson<wire::Job>>, now: Timestamp) -> Step {
    let body = body::body(wanted);
    let next = |spec: &Spec| spec.next_after(now).map(|at| at.to_string());
    let new_next_run_at = wanted.spec.as_ref().ok().and_then(next);
    let Some(WithJson { document: job, json }) = existing else {
        return Step {
            action: Action::Create,
            job_key: wanted.key.to_string(),
            version: None,
            changes: Vec::new(),
            next_run_at: None,
            new_next_run_at,
            owner: None,
            app: None,
            pause: None,
            body,
            revision: None,
        };
    };
    // A job that cannot be read differs in everything.
    let current = body::read_definition(json, now)
        .map_or_else(|_| Value::Object(Map::new()), |definition| body::body(&definition));
    let patch = patch(&current, &body);
    let mut changes = Vec::new();
    compare("", &current, &body, &mut changes);
    let owner = Some(&job.source).filter(|source| **source != Source::Api).map(ToString::to_string);
    let app = job.declaration.as_ref().map(|declaration| declaration.app.clone());
    let action = match (&changes[..], &owner) {
        ([], _) => Action::Unchanged,
        (_, Some(_)) => Action::Conflict,
        (_, None) => Action::NewVersion,
    };
    let timed = everbell_wire::body::definition::changes_timing(&patch);
    let was = existing_step(job, action);
    // A paused job has no next run, and an edit does not resume it.
    let next_run_at = if timed && job.status != JobStatus::Paused { new_next_run_at } else { was.next_run_at.clone() };
    Step { changes, new_next_run_at: next_run_at, owner, app, body: patch, ..was }
}

/// A step without changes for an existing job.
fn existing_step(job: &wire::Job, action: Action) -> Step {
    Step {
        action,
        job_key: job.job_key.clone(),
        version: Some(job.version),
        changes: Vec::new(),
        next_run_at: job.next_run_at.map(|at| at.to_string()),
        new_next_run_at: None,
        owner: None,
        app: None,
        pause: None,
        body: Value::Null,
        revision: Some(job.revision),
    }
}

/// Lists the members that differ, by their paths.
fn compare(path: &str, from: &Value, to: &Value, changes: &mut Vec<ChangedField>) {
    let is_inside = |value: &Value| value.is_object() && path != "payload";
    if !is_inside(from) && !is_inside(to) {
        if from != to {
            changes.push(ChangedField { field: path.to_owned(), from: from.clone(), to: to.clone() });
        }
        return;
    }
    let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let (old, new) = (members(from), members(to));
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let value = |members: &Map<String, Value>| members.get(name).cloned().unwrap_or_default();
        compare(&below, &value(&old), &value(&new), changes);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patch_turns_one_body_into_the_other() {
        let from = json!({"a": 1, "labels": {"x": "1", "y": "2"}, "payload": {"k": null, "n": 1}, "gone": true});
        let to = json!({"a": 1, "labels": {"x": "1", "z": "3"}, "payload": {"n": 2}, "came": "here"});
        let expected = json!({"labels": {"y": null, "z": "3"}, "payload": {"n": 2}, "came": "here", "gone": null});
        assert_eq!(patch(&from, &to), expected);
        let mut changes = Vec::new();
        compare("", &from, &to, &mut changes);
        let fields: Vec<&str> = changes.iter().map(|change| change.field.as_str()).collect();
        assert_eq!(fields, ["came", "gone", "labels.y", "labels.z", "payload"]);
        assert_eq!(patch(&from, &from), json!({}));
    }
}
