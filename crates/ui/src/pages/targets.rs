//! Targets: what they are, which instances serve them, how their runs end, and a trial.

use askama::Template;
use axum::http::{Method, StatusCode};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::chart::grouped;
use crate::equivalent::Equivalent;
use crate::markup::url_part;
use crate::pages::action::{Refusal, expect_operator};
use crate::{Frame, Section, UiRequest, UiResponse};
use everbell_http::access::Role;
use everbell_http::api::targets::{document, documents, editable};
use everbell_http::problem::Problem;
use everbell_wire::elapsed::took;
use everbell_wire::{self as wire, TargetTrend};

/// How many jobs of a target that no live instance serves are named.
const MAX_LISTED_JOBS: usize = 5;

#[derive(Template)]
#[template(path = "targets.html")]
struct TargetsPage {
    frame: Frame,
    targets: Vec<Row>,
    unserved: Vec<Unserved>,
    /// Whether targets can be defined here, and why this role may not.
    is_editable: bool,
    no_edit: Option<String>,
    /// Whether some hours of the last day are still being counted.
    is_counting: bool,
    no_act: Option<String>,
}

struct Row {
    label: String,
    part: String,
    /// The type and the address, if this server knows them.
    kind: Option<String>,
    address: Option<String>,
    instances: usize,
    /// The number of current jobs with this target.
    jobs: u64,
    /// Why this instance does not serve a stored target.
    problem: Option<String>,
    /// The runs of the last day, if the role may read runs.
    runs: Option<Runs>,
}

/// The runs of a day in words.
struct Runs {
    count: String,
    success: String,
    failure: String,
    failed: u64,
    p95: String,
    /// An unusual failure rate: whether it is higher, and the words.
    trend: Option<(bool, String)>,
}

impl Runs {
    fn new(runs: &wire::TargetRuns) -> Runs {
        let share = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), percent);
        let before = runs.earlier_failure_rate.map_or_else(String::new, |rate| format!(" ({} before)", percent(rate)));
        Runs {
            count: grouped(runs.runs),
            success: share(runs.success_rate),
            failure: share(runs.failure_rate),
            failed: runs.failed,
            p95: runs.p95_ms.map_or_else(|| "–".to_owned(), took),
            trend: match runs.trend {
                Some(TargetTrend::Higher) => Some((true, format!("more than usual{before}"))),
                Some(TargetTrend::Lower) => Some((false, format!("less than usual{before}"))),
                _ => None,
            },
        }
    }
}

/// `3.1%`; whole numbers without a fraction.
fn percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    format!("{}%", text.strip_suffix(".0").unwrap_or(&text))
}

struct Unserved {
    label: String,
    part: String,
    /// How many jobs wait.
    count: u64,
    /// Some of them.
    jobs: Vec<(String, String)>,
}

impl Row {
    fn new(target: &wire::Target) -> Row {
        Row {
            label: target.target.clone(),
            part: url_part(&target.target),
            kind: target.r#type.as_ref().map(ToString::to_string),
            address: target.address.clone(),
            instances: target.instances.len(),
            jobs: target.jobs,
            problem: target.problem.clone(),
            runs: target.last_day.as_ref().map(Runs::new),
        }
    }
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let targets = documents(&request.to_api_request()).await?;
    let waiting = targets.items.iter().filter(|target| target.instances.is_empty() && target.jobs > 0);
    let page = TargetsPage {
        unserved: waiting
            .map(|target| Unserved {
                label: target.target.clone(),
                part: url_part(&target.target),
                count: target.jobs,
                jobs: target
                    .waiting_jobs
                    .iter()
                    .take(MAX_LISTED_JOBS)
                    .map(|key| (key.clone(), url_part(key)))
                    .collect(),
            })
            .collect(),
        targets: targets.items.iter().map(Row::new).collect(),
        is_editable: !editable(&request.app).await.is_empty(),
        no_edit: request.barred(Role::Admin),
        is_counting: targets.complete == Some(false),
        no_act: request.barred(Role::Operator),
        frame: request.frame(Section::Targets, "Targets").await,
    };
    UiResponse::page(&page)
}

#[derive(Template)]
#[template(path = "targets/show.html")]
struct TargetPage {
    frame: Frame,
    target: Row,
    /// The instances that serve it, as `host:pid`.
    instances: Vec<String>,
    /// The block of a configuration file, for admins.
    block: Option<String>,
    /// The revision of a stored target and who wrote it, and why this role may not edit it.
    stored: Option<(u32, String)>,
    no_edit: Option<String>,
    no_act: Option<String>,
}

pub(crate) async fn show_one(request: UiRequest) -> Result<UiResponse, Problem> {
    let target = document(&request.to_api_request(), request.part("label")).await?;
    let known = request.app.bell.instances().await?;
    let name = |id: &String| {
        let found = known.iter().find(|instance| instance.id.to_string() == *id);
        found.map_or_else(|| id.clone(), |instance| format!("{}:{}", instance.host, instance.pid))
    };
    let page = TargetPage {
        instances: target.instances.iter().map(name).collect(),
        no_act: request.barred(Role::Operator),
        frame: request.frame(Section::Targets, format!("Target {}", target.target)).await,
        target: Row::new(&target),
        stored: target
            .revision
            .filter(|_| target.source == Some(wire::Source::Api))
            .map(|revision| (revision, target.updated_by.clone().unwrap_or_default())),
        no_edit: request.barred(Role::Admin),
        block: target.block,
    };
    UiResponse::page(&page)
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
