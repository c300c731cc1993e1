//! The next version of a job: the same form, and only what differs is sent.

use axum::http::Method;
use everbell::JobStatus;

use super::assembled::Assembled;
use super::changes::Changes;
use super::create::is_preview;
use super::draft::Draft;
use super::form::FormPage;
use super::{expect_admin, panel};
use crate::pages::action::Subject;
use crate::visit::{Reply, Visit};
use everbell_http::problem::{Kind, Problem};
use everbell_wire as wire;
use everbell_wire::form::{self, Field, optional};

pub(crate) const QUERY: &[Field] = &[optional(
    "from",
    form::Kind::Integer { min: 1, max: u32::MAX as i64 },
    "A version to begin with: the next one says what it said.",
)];

/// The job, unless it has ended.
async fn living(visit: &Visit) -> Result<Subject, Problem> {
    expect_admin(visit)?;
    let subject = Subject::of(visit).await?;
    if subject.row.job.state.status == JobStatus::Retired {
        return Err(Problem::new(Kind::JobRetired, format!("Job `{}` is retired.", subject.key)));
    }
    Ok(subject)
}

/// What was sent, about this job and no other.
fn sent(visit: &Visit, subject: &Subject) -> Draft {
    let mut draft = Draft::sent(&visit.sent);
    draft.set("jobKey", &subject.key);
    draft
}

pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    let subject = living(&visit).await?;
    let draft = match visit.query(QUERY).count("from") {
        Some(version) => restored(&visit, &subject, version).await?,
        None => Draft::of(&subject.row.job.definition, visit.now),
    };
    FormPage::reply(&visit, draft, Some(&subject), None).await
}

/// The form as an earlier version would fill it in: what it said becomes the next version.
async fn restored(visit: &Visit, subject: &Subject, version: u32) -> Result<Draft, Problem> {
    let versions = visit.jobs().versions(&subject.key).await?;
    let row = versions.iter().find(|row| row.job.definition.version == version);
    let missing = || Problem::new(Kind::NotFound, format!("{} has no version {version}.", subject.key));
    Ok(Draft::of(&row.ok_or_else(missing)?.job.definition, visit.now))
}

pub(crate) async fn preview(visit: Visit) -> Result<Reply, Problem> {
    let subject = living(&visit).await?;
    FormPage::panel(&visit, &sent(&visit, &subject), Some(&subject)).await
}

pub(crate) async fn send(visit: Visit) -> Result<Reply, Problem> {
    let subject = living(&visit).await?;
    let mut draft = sent(&visit, &subject);
    if is_preview(&visit, &mut draft) {
        return FormPage::reply(&visit, draft, Some(&subject), None).await;
    }
    match edited(&visit, &subject, &Assembled::of(&draft)).await {
        Ok(answer) => {
            let text = format!("{} is at version {} now.", subject.key, answer.job.version);
            Ok(Reply::done(subject.place(), text))
        }
        Err(problem) => FormPage::reply(&visit, draft, Some(&subject), Some(&problem)).await,
    }
}

async fn edited(visit: &Visit, subject: &Subject, form: &Assembled) -> Result<wire::NewVersion, Problem> {
    let faults = panel::faults(visit, form, Some(subject)).await?;
    if !faults.is_empty() {
        return Err(Problem::body(faults));
    }
    let definition = &subject.row.job.definition;
    let Changes { mut patch, shown } = Changes::between(definition, form, visit.now);
    let activate = visit.sent("activate").is_some() && subject.row.job.state.pause.is_some();
    if shown.is_empty() && !activate {
        let detail = format!("Nothing differs from version {}.", definition.version);
        return Err(Problem::new(Kind::InvalidInput, detail));
    }
    if activate {
        patch.put("activate", true);
    }
    if let Some(reason) = visit.sent("reason") {
        patch.put("reason", reason);
    }
    visit.perform(Method::POST, "/jobs/{jobId}/new-version", &[("jobId", &subject.exact)], &patch).await
}
