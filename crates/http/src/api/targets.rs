//! Targets: what they are, which are served, how their runs end, and a trial of one.

use std::sync::Arc;

use everbell::client::{TargetReport, WindowCounters};
use everbell::{JobKey, Target};
use everbell_core::InstanceId;
use everbell_core::store::{RunCounters, StoredTarget};
use everbell_wire as wire;
use everbell_wire::form::{Field, Kind as Value, optional};

use super::runs::tried;
use crate::App;
use crate::access::Role;
use crate::counted::Window;
use crate::defined::ConfiguredTarget;
use crate::excerpt::excerpt;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResponse};

pub(crate) const TRY: &[Field] = &[optional("payload", Value::Json, "The input of the target. Default: {}.")];

/// The facts about all targets.
struct Known {
    report: TargetReport,
    defined: Vec<ConfiguredTarget>,
    /// Targets that admins define, and why this instance does not serve them.
    stored: Vec<(StoredTarget, ConfiguredTarget, Option<String>)>,
    /// The runs of 24 hours and of 7 days, if the caller may read runs.
    runs: Option<(Arc<WindowCounters>, Arc<WindowCounters>)>,
    is_admin: bool,
}

impl Known {
    async fn read(request: &ApiRequest) -> Result<Known, Problem> {
        let app = &request.app;
        let runs = if request.may_read_runs() {
            Some((app.counters(Window::Day).await?, app.counters(Window::Week).await?))
        } else {
            None
        };
        Ok(Known {
            report: app.bell.targets().await?,
            defined: app.options().targets.clone(),
            stored: stored(request).await?,
            runs,
            is_admin: request.actor.role >= Role::Admin,
        })
    }

    /// The runs of a target in the last day, compared with those of the days before.
    fn last_day(&self, target: &Target) -> Option<wire::TargetRuns> {
        let (day, week) = self.runs.as_ref()?;
        let counters = |window: &WindowCounters| window.targets.get(target).cloned().unwrap_or_default();
        let (day, week) = (counters(day), counters(week));
        let earlier = RunCounters {
            succeeded: week.succeeded.saturating_sub(day.succeeded),
            failed: week.failed.saturating_sub(day.failed),
            ..RunCounters::default()
        };
        Some(wire::TargetRuns::new(&day, &earlier))
    }

    fn document(&self, target: &Target, instances: &[InstanceId], jobs: u64, waiting: &[JobKey]) -> wire::Target {
        let stored = self.stored.iter().find(|(stored, ..)| stored.label == *target);
        let declared = self.defined.iter().find(|defined| defined.label == target.as_str());
        let defined = declared.or(stored.map(|(_, described, _)| described));
        wire::Target {
            target: target.to_string(),
            r#type: defined.map(|defined| wire::TargetType::from_word(defined.kind)),
            address: defined.and_then(|defined| defined.address.clone()),
            concurrency: defined.and_then(|defined| defined.concurrency),
            instances: instances.iter().map(ToString::to_string).collect(),
            jobs,
            waiting_jobs: waiting.iter().map(ToString::to_string).collect(),
            last_day: self.last_day(target),
            source: match (declared, stored) {
                (Some(_), _) => Some(wire::Source::Config),
                (None, Some(_)) => Some(wire::Source::Api),
                (None, None) => None,
            },
            revision: stored.map(|(stored, ..)| stored.revision),
            problem: stored.and_then(|(.., problem)| problem.clone()),
            definition: stored
                .filter(|_| self.is_admin)
                .and_then(|(stored, ..)| serde_json::from_str(stored.definition.as_str()).ok()),
            updated_by: stored.map(|(stored, ..)| stored.updated_by.clone()),
            updated_at: stored.map(|(stored, ..)| stored.updated_at),
            block: defined.filter(|_| self.is_admin).and_then(|defined| defined.block.clone()),
        }
    }

    /// Every target, by label.
    fn documents(&self) -> Vec<wire::Target> {
        let served = self.report.served.iter();
        let served = served.map(|served| self.document(&served.target, &served.instances, served.jobs, &[]));
        let unserved = self.report.unserved.iter();
        let unserved = unserved.map(|unserved| self.document(&unserved.target, &[], unserved.count, &unserved.jobs));
        let mut all: Vec<wire::Target> = served.chain(unserved).collect();
        for label in
            self.defined.iter().chain(self.stored.iter().map(|(_, described, _)| described)).map(|one| &one.label)
        {
            let is_known = all.iter().any(|known| known.target == *label);
            if let Some(target) = Target::new(label).ok().filter(|_| !is_known) {
                all.push(self.document(&target, &[], 0, &[]));
            }
        }
        all.sort_by(|a, b| a.target.cmp(&b.target));
        all
    }
}

/// The types of targets that admins may define: none unless the configuration says so.
pub async fn editable(app: &App) -> Vec<String> {
    match app.target_editor.get() {
        Some(editor) => editor.editable().await,
        None => Vec::new(),
    }
}

/// The stored targets, where the server knows such.
async fn stored(request: &ApiRequest) -> Result<Vec<(StoredTarget, ConfiguredTarget, Option<String>)>, Problem> {
    let app = &request.app;
    let Some(editor) = app.target_editor.get() else { return Ok(Vec::new()) };
    let is_editable = !editor.editable().await.is_empty();
    let rows = app.bell.store().stored_targets().await?;
    let known = rows.into_iter().map(|row| {
        let definition = serde_json::from_str(row.definition.as_str()).unwrap_or_default();
        let described = editor.describe(row.label.as_str(), &definition);
        let problem = if is_editable {
            editor.known_problem(&row)
        } else {
            Some("`targets.editable` of the configuration of this instance does not allow stored targets".to_owned())
        };
        (row, described, problem)
    });
    Ok(known.collect())
}

/// Returns every target that is defined, that an instance serves or that a job names.
pub async fn documents(request: &ApiRequest) -> Result<wire::Targets, Problem> {
    let known = Known::read(request).await?;
    let complete = known.runs.as_ref().map(|(day, _)| day.complete);
    Ok(wire::Targets { complete, items: known.documents() })
}

/// Returns a target.
pub async fn document(request: &ApiRequest, label: &str) -> Result<wire::Target, Problem> {
    let found = Known::read(request).await?.documents().into_iter().find(|target| target.target == label);
    found.ok_or_else(|| {
        let detail = format!("There is no target `{}`.", excerpt(label));
        Problem::new(Kind::NotFound, detail).with("subject", "target").with("name", label)
    })
}

pub(crate) async fn list(request: ApiRequest) -> Result<ApiResponse, Problem> {
    ApiResponse::ok(&documents(&request).await?)
}

pub(crate) async fn get(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let target = document(&request, request.part("target")).await?;
    let response = ApiResponse::ok(&target)?;
    Ok(match target.revision {
        Some(revision) => response.header("etag", format!("\"{revision}\"")),
        None => response,
    })
}

/// Runs a target once, without a job.
pub async fn try_once(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let target = request.part("target");
    request.expect_payload_allowed(target)?;
    let payload = request.raw("payload");
    let tried_run = match &payload {
        Some(payload) => request.runs().try_target(target, payload).await,
        None => request.runs().try_target(target, serde_json::json!({})).await,
    };
    match tried_run {
        Ok(run) => tried(&request, &run),
        Err(everbell::StoreError::Invalid(invalid)) if invalid.field == "target" => {
            Err(Problem::new(Kind::NotFound, invalid.reason).with("subject", "target").with("name", target))
        }
        Err(error) => Err(error.into()),
    }
}
