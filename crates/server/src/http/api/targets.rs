//! Targets: which are served, and a trial of one.

use crate::form::{Field, Kind as Value, optional};
use crate::http::call::{Answer, Call};
use crate::http::model::{TargetDocument, TargetsDocument};
use crate::http::problem::{Kind, Problem};

use super::runs::tried;

pub(crate) const TRY: &[Field] = &[optional("payload", Value::Json, "What the target gets; {} if absent.")];

pub(crate) async fn list(call: Call) -> Result<Answer, Problem> {
    let report = call.app.bell.targets().await?;
    let served = report.served.iter().map(|served| TargetDocument {
        target: served.target.to_string(),
        instances: served.instances.iter().map(ToString::to_string).collect(),
        jobs: served.jobs,
        waiting_jobs: Vec::new(),
    });
    let unserved = report.unserved.iter().map(|unserved| TargetDocument {
        target: unserved.target.to_string(),
        instances: Vec::new(),
        jobs: unserved.count,
        waiting_jobs: unserved.jobs.iter().map(ToString::to_string).collect(),
    });
    let mut items: Vec<TargetDocument> = served.chain(unserved).collect();
    items.sort_by(|a, b| a.target.cmp(&b.target));
    Answer::ok(&TargetsDocument { items })
}

/// Runs a target once, without a job.
pub(crate) async fn try_once(call: Call) -> Result<Answer, Problem> {
    let target = call.part("target");
    let payload = call.raw("payload");
    let tried_run = match &payload {
        Some(payload) => call.runs().try_target(target, payload).await,
        None => call.runs().try_target(target, serde_json::json!({})).await,
    };
    match tried_run {
        Ok(run) => tried(&call, &run),
        Err(everbell::StoreError::Invalid(invalid)) if invalid.field == "target" => {
            Err(Problem::new(Kind::NotFound, invalid.reason))
        }
        Err(error) => Err(error.into()),
    }
}
