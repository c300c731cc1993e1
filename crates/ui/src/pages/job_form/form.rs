//! [`FormPage`]: the form of a job, for a new one and for the next version of one that exists.

use askama::Template;
use axum::http::StatusCode;

use super::draft::Draft;
use super::form;
use super::past_week;
use super::preview::{Preview, PreviewPage};
use super::request_body::RequestBody;
use super::simple::{DAYS, FREQUENCIES};
use super::suggestions::{Suggestions, UpcomingJobs};
use crate::markup::{Markup, escaped, render_inline_code};
use crate::pages::action::{Refusal, Subject};
use crate::pages::job::declared;
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section, badge};
use everbell_http::problem::{self, Problem};
use everbell_wire::policies::{GROUPS, POLICIES, Policy, PolicyKind};

/// The ways to say when, and their labels.
const SCHEDULE_INPUTS: [(&str, &str); 3] =
    [("simple", "Simple"), ("cron", "Cron expression"), ("crontab", "Paste a crontab line")];

/// The fields with their own error messages besides the policies, and their labels.
#[rustfmt::skip]
const FIELDS: [(&str, &str); 19] = [
    ("jobKey", "Job key"), ("target", "Target"), ("description", "Description"), ("cronExpression", "Expression"),
    ("minutes", "Interval in minutes"), ("minute", "Minute"), ("time", "Time"), ("days", "Days"), ("date", "Day"),
    ("line", "Crontab line"), ("runAt", "Date and time"), ("offset", "Offset"), ("timezone", "Time zone"),
    ("scope", "Scope"), ("startAt", "Starts at"), ("endAt", "Ends at"), ("payload", "Payload"), ("labels", "Labels"),
    ("reason", "Reason"),
];

/// The form and the panel beside it.
#[derive(Template)]
#[template(path = "job_form/form.html")]
pub(super) struct FormPage {
    frame: Frame,
    draft: Draft,
    refusal: Refusal,
    preview: Preview,
    suggestions: Suggestions,
    editing: Option<Editing>,
    /// Where to go instead.
    back: String,
}

/// The job whose next version is made.
pub(super) struct Editing {
    key: String,
    part: String,
    next: u32,
    /// The version and revision that the form was opened with, which guard against concurrent changes.
    seen: [(&'static str, String); 2],
    paused: bool,
    /// Where the job is declared, if it is.
    declared: Option<String>,
    /// The job was changed in the meantime.
    stale: bool,
}

impl Editing {
    fn new(request: &UiRequest, subject: &Subject, stale: bool) -> Editing {
        let definition = &subject.row.job.definition;
        Editing {
            key: subject.key.clone(),
            part: subject.part.clone(),
            next: definition.version + 1,
            seen: [("version", u64::from(definition.version)), ("revision", subject.revision)]
                .map(|(name, now)| (name, request.sent(name).map_or_else(|| now.to_string(), str::to_owned))),
            paused: subject.row.job.state.pause.is_some(),
            declared: declared(&subject.row.job),
            stale,
        }
    }
}

impl FormPage {
    /// The whole page.
    pub(super) async fn response(
        request: &UiRequest,
        draft: Draft,
        subject: Option<&Subject>,
        problem: Option<&Problem>,
    ) -> Result<UiResponse, Problem> {
        let upcoming = UpcomingJobs::load(request).await?;
        let form = RequestBody::new(&draft);
        let mut preview = Preview::load(request, &form, subject, &upcoming).await?;
        if let Some(subject) = subject.filter(|_| request.sent("do") == Some("simulate")) {
            preview.past_week = Some(past_week::load(request, &form, subject).await?);
        }
        let gone = [problem::Kind::RevisionMismatch, problem::Kind::JobRetired];
        let stale = problem.is_some_and(|problem| gone.contains(&problem.kind));
        let title = subject.map_or_else(|| "New job".to_owned(), |subject| format!("Edit {}", subject.key));
        let page = FormPage {
            frame: request.frame(Section::Jobs, title).await,
            refusal: problem.map(refusal_of).unwrap_or_default(),
            preview,
            suggestions: Suggestions::load(request, &upcoming).await?,
            editing: subject.map(|subject| Editing::new(request, subject, stale)),
            back: subject.map_or_else(|| "/jobs".to_owned(), Subject::path),
            draft,
        };
        UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
    }

    /// The panel alone.
    pub(super) async fn preview(
        request: &UiRequest,
        draft: &Draft,
        subject: Option<&Subject>,
    ) -> Result<UiResponse, Problem> {
        let preview =
            Preview::load(request, &RequestBody::new(draft), subject, &UpcomingJobs::load(request).await?).await?;
        UiResponse::page(&PreviewPage { preview })
    }

    /// Renders the error below a field.
    fn fault(&self, name: &str) -> Markup {
        let fault = self.refusal.at(name);
        Markup::from_html(fault.map_or_else(String::new, |text| {
            format!("<p class=\"fault\" id=\"{}-fault\" dir=\"auto\">{}</p>", id(name), render_inline_code(text))
        }))
    }

    /// The id of a field, and that it is wrong if it is.
    fn marks(&self, name: &str) -> Markup {
        let id = id(name);
        let wrong = self.refusal.at(name).map(|_| format!(" aria-invalid=\"true\" aria-describedby=\"{id}-fault\""));
        Markup::from_html(format!(" id=\"{id}\" name=\"{}\"{}", escaped(name), wrong.unwrap_or_default()))
    }

    fn checked(&self, name: &str, value: &str) -> &'static str {
        if self.draft.is(name, value) { " checked" } else { "" }
    }

    fn selected(&self, name: &str, value: &str) -> &'static str {
        if self.draft.is(name, value) { " selected" } else { "" }
    }

