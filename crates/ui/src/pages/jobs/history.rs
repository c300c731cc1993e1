//! The last runs of each job of a list, as a strip and a rate: one question for all of them.

use std::collections::HashMap;

use everbell::{JobRow, RunStatus};
use everbell_core::store::{RecentRuns, RunSummary};
use everbell_core::{Definition, Zone};

use crate::chart::{Strip, StripRun, StripSize, strip};
use crate::clock::Clock;
use crate::markup::Markup;
use crate::pages::job::history::strip_run;
use crate::pages::overview::attention::Usual;
use crate::request::UiRequest;
use everbell_http::problem::Problem;
use everbell_wire::elapsed::took;

/// The most runs that a list shows: a long one has fewer of each job.
const MAX_STRIP_RUNS: usize = 3_000;

/// The history of a job in a list.
pub(crate) struct History {
    pub(crate) strip: Markup,
    /// `98% ok · median 2.0s`.
    pub(crate) text: String,
}

/// Loads the recent runs of these jobs by key; none if the role may not read runs.
pub(super) async fn summaries(
    request: &UiRequest,
    rows: &[JobRow],
) -> Result<HashMap<String, Vec<RunSummary>>, Problem> {
    let mut of_job: HashMap<String, Vec<RunSummary>> = HashMap::new();
    if rows.is_empty() || !request.may_read_runs() {
        return Ok(of_job);
    }
    let keys = rows.iter().map(|row| row.job.definition.key.clone()).collect();
    let each = (MAX_STRIP_RUNS / rows.len()).clamp(1, StripSize::List.slots()) as u32;
    for summary in request.runs().recent_runs(&RecentRuns::new(keys, each)?).await? {
        of_job.entry(summary.job_key.to_string()).or_default().push(summary);
    }
    Ok(of_job)
}

/// The newest first; nothing for a job that never ran.
pub(super) fn drawn(job: &Definition, runs: &[RunSummary], clock: &Clock, zone: Option<&Zone>) -> Option<History> {
    if runs.is_empty() {
        return None;
    }
    let shown: Vec<StripRun> = runs.iter().rev().map(|run| strip_run(run, clock.now)).collect();
    let zone = clock.zone(zone);
    // The same wherever the row stands, so that a row that only moved is not sent again.
    let id = job.id.to_string().replace('-', "");
    let id = format!("strip-{}", id.get(id.len().saturating_sub(12)..).unwrap_or(&id));
    let input = Strip { id: &id, job: job.key.as_str(), size: StripSize::List, zone: &zone, runs: &shown };
    let count = |status| runs.iter().filter(|run| run.status == status).count();
    let (good, bad) = (count(RunStatus::Succeeded), count(RunStatus::Failed));
    let rate = (good + bad > 0).then(|| format!("{}% ok", good * 100 / (good + bad)));
    let half = Usual::from_runs(runs).map(|usual| format!("median {}", took(usual.half.as_millis() as i64)));
    let text = [rate, half].into_iter().flatten().collect::<Vec<_>>().join(" · ");
    Some(History { strip: Markup::from_html(strip(&input)), text })
}
