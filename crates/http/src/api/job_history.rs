//! Next runs, gaps, statistics and explained times of a job.

use everbell::client::freeze_at;
use everbell::core::store::{GapFilter, JobRef, PageRequest};
use everbell::{JobKey, JobRow, OrgId, RunFilter, RunStatus, StoreError};
use everbell_core::chain::related;
use everbell_core::org::OrgSlot;
use everbell_core::{GapReason, Scope, Spec, Zone};
use everbell_wire as wire;
use jiff::{Timestamp, Zoned};

use crate::convert;
use crate::page::{self, CURSOR, LIMIT};
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResponse};
use everbell_wire::body::job::time;
use everbell_wire::form::{Field, Form, Kind as Value, TEXT, optional, required};

pub(super) const ORG: Field = optional("orgId", TEXT, "The org, for a job with scope `per_org`.");

pub(crate) const NEXT: &[Field] = &[
    optional("count", Value::Integer { min: 1, max: 1_000 }, "How many times to list. Default: 10."),
    optional("from", Value::Time, "Only times at or after this one, which may be far ahead. Default: now."),
    ORG,
];
pub(crate) const EXPLAIN: &[Field] = &[
    required(
        "at",
        Value::Time,
        "The time to explain. A time without an offset is in the time zone of the job or the org.",
    ),
    ORG,
];
pub(crate) const STATS: &[Field] = &[optional("window", Value::Span, "How far to look back. Default: 30d.")];
pub(super) const REASON: Field =
    optional("reason", Value::Word(wire::gap::GapReason::WORDS), "Only gaps for this reason.");
pub(super) const GAPS_FROM: Field = optional("from", Value::Time, "Only gaps that end at or after this time.");
pub(super) const GAPS_TO: Field = optional("to", Value::Time, "Only gaps that start before this time.");
pub(crate) const GAPS: &[Field] = &[REASON, GAPS_FROM, GAPS_TO, ORG, LIMIT, CURSOR];

/// The most runs that statistics read one by one.
const MAX_SAMPLED_RUNS: u32 = 1_000;
const DEFAULT_WINDOW: std::time::Duration = std::time::Duration::from_hours(30 * 24);

pub(crate) async fn next(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let mut form = request.query(NEXT);
    let count = form.count("count").unwrap_or(10) as usize;
    let job = request.job()?;
    let row = request.jobs().get(&job).await?;
    let org = asked_org(&form)?;
    let from = match form.text("from") {
        Some(_) => moment(&mut form, "from", zone_for(&request, &row, org.as_ref()).await?.as_ref())?,
        None => None,
    };
    if org.is_none() && row.job.definition.scope == Scope::PerOrg {
        return next_of_orgs(&request, &row, from, count).await;
    }
    let fires = match (&org, from) {
        (Some(org), None) => request.jobs().next_fires_for(&job, org, count).await.map_err(query_problem)?,
        (Some(org), Some(from)) => {
            request.jobs().next_fires_for_from(&job, org, from, count).await.map_err(query_problem)?
        }
        (None, None) => request.jobs().next_fires(&job, count).await?,
        (None, Some(from)) => request.jobs().next_fires_from(&job, from, count).await?,
    };
    // In the zone of the org, if one is asked about.
    let spec = |spec: &Spec, at: &Zoned| {
        let zone = at.time_zone().iana_name().and_then(|name| Zone::get(name).ok());
        zone.map_or_else(|| spec.clone(), |zone| spec.in_zone(zone))
    };
    let freezes = request.freezes().list().await?;
    let frozen = |at: &Zoned| freeze_at(&freezes, &row.job.definition, at.timestamp());
    let items = match &row.job.definition.spec {
        Ok(own) => {
            fires.iter().map(|at| wire::Fire::new(&spec(own, at), at.timestamp()).frozen_by(frozen(at))).collect()
        }
        Err(_) => Vec::new(),
    };
    ApiResponse::ok(&wire::Fires { items })
}

/// Lists the next slots of a per-org job, each with the number of orgs.
async fn next_of_orgs(
    request: &ApiRequest,
    row: &JobRow,
    from: Option<Timestamp>,
    count: usize,
) -> Result<ApiResponse, Problem> {
    let definition = &row.job.definition;
    let Ok(spec) = &definition.spec else { return ApiResponse::ok(&wire::Fires { items: Vec::new() }) };
    let slots = request.jobs().next_org_slots(definition.id, from, count).await?;
    let freezes = request.freezes().list().await?;
    let fire = |slot: &OrgSlot| wire::Fire::of_orgs(spec, slot).frozen_by(freeze_at(&freezes, definition, slot.at));
    ApiResponse::ok(&wire::Fires { items: slots.iter().map(fire).collect() })
}

pub(crate) async fn explain(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let job = request.job()?;
    let row = request.jobs().get(&job).await?;
    let mut form = request.query(EXPLAIN);
    let org = asked_org(&form)?;
    let zone = zone_for(&request, &row, org.as_ref()).await?;
    let at = moment(&mut form, "at", zone.as_ref())?;
    let at = at.ok_or_else(|| Problem::at("parameter", "at", "is required"))?;
    let explanation = match &org {
        Some(org) => request.jobs().explain_for(&job, org, at).await.map_err(query_problem)?,
        None => request.jobs().explain(&job, at).await?,
    };
    ApiResponse::ok(&convert::explanation(at, (row.job.definition.id, org.as_ref()), zone.as_ref(), &explanation))
}

/// The most jobs of a chain, and groups of runs, that are listed.
const MAX_CHAIN: usize = 50;
const MAX_GROUPS: u32 = 20;

