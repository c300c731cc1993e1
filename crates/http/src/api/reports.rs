//! Reports over all jobs: gaps, outages, next fires, backfills and statistics.

use std::time::Duration;

use everbell::client::{NextFire, NextRequest};
use everbell::core::store::GapFilter;
use everbell::{JobKey, Reports};
use everbell_core::GapReason;
use everbell_wire as wire;
use everbell_wire::form::{Field, Form, Kind as Value, TEXT, optional};
use jiff::Timestamp;

use super::job_history::{GAPS_FROM, GAPS_TO, ORG, REASON, asked_org, moment};
use super::jobs::label;
use super::top::labeled;
use crate::convert;
use crate::page::{self, CURSOR, LIMIT};
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResponse};

const LABEL: Field = optional("label", TEXT, "Only jobs with this label: `name` or `name=value`.");
const JOB_KEY: Field = optional("jobKey", TEXT, "Only the job with this key, in any version.");

pub(crate) const GAPS: &[Field] = &[REASON, GAPS_FROM, GAPS_TO, JOB_KEY, LABEL, ORG, LIMIT, CURSOR];

pub(crate) const OUTAGES: &[Field] = &[
    optional("from", Value::Time, "Only outages that end at or after this time."),
    optional("to", Value::Time, "Only outages that start before this time."),
    optional("empty", Value::Flag, "Also outages in which no job had a slot. Default: false."),
    optional("label", TEXT, "Count only current jobs with this label: `name` or `name=value`."),
];

pub(crate) const NEXT: &[Field] = &[
    optional("from", Value::Time, "Only times at or after this one, which may be far ahead. Default: now."),
    optional("to", Value::Time, "Only times before this one."),
    optional("within", Value::Span, "Only times within this duration after `from`. Not together with `to`."),
    LABEL,
    optional("limit", Value::Integer { min: 1, max: 1_000 }, "How many times to list at most. Default: 50."),
];

pub(crate) const BACKFILLS: &[Field] = &[
    optional(
        "label",
        TEXT,
        "Only backfills of current jobs with this label: `name` or `name=value`. A page may have fewer items than its limit.",
    ),
    optional("limit", Value::Integer { min: 1, max: 50 }, "The maximum number of items per page. Default: 20."),
    CURSOR,
];

pub(crate) const STATS: &[Field] = &[
    optional("window", Value::Span, "How far to look back, at most 31d. Default: 24h. Not together with `from`."),
    optional("from", Value::Time, "The start of the window."),
    optional("to", Value::Time, "The end of the window, exclusive. Default: now."),
];

const DEFAULT_FIRES: u32 = 50;
const DEFAULT_BACKFILLS: u32 = 20;
const DEFAULT_WINDOW: Duration = Duration::from_hours(24);
const MAX_WINDOW: Duration = Duration::from_hours(31 * 24);

impl ApiRequest {
    /// Returns the reports over all jobs.
    pub fn reports(&self) -> Reports {
        self.app.bell.reports()
    }
}

pub(crate) async fn gaps(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let mut form = request.query(GAPS);
    let key = form.text("jobKey").map(JobKey::new).transpose();
    let filter = GapFilter {
        job_id: None,
        job_key: key.map_err(|invalid| Problem::at("parameter", "jobKey", invalid.reason))?,
        org: asked_org(&form)?,
        reason: form.word("reason", GapReason::from_word),
        label: form.text("label").map(label),
        from: moment(&mut form, "from", None)?,
        to: moment(&mut form, "to", None)?,
    };
    let page = request.runs().gaps(&filter, &page::from_query(&request)?).await?;
    let keys = request.reports().job_keys(page.items.iter().map(|(job, _, _)| *job)).await?;
    let runs = request.runs().covering(&page.items).await?;
    let gap = |((job, org, gap), run): (&(_, Option<_>, _), _)| {
        wire::Gap::new(*job, org.as_ref(), gap).with_job_key(keys.get(job)).with_run(run)
    };
    let document = page::document(&request, &page, page.items.iter().zip(runs).map(gap).collect());
    Ok(page::linked(&request, "/gaps", document.next_cursor.as_deref(), ApiResponse::ok(&document)?))
}

pub(crate) async fn outages(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let mut form = request.query(OUTAGES);
    let (from, to) = (moment(&mut form, "from", None)?, moment(&mut form, "to", None)?);
    let mut outages = request.reports().outages(from, to).await?;
    if let Some(label) = form.text("label") {
        let wanted = labeled(&request.app, label).await?;
        for outage in &mut outages {
            outage.jobs.retain(|job| wanted.contains(job.job_key.as_str()));
        }
    }
    let outages = outages.iter().filter(|outage| form.flag("empty") || !outage.jobs.is_empty());
    ApiResponse::ok(&wire::Items { items: outages.map(wire::Outage::from).collect() })
}

