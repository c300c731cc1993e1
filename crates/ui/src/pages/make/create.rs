//! A new job.

use axum::http::Method;
use everbell::StoreError;

use super::assembled::Assembled;
use super::draft::Draft;
use super::form::FormPage;
use super::offers::targets;
use super::{expect_admin, panel};
use crate::markup::url_part;
use crate::visit::{Reply, Visit};
use everbell_http::call::shown;
use everbell_http::problem::{Kind, Problem};
use everbell_wire as wire;
use everbell_wire::form::{Field, TEXT, optional};

pub(crate) const QUERY: &[Field] = &[optional("from", TEXT, "A job to begin with: the new one is like it.")];

pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    expect_admin(&visit)?;
    let draft = if let Some(key) = visit.query(QUERY).text("from") {
        copied(&visit, key).await?
    } else {
        // Of several none is chosen beforehand: whoever presses Enter too early would make a job that does the wrong thing.
        match targets(&visit).await?.as_slice() {
            [(only, _)] => Draft::blank(&visit.choices.mine, Some(only)),
            _ => Draft::blank(&visit.choices.mine, None),
        }
    };
    FormPage::reply(&visit, draft, None, None).await
}

/// The form of a job like that one, under another name.
async fn copied(visit: &Visit, key: &str) -> Result<Draft, Problem> {
    let missing = |_| Problem::new(Kind::NotFound, format!("There is no job `{}`.", shown(key)));
    let row = match visit.jobs().get(key).await {
        Err(StoreError::Invalid(invalid)) => return Err(missing(invalid)),
        answer => answer?,
    };
    let mut draft = Draft::of(&row.job.definition, visit.now);
    draft.set("jobKey", &format!("{}-copy", row.job.definition.key));
    Ok(draft)
}

pub(crate) async fn preview(visit: Visit) -> Result<Reply, Problem> {
    expect_admin(&visit)?;
    FormPage::panel(&visit, &Draft::sent(&visit.sent), None).await
}

pub(crate) async fn send(visit: Visit) -> Result<Reply, Problem> {
    expect_admin(&visit)?;
    let mut draft = Draft::sent(&visit.sent);
    if is_preview(&visit, &mut draft) {
        return FormPage::reply(&visit, draft, None, None).await;
    }
    match created(&visit, &Assembled::of(&draft)).await {
        Ok(wire::Job { job_key: key, .. }) => {
            Ok(Reply::done(format!("/jobs/{}", url_part(&key)), format!("{key} is made.")))
        }
        Err(problem) => FormPage::reply(&visit, draft, None, Some(&problem)).await,
    }
}

async fn created(visit: &Visit, form: &Assembled) -> Result<wire::Job, Problem> {
    if !form.faults.is_empty() || !form.body.members.contains_key("target") {
        return Err(Problem::body(panel::faults(visit, form, None).await?));
    }
    visit.perform(Method::POST, "/jobs", &[], &form.body).await
}

/// Whether the form is only to be shown again: with a template, or with what it means.
pub(super) fn is_preview(visit: &Visit, draft: &mut Draft) -> bool {
    if let Some(expression) = visit.sent("use") {
        draft.set("how", "cron");
        draft.set("cronExpression", expression);
        return true;
    }
    visit.sent("do") == Some("preview")
}