pub(crate) async fn chain(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let row = request.jobs().get(&request.job()?).await?;
    let definition = &row.job.definition;
    let links = request.jobs().chain_links().await?;
    let fan_in = definition.spec.as_ref().ok().and_then(Spec::fan_in);
    let groups = match fan_in {
        Some(_) => request.jobs().run_groups(&definition.key, MAX_GROUPS).await?,
        None => Vec::new(),
    };
    ApiResponse::ok(&wire::job::Chain {
        jobs: related(&definition.key, &links, MAX_CHAIN).iter().map(wire::job::ChainJob::from).collect(),
        groups: groups.iter().map(|group| wire::job::RunGroup::new(group, fan_in)).collect(),
    })
}

/// The org of a query.
pub(super) fn asked_org(form: &Form<'_>) -> Result<Option<OrgId>, Problem> {
    let org = form.text("orgId").map(OrgId::new).transpose();
    org.map_err(|invalid| Problem::at("parameter", "orgId", invalid.reason))
}

/// Reports an invalid value as an invalid query parameter.
pub(super) fn query_problem(error: StoreError) -> Problem {
    match error {
        StoreError::Invalid(invalid) => Problem::at("parameter", invalid.field, invalid.reason),
        other => other.into(),
    }
}

/// Returns the time zone for local times of a request: that of the named org, or else of the job.
pub(super) async fn zone_for(request: &ApiRequest, row: &JobRow, org: Option<&OrgId>) -> Result<Option<Zone>, Problem> {
    Ok(match org {
        Some(org) => Zone::get(&request.orgs().get(org).await?.place.timezone).ok(),
        None => row.job.definition.spec.as_ref().ok().map(|spec| spec.zone().clone()),
    })
}

pub(crate) async fn gaps(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let mut form = request.query(GAPS);
    let named = request.job()?;
    let row = request.jobs().get(named.clone()).await?;
    // By its key it is the job with all its versions, as for an explanation.
    let (job_id, job_key) = match named {
        JobRef::Key(key) => (None, Some(key)),
        JobRef::Id(_) | JobRef::Version(..) => (Some(row.job.definition.id), None),
    };
    let filter = GapFilter {
        job_id,
        job_key,
        org: asked_org(&form)?,
        reason: form.word("reason", GapReason::from_word),
        label: None,
        from: moment(&mut form, "from", None)?,
        to: moment(&mut form, "to", None)?,
    };
    let page = request.runs().gaps(&filter, &page::from_query(&request)?).await?;
    let runs = request.runs().covering(&page.items).await?;
    let gap = |((job, org, gap), run): (&(_, Option<_>, _), _)| {
        wire::Gap::new(*job, org.as_ref(), gap).with_job_key(Some(row.key())).with_run(run)
    };
    let document = page::document(&request, &page, page.items.iter().zip(runs).map(gap).collect());
    ApiResponse::ok(&document)
}

pub(crate) async fn stats(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let window = request.query(STATS).span("window").unwrap_or(DEFAULT_WINDOW);
    let row = request.jobs().get(request.job()?).await?;
    let from = request.app.bell.now().checked_sub(window);
    let from = from.map_err(|_| Problem::at("parameter", "window", "is too long"))?;
    // By its key it is the job with all its versions, as for gaps.
    let (filter, key) = match request.job()? {
        JobRef::Key(key) => (RunFilter { job_key: Some(key.clone()), ..RunFilter::default() }, Some(key)),
        JobRef::Id(_) | JobRef::Version(..) => {
            (RunFilter { job_id: Some(row.job.definition.id), ..RunFilter::default() }, None)
        }
    };
    // Counters have one-time jobs by target.
    let key = key.filter(|_| !row.job.definition.is_one_time());
    ApiResponse::ok(&statistics(&request, RunFilter { from: Some(from), ..filter }, key, from).await?)
}

/// Few runs are read one by one, which is exact to the second. Many are read from the counters of whole hours, and so are
/// times of which runs may have been pruned.
async fn statistics(
    request: &ApiRequest,
    filter: RunFilter,
    key: Option<JobKey>,
    from: Timestamp,
) -> Result<wire::Stats, Problem> {
    let page = |filter: RunFilter| async move {
        request.runs().list(&filter, &PageRequest { limit: MAX_SAMPLED_RUNS, after: None }).await
    };
    let kept_since = request.app.options().keep.and_then(|keep| request.app.bell.now().checked_sub(keep).ok());
    let is_kept = kept_since.is_none_or(|kept_since| from >= kept_since);
    let sample = page(filter.clone()).await?;
    let Some(key) = key.filter(|_| sample.next.is_some() || !is_kept) else {
        return Ok(wire::Stats::new(from, &sample.items, sample.next.is_none()));
    };
    let counted = request.runs().counters(from, Some(&key)).await?;
    let active = page(RunFilter { status: vec![RunStatus::Pending, RunStatus::Running], ..filter }).await?;
    let complete = counted.complete && active.next.is_none();
    Ok(wire::Stats::from_counters(counted.from, &counted.job(&key), &active.items, complete))
}

/// A time of the query.
pub fn moment(form: &mut Form<'_>, name: &str, zone: Option<&Zone>) -> Result<Option<Timestamp>, Problem> {
    let utc = Zone::utc();
    match time(form, name, zone.unwrap_or(&utc)) {
        None if form.has(name) => Err(Problem::query(std::mem::take(form.faults_mut()))),
        read => Ok(read),
    }
}
