//! What people ask about a job: when it fires, how it fares, what became of a time.

use everbell::RunFilter;
use everbell::core::store::{GapFilter, PageRequest};
use everbell_core::{GapReason, JobId, Zone};
use jiff::Timestamp;

use crate::form::job::time;
use crate::form::{Field, Form, Kind as Value, optional, required};
use crate::http::call::{Answer, Call};
use crate::http::model::{ExplanationDocument, Fires, GapDocument, StatsDocument};
use crate::http::page::{self, CURSOR, LIMIT};
use crate::http::problem::Problem;
use crate::preview::Fire;

pub(crate) const NEXT: &[Field] =
    &[optional("count", Value::Integer { min: 1, max: 1_000 }, "How many fires; 10 if absent.")];
pub(crate) const EXPLAIN: &[Field] =
    &[required("at", Value::Time, "The time in question; without an offset it is read in the job's zone.")];
pub(crate) const STATS: &[Field] = &[optional("window", Value::Span, "How far back; 30d if absent.")];
pub(crate) const GAPS: &[Field] = &[
    optional(
        "reason",
        Value::Word(&["missed", "coalesced", "paused", "dst_gap", "expired", "errored"]),
        "Only gaps for this reason.",
    ),
    optional("from", Value::Time, "Gaps that end at or after this."),
    optional("to", Value::Time, "Gaps that begin before this."),
    LIMIT,
    CURSOR,
];

/// The most runs that statistics look at.
const SAMPLE: u32 = 1_000;
const DEFAULT_WINDOW: std::time::Duration = std::time::Duration::from_hours(30 * 24);

pub(crate) async fn next(call: Call) -> Result<Answer, Problem> {
    let count = call.query(NEXT).count("count").unwrap_or(10);
    let job = call.job()?;
    let row = call.jobs().get(&job).await?;
    let fires = call.jobs().next_fires(&job, count as usize).await?;
    let items = match &row.job.definition.spec {
        Ok(spec) => fires.iter().map(|at| Fire::new(spec, at.timestamp()).document()).collect(),
        Err(_) => Vec::new(),
    };
    Answer::ok(&Fires { items })
}

pub(crate) async fn explain(call: Call) -> Result<Answer, Problem> {
    let job = call.job()?;
    let row = call.jobs().get(&job).await?;
    let zone = row.job.definition.spec.as_ref().ok().map(|spec| spec.zone().clone());
    let mut form = call.query(EXPLAIN);
    let at = moment(&mut form, "at", zone.as_ref())?;
    let at = at.ok_or_else(|| Problem::at("parameter", "at", "is required"))?;
    let told = call.jobs().explain(&job, at).await?;
    Answer::ok(&ExplanationDocument::of(at, row.job.definition.id, zone.as_ref(), &told))
}

pub(crate) async fn gaps(call: Call) -> Result<Answer, Problem> {
    let mut form = call.query(GAPS);
    let row = call.jobs().get(call.job()?).await?;
    let filter = GapFilter {
        job_id: Some(row.job.definition.id),
        org: None,
        reason: form.word("reason", GapReason::from_word),
        from: moment(&mut form, "from", None)?,
        to: moment(&mut form, "to", None)?,
    };
    let page = call.runs().gaps(&filter, &page::request(&call)?).await?;
    let document = page::document(
        &call,
        &page,
        page.items.iter().map(|(job, org, gap)| GapDocument::of(*job, org.as_ref(), gap)).collect(),
    );
    Answer::ok(&document)
}

pub(crate) async fn stats(call: Call) -> Result<Answer, Problem> {
    let window = call.query(STATS).span("window").unwrap_or(DEFAULT_WINDOW);
    let row = call.jobs().get(call.job()?).await?;
    let from = call.app.bell.now().checked_sub(window);
    let from = from.map_err(|_| Problem::at("parameter", "window", "is too long"))?;
    Answer::ok(&statistics(&call, row.job.definition.id, from).await?)
}

async fn statistics(call: &Call, job: JobId, from: Timestamp) -> Result<StatsDocument, Problem> {
    let filter = RunFilter { job_id: Some(job), from: Some(from), ..RunFilter::default() };
    let page = call.runs().list(&filter, &PageRequest { limit: SAMPLE, after: None }).await?;
    Ok(StatsDocument::of(from, &page.items, page.next.is_none()))
}

/// A time of the query.
pub(crate) fn moment(form: &mut Form<'_>, name: &str, zone: Option<&Zone>) -> Result<Option<Timestamp>, Problem> {
    let utc = Zone::utc();
    match time(form, name, zone.unwrap_or(&utc)) {
        None if form.has(name) => Err(Problem::query(std::mem::take(form.faults_mut()))),
        read => Ok(read),
    }
}