    /// Returns the target that was typed because no live instance serves it.
    fn another(&self) -> &str {
        match self.draft.text("target").trim() {
            target if !target.is_empty() && !self.suggestions.serves(target) => target,
            _ => self.draft.text("anotherTarget"),
        }
    }

    /// Whether a policy is not as usual, or wrong.
    fn is_special(&self) -> bool {
        POLICIES.iter().any(|policy| {
            let name = policy.field_name();
            self.refusal.at(&name).is_some() || self.draft.filled(&name).is_some_and(|said| said != policy.usual)
        })
    }

    /// Whether it is bounded, or its bounds are wrong.
    fn is_bounded(&self) -> bool {
        ["startAt", "endAt"].iter().any(|name| self.draft.filled(name).is_some() || self.refusal.at(name).is_some())
    }
}

/// The id of the field of this name.
pub(super) fn id(name: &str) -> String {
    format!("f-{}", name.replace('/', "-"))
}

/// Returns the label of a field.
pub(super) fn label(name: &str) -> &str {
    let own = FIELDS.into_iter().find(|(own, _)| *own == name).map(|(_, label)| label);
    let policy = || POLICIES.iter().find(|policy| policy.field_name() == name).map(|policy| policy.label);
    own.or_else(policy).unwrap_or(name)
}

/// Assigns the errors of a problem to fields. Other errors are shown above the form.
fn refusal_of(problem: &Problem) -> Refusal {
    if problem.kind == problem::Kind::JobKeyExists {
        return Refusal::at_field("jobKey", problem.detail.clone());
    }
    if [problem::Kind::RevisionMismatch, problem::Kind::JobRetired].contains(&problem.kind) {
        let text = "The job has changed in the meantime, and nothing was saved.".to_owned();
        return Refusal { whole: Some(text), ..Refusal::default() };
    }
    let policies: Vec<String> = POLICIES.iter().map(Policy::field_name).collect();
    let fields: Vec<&str> =
        FIELDS.into_iter().map(|(name, _)| name).chain(policies.iter().map(String::as_str)).collect();
    Refusal::from_problem(Some(problem), &fields)
}

#[cfg(test)]
mod tests {
    use everbell_wire::FaultCode;

    use super::*;
    use everbell_wire::form::Fault;

    #[test]
    fn every_fault_has_a_place() {
        let faults = [("labels/a~1b", "x"), ("policies/timeout", "y"), ("", "z"), ("policies", "w")];
        let faults = faults.map(|(name, text)| Fault::new(format!("/{name}"), FaultCode::Invalid, text)).to_vec();
        let refusal = refusal_of(&Problem::body(faults));
        assert_eq!((refusal.at("labels"), refusal.at("policies/timeout")), (Some("x"), Some("y")));
        assert_eq!(refusal.whole.as_deref(), Some(": z; policies: w"));
        let taken = refusal_of(&Problem::new(problem::Kind::JobKeyExists, "Job `a` is active."));
        assert_eq!((taken.at("jobKey"), taken.whole.as_deref()), (Some("Job `a` is active."), None));
    }
}