pub(crate) async fn next(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let mut form = request.query(NEXT);
    let (from, to) = (moment(&mut form, "from", None)?, moment(&mut form, "to", None)?);
    let now = request.app.bell.now();
    let until = match (to, form.span("within")) {
        (Some(_), Some(_)) => {
            return Err(Problem::at("parameter", "within", "cannot be combined with `to`"));
        }
        (to, None) => to,
        (None, Some(within)) => {
            let end = from.unwrap_or(now).max(now).checked_add(within);
            Some(end.map_err(|_| Problem::at("parameter", "within", "is too long"))?)
        }
    };
    let limit = form.count("limit").unwrap_or(DEFAULT_FIRES) as usize;
    let next = NextRequest { from, until, label: form.text("label").map(label), most_a_day: None, limit };
    let fires = request.reports().next(&next).await?;
    let items = fires.fires.iter().map(fire).collect();
    ApiResponse::ok(&wire::NextFires { items, more: fires.more, complete: fires.complete })
}

fn fire(fire: &NextFire) -> wire::NextFire {
    let definition = &fire.job.job.definition;
    let timer = fire.job.timer.as_ref();
    let own = definition.spec.as_ref().ok().map(|spec| wire::Fire::new(spec, fire.at));
    let frozen_until = fire.frozen.as_ref().and_then(everbell_core::freeze::Freeze::span).map(|span| span.until);
    wire::NextFire {
        at: fire.at,
        local: own.as_ref().map_or_else(|| fire.at.to_string(), |own| own.local.clone()),
        job_key: definition.key.to_string(),
        job_id: definition.id.to_string(),
        target: definition.target.to_string(),
        moved_from: timer.filter(|timer| timer.next_run_at == Some(fire.at)).and_then(|timer| timer.rescheduled_from),
        org_id: fire.orgs.as_ref().and_then(|slot| slot.first_org.as_ref()).map(ToString::to_string),
        orgs: fire.orgs.as_ref().map(|slot| slot.orgs),
        runs: Some(fire.runs).filter(|runs| *runs != fire.orgs.as_ref().map_or(1, |slot| slot.orgs)),
        zones: fire.orgs.as_ref().map(|slot| slot.zones).filter(|zones| *zones > 0),
        spread_ms: fire.orgs.as_ref().and_then(wire::preview::spread_ms),
        frozen: fire.frozen.as_ref().map(|freeze| freeze.reason.clone()),
        frozen_until,
        note: own.and_then(|own| own.note).filter(|_| fire.orgs.is_none()),
    }
}

pub(crate) async fn backfills(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let mut asked = page::from_query(&request)?;
    let form = request.query(BACKFILLS);
    asked.limit = form.count("limit").unwrap_or(DEFAULT_BACKFILLS);
    let wanted = match form.text("label") {
        Some(label) => Some(labeled(&request.app, label).await?),
        None => None,
    };
    let page = request.reports().backfills(&asked).await?;
    let is_wanted = |key: &JobKey| wanted.as_ref().is_none_or(|wanted| wanted.contains(key.as_str()));
    let items = page.items.iter().filter(|(key, _)| is_wanted(key));
    let items = items.map(|(_, report)| convert::backfill_report(report)).collect();
    let document = page::document(&request, &page, items);
    Ok(page::linked(&request, "/backfills", document.next_cursor.as_deref(), ApiResponse::ok(&document)?))
}

pub(crate) async fn stats(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let mut form = request.query(STATS);
    let (from, to) = window(&mut form, request.app.bell.now())?;
    let stats = request.reports().stats(from, to).await?;
    ApiResponse::ok(&wire::ClusterStats::new(&stats.runs, &stats.gaps, stats.absences.len()))
}

/// The window of statistics.
fn window(form: &mut Form<'_>, now: Timestamp) -> Result<(Timestamp, Timestamp), Problem> {
    let (from, to) = (moment(form, "from", None)?, moment(form, "to", None)?.unwrap_or(now));
    let from = match (from, form.span("window")) {
        (Some(_), Some(_)) => return Err(Problem::at("parameter", "window", "cannot be combined with `from`")),
        (Some(from), None) => from,
        (None, window) => {
            let from = to.checked_sub(window.unwrap_or(DEFAULT_WINDOW));
            from.map_err(|_| Problem::at("parameter", "window", "is too long"))?
        }
    };
    if from >= to {
        return Err(Problem::at("parameter", "from", "must be before `to`"));
    }
    if Duration::try_from(to.duration_since(from)).map_or(true, |length| length > MAX_WINDOW) {
        return Err(Problem::at("parameter", "window", "must be at most 31 days"));
    }
    Ok((from, to))
}
