//! Targets: who serves them, who needs them, and a trial.

use askama::Template;
use axum::http::{Method, StatusCode};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::equivalent::Equivalent;
use crate::markup::url_part;
use crate::pages::action::{Refusal, expect_operator};
use crate::{Frame, Section, UiRequest, UiResponse};
use everbell_http::access::Role;
use everbell_http::api::targets::{Recent, recent};
use everbell_http::problem::Problem;
use everbell_wire as wire;

/// How many waiting jobs of all targets are looked at, and how many of one are named.
const MAX_WAITING_JOBS: u32 = 100;
const MAX_LISTED_JOBS: usize = 5;

#[derive(Template)]
#[template(path = "targets.html")]
struct TargetsPage {
    frame: Frame,
    served: Vec<Served>,
    unserved: Vec<Unserved>,
    no_act: Option<String>,
}

struct Served {
    label: String,
    part: String,
    instances: usize,
    /// The number of current jobs with this target.
    jobs: u64,
    /// The failure rate of recent runs, if the role may read runs.
    failures: Option<String>,
}

struct Unserved {
    label: String,
    part: String,
    /// How many jobs wait.
    count: u64,
    /// Some of them.
    jobs: Vec<(String, String)>,
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let report = request.app.bell.targets_naming(MAX_WAITING_JOBS).await?;
    let recent = if request.may_read_runs() { Some(recent(&request.app.bell).await?) } else { None };
    let served = report.served.iter().map(|served| Served {
        failures: recent.as_ref().map(|recent| failures(recent.get(&served.target).copied().unwrap_or_default())),
        part: url_part(served.target.as_str()),
        label: served.target.to_string(),
        instances: served.instances.len(),
        jobs: served.jobs,
    });
    let unserved = report.unserved.iter().map(|unserved| Unserved {
        part: url_part(unserved.target.as_str()),
        label: unserved.target.to_string(),
        count: unserved.count,
        jobs: unserved.jobs.iter().take(MAX_LISTED_JOBS).map(|key| (key.to_string(), url_part(key.as_str()))).collect(),
    });
    let page = TargetsPage {
        served: served.collect(),
        unserved: unserved.collect(),
        no_act: request.barred(Role::Operator),
        frame: request.frame(Section::Targets, "Targets").await,
    };
    UiResponse::page(&page)
}

/// `3 % (3 of 100)`.
fn failures(recent: Recent) -> String {
    match recent.failure_rate() {
        Some(rate) => format!("{:.0} % ({} of {})", rate * 100.0, recent.failures, recent.runs),
        None => "no runs".to_owned(),
    }
}

#[derive(Template)]
#[template(path = "targets/try.html")]
struct TryPage {
    frame: Frame,
    label: String,
    payload: String,
    refusal: Refusal,
    same: Equivalent,
}

pub(crate) async fn try_form(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    trial(&request, None).await
}

async fn trial(request: &UiRequest, refused: Option<(Refusal, StatusCode)>) -> Result<UiResponse, Problem> {
    let label = request.part("label").to_owned();
    let path = format!("/targets/{}/try", url_part(&label));
    let (refusal, status) = refused.unwrap_or((Refusal::default(), StatusCode::OK));
    let page = TryPage {
        payload: request.sent("payload").unwrap_or("{}").to_owned(),
        same: Equivalent::new(&request.api_base(), "POST", &path, &["targets", "try", &label]),
        frame: request.frame(Section::Targets, format!("Try {label}")).await,
        refusal,
        label,
    };
    UiResponse::with_status(&page, status)
}

#[derive(Serialize)]
struct Body {
    payload: Box<RawValue>,
}

pub(crate) async fn try_now(request: UiRequest) -> Result<UiResponse, Problem> {
    let payload = match serde_json::from_str(request.sent("payload").unwrap_or("{}")) {
        Ok(payload) => payload,
        Err(error) => {
            let fault =
                ("payload".to_owned(), format!("is not JSON: line {}, column {}", error.line(), error.column()));
            let refusal = Refusal { faults: vec![fault], whole: None };
            return trial(&request, Some((refusal, StatusCode::BAD_REQUEST))).await;
        }
    };
    let label = request.part("label").to_owned();
    let path = [("target", label.as_str())];
    match request.perform::<wire::RunNow>(Method::POST, "/targets/{target}/try", &path, &Body { payload }).await {
        Ok(wire::RunNow { run, .. }) => {
            Ok(UiResponse::done(format!("/runs/{}", run.id), format!("Trial of {label} is queued.")))
        }
        Err(problem) => {
            trial(&request, Some((Refusal::from_problem(Some(&problem), &["payload"]), problem.status()))).await
        }
    }
}
