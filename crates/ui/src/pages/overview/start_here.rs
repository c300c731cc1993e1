//! The first steps, shown while there are few jobs.

use everbell::{RunFilter, RunStatus};
use everbell_core::store::PageRequest;

use crate::UiRequest;
use crate::clock::Clock;
use crate::markup::{Markup, url_part};
use everbell_http::problem::Problem;

/// From this many jobs on the introduction is not shown.
const ENOUGH_JOBS: u64 = 3;
/// How much of an output is shown.
const MAX_OUTPUT_CHARS: usize = 400;

/// The first steps, and an example of a run.
pub(super) struct StartHere {
    pub(super) has_jobs: bool,
    pub(super) run: Option<FirstRun>,
}

/// The newest run that succeeded.
pub(super) struct FirstRun {
    pub(super) id: String,
    pub(super) key: String,
    pub(super) part: String,
    pub(super) away: Markup,
    /// The beginning of its output.
    pub(super) output: String,
}

impl StartHere {
    /// `None` if there are enough jobs.
    pub(super) async fn load(request: &UiRequest, jobs: u64) -> Result<Option<StartHere>, Problem> {
        if jobs >= ENOUGH_JOBS {
            return Ok(None);
        }
        let run = if request.may_read_runs() { FirstRun::load(request, &request.clock()).await? } else { None };
        Ok(Some(StartHere { has_jobs: jobs > 0, run }))
    }
}

impl FirstRun {
    async fn load(request: &UiRequest, clock: &Clock) -> Result<Option<FirstRun>, Problem> {
        let filter = RunFilter { status: vec![RunStatus::Succeeded], ..RunFilter::default() };
        let newest = request.runs().list(&filter, &PageRequest { limit: 1, after: None }).await?;
        let Some(run) = newest.items.first() else { return Ok(None) };
        let Some(key) = run.job_key.as_ref().map(ToString::to_string) else { return Ok(None) };
        // A list has no outputs.
        let run = request.runs().get(run.id).await?;
        let output = run.output.as_deref().unwrap_or("").trim_end();
        let output = match output.char_indices().nth(MAX_OUTPUT_CHARS) {
            Some((at, _)) => format!("{}…", &output[..at]),
            None => output.to_owned(),
        };
        let away = clock.away(run.scheduled_at);
        Ok(Some(FirstRun { id: run.id.to_string(), part: url_part(&key), key, away, output }))
    }
}
