//! Creating, editing and deleting targets, where the configuration allows it.

use std::sync::Arc;

use everbell::Target;
use everbell_core::Json;
use everbell_core::store::StoredTarget;
use everbell_wire as wire;
use everbell_wire::FaultCode;
use everbell_wire::form::{Fault, Field, Form, Kind as Value, Naming, optional};
use serde_json::json;

use super::actions::REASON;
use super::targets::document;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResponse, refuse};
use crate::target_editor::TargetEditor;

/// The reason alone: the other members depend on the type.
const REASON_ONLY: &[Field] = &[optional("reason", REASON, "The reason, for the audit trail.")];

pub(crate) const WRITE: &[Field] =
    &[optional("dryRun", Value::Flag, "Only check the definition, and report whether this instance could serve it.")];

pub(crate) const DELETE: &[Field] = &[
    optional(
        "force",
        Value::Flag,
        "Delete it even if current jobs name it. They do not fire until it is defined again.",
    ),
    optional("reason", REASON, "The reason, for the audit trail."),
];

async fn editor(request: &ApiRequest) -> Result<Arc<dyn TargetEditor>, Problem> {
    let refused = || {
        let detail = "Targets of this server are defined by its configuration only. To define them here, an operator of the \
                      server sets `targets.editable`.";
        Problem::new(Kind::Conflict, detail)
    };
    let editor = request.app.target_editor.get().map(Arc::clone).ok_or_else(refused)?;
    if editor.editable().await.is_empty() { Err(refused()) } else { Ok(editor) }
}

/// Creates or replaces a target, or says what is wrong with it.
pub async fn put(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let editor = editor(&request).await?;
    let text = request.part("target");
    let label = Target::new(text).map_err(|invalid| Problem::at("path", "target", &invalid.reason))?;
    let mut definition = request.body.clone();
    let Some(members) = definition.as_object_mut() else {
        return Err(Problem::body(vec![Fault::new("", FaultCode::WrongType, "must be an object")]));
    };
    let reason = json!({ "reason": members.remove("reason").unwrap_or_default() });
    members.retain(|_, value| !value.is_null());
    if members.remove("label").is_some_and(|label| label != text) {
        return Err(Problem::body(vec![Fault::new(
            "/label",
            FaultCode::Invalid,
            "differs from the label in the path",
        )]));
    }
    let form = Form::read(&reason, REASON_ONLY, Naming::Camel);
    let reason = form.text("reason").map(str::to_owned);
    let mut faults = form.faults();
    faults.extend(editor.check(text, &definition).await);
    refuse(faults)?;
    let before = find(&request, &label).await?;
    expect_free(&request, &*editor, &label, before.is_some()).await?;
    let problem = editor.problem(text, &definition).await;
    if request.query(WRITE).flag("dryRun") {
        let revision = request.if_match.map(|revision| u32::try_from(revision).unwrap_or(u32::MAX));
        StoredTarget::expect(before.as_ref(), &label, revision)?;
        return ApiResponse::ok(&wire::TargetWritten {
            dry_run: true,
            created: before.is_none(),
            problem,
            target: None,
        });
    }
    let written = write(&request, &*editor, &label, (&definition, before.as_ref()), reason).await?;
    refresh(&*editor).await;
    let answer = wire::TargetWritten {
        dry_run: false,
        created: written.revision == 1,
        problem,
        target: Some(document(&request, text).await?),
    };
    Ok(ApiResponse::ok(&answer)?.header("etag", format!("\"{}\"", written.revision)))
}

async fn write(
    request: &ApiRequest,
    editor: &dyn TargetEditor,
    label: &Target,
    (definition, before): (&serde_json::Value, Option<&StoredTarget>),
    reason: Option<String>,
) -> Result<StoredTarget, Problem> {
    let store = request.app.bell.store();
    let mut entry = request.actor.entry("target.put", format!("target:{label}"), request.app.bell.now());
    entry.reason = reason;
    entry.before = before.map(|before| facts(editor, before)).transpose()?;
    let block = editor.describe(label.as_str(), definition).block;
    let after = json!({ "revision": before.map_or(0, |before| before.revision) + 1, "block": block });
    entry.after = Some(Json::parse("audit", &after.to_string())?);
    let revision = match request.if_match {
        Some(revision) => u32::try_from(revision).unwrap_or(u32::MAX),
        // What was checked is what is replaced.
        None => before.map_or(0, |before| before.revision),
    };
    let definition = Json::parse("definition", &definition.to_string())?;
    Ok(store.put_target(label, &definition, Some(revision), &entry).await?)
}

/// The details of an audit entry about a target: its block without secrets.
fn facts(editor: &dyn TargetEditor, stored: &StoredTarget) -> Result<Json, Problem> {
    let definition = serde_json::from_str(stored.definition.as_str()).unwrap_or_default();
    let block = editor.describe(stored.label.as_str(), &definition).block;
    Ok(Json::parse("audit", &json!({ "revision": stored.revision, "block": block }).to_string())?)
}

/// Refuses a label that the configuration or another program uses.
async fn expect_free(
    request: &ApiRequest,
    editor: &dyn TargetEditor,
    label: &Target,
    is_stored: bool,
) -> Result<(), Problem> {
    if let Some(clash) = editor.clash(label.as_str()).await {
        return Err(Problem::new(Kind::Conflict, format!("The label cannot be used: {clash}.")));
    }
    let report = request.app.bell.targets_naming(0).await?;
    if !is_stored && report.served.iter().any(|served| served.target == *label) {
        let detail = format!(
            "The label cannot be used: a live instance serves a target `{label}` of its configuration or of its program."
        );
        return Err(Problem::new(Kind::Conflict, detail));
    }
    Ok(())
}

async fn find(request: &ApiRequest, label: &Target) -> Result<Option<StoredTarget>, Problem> {
    let all = request.app.bell.store().stored_targets().await?;
    Ok(all.into_iter().find(|stored| stored.label == *label))
}

/// The change is in the database: if it cannot be taken now, every instance takes it when it looks next.
async fn refresh(editor: &dyn TargetEditor) {
    if let Err(error) = editor.refresh().await {
        tracing::warn!(%error, "a stored target was written; this instance applies the change later");
    }
}

/// Deletes a target.
pub async fn delete(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let editor = editor(&request).await?;
    let text = request.part("target");
    let label = Target::new(text).map_err(|invalid| Problem::at("path", "target", &invalid.reason))?;
    let form = request.query(DELETE);
    let Some(before) = find(&request, &label).await? else {
        if let Some(clash) = editor.clash(text).await {
            return Err(Problem::new(Kind::Conflict, format!("The target cannot be deleted: {clash}.")));
        }
        let detail = format!("There is no stored target `{label}`.");
        return Err(Problem::new(Kind::NotFound, detail).with("subject", "target").with("name", text));
    };
    let mut entry = request.actor.entry("target.delete", format!("target:{label}"), request.app.bell.now());
    entry.reason = form.text("reason").map(str::to_owned);
    entry.before = Some(facts(&*editor, &before)?);
    let revision = request.if_match.map(|revision| u32::try_from(revision).unwrap_or(u32::MAX));
    request.app.bell.store().delete_target(&label, revision, form.flag("force"), &entry).await?;
    refresh(&*editor).await;
    Ok(ApiResponse::nothing())
}
