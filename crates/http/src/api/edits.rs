//! New versions of jobs, and differences between versions.

use axum::http::StatusCode;
use everbell::{JobRow, Jobs, StoreError};
use everbell_core::store::{Changed, JobRef};
use everbell_core::{Definition, Draft, JobId};
use everbell_wire as wire;
use everbell_wire::FaultCode;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::jobs::{check_target, documented, etag, job_response, key_of};
use super::org_updates::WHY;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResponse, refuse};
use everbell_wire::body::definition;
use everbell_wire::body::job::{self, EDIT, JobForm};
use everbell_wire::form::{Fault, Field, Form, Kind as FieldKind, Naming, required};

const VERSION: FieldKind = FieldKind::Integer { min: 1, max: 4_294_967_295 };

pub(crate) const DIFF: &[Field] =
    &[required("from", VERSION, "The version to compare with."), required("to", VERSION, "The version to compare.")];

/// How often an edit is retried after a conflict.
const MAX_EDIT_ATTEMPTS: u32 = 5;

/// A job before and after an edit.
struct Edited {
    before: JobRow,
    changed: Changed,
}

/// Creates the next version, even if nothing differs.
pub async fn new_version(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let Edited { before, changed } = edit(&request).await?;
    let row = changed.successor.as_ref().unwrap_or(&changed.job);
    let mut superseded = wire::Superseded::from(&changed.job);
    superseded.next_run_at = before.timer.as_ref().and_then(|timer| timer.next_run_at);
    let document =
        wire::NewVersion { job: documented(&request, row).await, superseded, changes: changes(&before, row) };
    let location = format!("{}/jobs/{}", request.mount, row.job.definition.id);
    Ok(ApiResponse::json(StatusCode::CREATED, &document)?.header("location", location).header("etag", etag(row)))
}

/// Applies a merge patch. Creates the next version if anything differs.
pub async fn patch(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let before = request.jobs().get(request.job()?).await?;
    let (key, revision) = (&before.job.definition.key, before.job.state.revision);
    StoreError::expect_revision("job", key, request.if_match, Some(revision))?;
    let wanted = merged(&request, &request.body, &before).await?;
    if wanted.faults.is_empty() && !differs(&request, &before, &wanted)? {
        return job_response(&request, StatusCode::OK, &before).await;
    }
    let Edited { changed, .. } = edit(&request).await?;
    let row = changed.successor.as_ref().unwrap_or(&changed.job);
    Ok(ApiResponse::ok(&documented(&request, row).await)?.header("etag", etag(row)))
}

/// Goes back to the declaration of a job that was edited.
pub async fn restore_declaration(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let jobs = request.jobs_because(request.body(WHY).text("reason"));
    let changed = jobs.restore_declaration_if(&request.job()?, request.if_match).await?;
    let row = changed.successor.as_ref().unwrap_or(&changed.job);
    Ok(ApiResponse::ok(&documented(&request, row).await)?.header("etag", etag(row)))
}

/// Applies the body to the job of the request.
async fn edit(request: &ApiRequest) -> Result<Edited, Problem> {
    let form = request.body(EDIT);
    let jobs = request.jobs_because(form.text("reason"));
    apply(request, &jobs, &request.job()?, &request.body).await
}

/// Returns what a merge patch would change about a job: nothing if it is so already.
pub(super) async fn planned(
    request: &ApiRequest,
    before: &JobRow,
    patch: &Value,
) -> Result<Vec<wire::ChangedField>, Problem> {
    let wanted = merged(request, patch, before).await?;
    let JobForm { draft, faults } = wanted;
    refuse(faults)?;
    Ok(changed_fields(&before.job.definition, &after(before, &draft)?))
}

/// Applies a merge patch to one of many jobs.
pub(super) async fn apply_to(request: &ApiRequest, jobs: &Jobs, job: JobId, patch: &Value) -> Result<(), Problem> {
    apply(request, jobs, &JobRef::Id(job), patch).await.map(drop)
}

/// Reads the job, applies a merge patch and commits with the revision that was read. Retries after a conflict.
async fn apply(request: &ApiRequest, jobs: &Jobs, job: &JobRef, patch: &Value) -> Result<Edited, Problem> {
    let mut attempt = 1;
    loop {
        let before = jobs.get(job.clone()).await?;
        let JobForm { draft, faults } = merged(request, patch, &before).await?;
        refuse(faults)?;
        let refused = |problems| Problem::from(StoreError::from(first(problems)));
        let anchor = draft.anchor(&before.job.definition, request.app.bell.now());
        let mut edit = draft.edit(anchor).map_err(refused)?;
        if !definition::changes_timing(patch) && before.job.definition.spec.is_ok() {
            edit.spec = None;
        }
        let revision = request.if_match.unwrap_or(before.job.state.revision);
        let change = jobs.new_version(JobRef::Id(before.job.definition.id), edit).if_revision(revision);
        let activates = patch.get("activate").and_then(Value::as_bool).unwrap_or_default();
        let change = if activates { change.activate() } else { change };
        match change.await {
            Err(error) if error.is_conflict() && request.if_match.is_none() && attempt < MAX_EDIT_ATTEMPTS => {
                attempt += 1;
            }
            Ok(changed) => return Ok(Edited { before, changed }),
            Err(error) => return Err(error.into()),
        }
    }
}

fn first(problems: Vec<everbell::Invalid>) -> everbell::Invalid {
    problems.into_iter().next().unwrap_or_else(|| everbell::Invalid::new("job", "is refused"))
}

/// The job as it would be after this merge patch.
async fn merged(request: &ApiRequest, body: &Value, before: &JobRow) -> Result<JobForm, Problem> {
    let own = &before.job.definition;
    let mut document = definition::document(own);
    let mut patch = body.clone();
    if let Value::Object(members) = &mut patch {
        for own in ["reason", "activate", "payload"] {
            members.remove(own);
        }
    }
    definition::merge(&mut document, &patch);
    let payload = match body.get("payload") {
        Some(_) => request.raw("payload"),
        None => RawValue::from_string(own.payload.as_str().to_owned()).ok(),
    };
    let mut read = job::read(&document, payload.as_deref(), Naming::Camel);
    // The shape of the patch itself comes first: what it says wrongly may be lost in the merge.
    let mut faults = Form::read(body, EDIT, Naming::Camel).faults();
    faults.iter_mut().for_each(with_alternative);
    faults.extend(read.faults.into_iter().filter(|fault| fault.pointer != "/jobKey"));
    let mut seen = std::collections::BTreeSet::new();
    faults.retain(|fault| seen.insert(fault.pointer.clone()));
    check_target(request, read.draft.target.as_deref(), &mut faults).await?;
    read.faults = faults;
    Ok(read)
}

/// Explains members that cannot be edited, and the alternative.
fn with_alternative(fault: &mut Fault) {
    let instead = match (&fault.code, fault.pointer.as_str()) {
        (FaultCode::UnknownField, "/jobKey") => "cannot be changed; create a job with the new key and retire this one",
        (FaultCode::UnknownField, "/status") => {
            "cannot be edited; use `pause` or `resume`, or DELETE the job to retire it"
        }
        _ => return,
    };
    instead.clone_into(&mut fault.detail);
}

fn differs(request: &ApiRequest, before: &JobRow, wanted: &JobForm) -> Result<bool, Problem> {
    let after = after(before, &wanted.draft)?;
    Ok(request.body.get("activate").is_some() || after.content_hash() != before.job.definition.content_hash())
}

/// The definition of a job that becomes this draft.
fn after(before: &JobRow, wanted: &Draft) -> Result<Definition, Problem> {
    let definition = &before.job.definition;
    let made = everbell::Made {
        id: definition.id,
        source: definition.source,
        by: &definition.created_by,
        at: definition.created_at,
    };
    wanted.definition(&made).map_err(|problems| Problem::from(StoreError::from(first(problems))))
}

pub(crate) async fn diff(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.query(DIFF);
    let key = key_of(&request).await?;
    let version = async |name: &str| -> Result<JobRow, Problem> {
        let number = form.count(name).ok_or_else(|| Problem::new(Kind::NotFound, "This version does not exist."))?;
        Ok(request.jobs().get(JobRef::Version(key.clone(), number)).await?)
    };
    let (from, to) = (version("from").await?, version("to").await?);
    ApiResponse::ok(&wire::Items { items: changes(&from, &to) })
}

/// Returns the members that differ between two versions.
pub fn changes(from: &JobRow, to: &JobRow) -> Vec<wire::ChangedField> {
    changed_fields(&from.job.definition, &to.job.definition)
}

fn changed_fields(from: &Definition, to: &Definition) -> Vec<wire::ChangedField> {
    let flat = |own: &Definition| {
        let mut document = definition::document(own);
        document["payload"] = serde_json::from_str(own.payload.as_str()).unwrap_or(Value::Null);
        let mut members = Vec::new();
        flatten("", &document, &mut members);
        members
    };
    let (before, after) = (flat(from), flat(to));
    let value = |members: &[(String, Value)], name: &str| {
        members.iter().find(|(own, _)| own == name).map_or(json!(null), |(_, value)| value.clone())
    };
    let mut names: Vec<&String> = before.iter().chain(&after).map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    let changed = |name: &String| {
        let (from, to) = (value(&before, name), value(&after, name));
        (from != to).then(|| wire::ChangedField { field: name.clone(), from, to })
    };
    names.into_iter().filter_map(changed).collect()
}

/// The members of objects by their paths; a payload is one value.
fn flatten(path: &str, value: &Value, members: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(inner) if path != "payload" => {
            for (name, value) in inner {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(&path, value, members);
            }
        }
        other => members.push((path.to_owned(), other.clone())),
    }
}
