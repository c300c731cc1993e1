//! The timeline: past, active and planned runs with one row per job, missed slots, and the number of concurrent runs.

mod events;

use askama::Template;
use everbell::{JobRow, JobStatus};
use everbell_core::outage::Outage;
use everbell_core::store::{GapFilter, JobSort, PageRequest, RecentRuns, RunSummary};
use everbell_core::{Gap, JobId, Zone};
use jiff::{SignedDuration, Timestamp};

use crate::chart::{self, Timeline};
use crate::markup::{Markup, url_part};
use crate::{Frame, Links, Section, UiRequest, UiResponse};
use everbell_http::access::Role;
use everbell_http::api::job_history::moment;
use everbell_http::api::jobs::filter;
use everbell_http::page::{self, CURSOR};
use everbell_http::problem::Problem;
use everbell_wire::form::{Field, Kind, TEXT, optional};

/// How much time is shown: its word, its label, its hours.
const RANGES: [(&str, &str, i64); 4] =
    [("1h", "1 hour", 1), ("6h", "6 hours", 6), ("24h", "24 hours", 24), ("7d", "7 days", 168)];
const DEFAULT_RANGE: usize = 2;

pub(crate) const QUERY: &[Field] = &[
    optional("range", Kind::Word(&["1h", "6h", "24h", "7d"]), "How much time is shown; 24h if absent."),
    optional("around", Kind::Time, "The middle; now if absent."),
    optional("q", TEXT, "Key, target or description contains this, in any case."),
    optional("target", Kind::List { of: &TEXT, max: 50 }, "Jobs with one of these targets."),
    CURSOR,
];

/// How many jobs a page has.
const MAX_ROWS: u32 = 50;
/// How many gaps are looked at.
const MAX_GAPS: u32 = 500;

#[derive(Template)]
#[template(path = "timeline.html")]
struct TimelinePage {
    frame: Frame,
    links: Links,
    range: &'static str,
    earlier: String,
    later: String,
    now_link: Option<String>,
    picture: Markup,
    table: Markup,
    agenda: Markup,
    /// Jobs that ran more often than can be shown.
    cut: usize,
    /// Jobs that fire more often than can be shown.
    frequent: usize,
    /// Jobs that fire for each org.
    for_each: usize,
    next: Option<String>,
    empty: bool,
    /// The reason why the actor may not create jobs.
    no_make: Option<String>,
}

/// A window around a moment.
pub(crate) struct Window {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    pub(crate) now: Timestamp,
    /// The zone of times in words.
    pub(crate) zone: Zone,
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let api_request = request.to_api_request();
    let mut form = request.query(QUERY);
    let word = form.text("range").unwrap_or(RANGES[DEFAULT_RANGE].0).to_owned();
    let (range, _, hours) = RANGES.into_iter().find(|(own, ..)| *own == word).unwrap_or(RANGES[DEFAULT_RANGE]);
    let around = moment(&mut form, "around", None)?;
    let (middle, half) = (around.unwrap_or(request.now), SignedDuration::from_mins(hours * 30));
    let far = |_| Problem::at("parameter", "around", "is too far away");
    let window = Window {
        from: middle.checked_sub(half).map_err(far)?,
        to: middle.checked_add(half).map_err(far)?,
        now: request.now,
        zone: request.clock().zone(None),
    };
    let mut filter = filter(&api_request, &form)?;
    filter.status = vec![JobStatus::Active, JobStatus::Paused];
    filter.sort = JobSort::NextRunAt;
    let after = page::from_query(&api_request)?.after;
    let page = request.jobs().list(&filter, &PageRequest { limit: MAX_ROWS, after }).await?;
    let (summaries, gaps, outages, frame) = tokio::join!(
        summaries(&request, &page.items, &window),
        gaps(&request, &window),
        outages(&request, &window),
        request.frame(Section::Timeline, "Timeline"),
    );
    let (summaries, gaps, outages) = (summaries?, gaps?, outages?);
    let drawn = events::rows(&page.items, &summaries, &gaps, &window);
    let links = Links::new("/timeline", &request.query);
    let (zone, outages) = (window.zone.clone(), events::outages(&outages, &window));
    let runs_of = |row: &chart::Row, from: Timestamp, to: Timestamp| {
        let time = |at: Timestamp| url_part(&at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        format!("/runs?jobKey={}&from={}&to={}", url_part(&row.key), time(from), time(to))
    };
    let load = events::load(&drawn.rows, &window);
    let input = Timeline {
        id: "timeline",
        zone: &zone,
        from: window.from,
        to: window.to,
        now: request.now,
        rows: &drawn.rows,
        load: &load,
        outages: &outages,
        runs_of: &runs_of,
    };
    let moved = |by: SignedDuration| links.with("around", &middle.saturating_add(by).unwrap_or(middle).to_string());
    let next = page::next(&api_request, page.next.as_ref()).map(|cursor| links.with("cursor", &cursor));
    let template = TimelinePage {
        picture: Markup::from_html(chart::timeline(&input)),
        table: Markup::from_html(chart::timeline_table(&input)),
        agenda: Markup::from_html(chart::agenda(&input)),
        cut: drawn.cut,
        frequent: drawn.frequent,
        for_each: drawn.for_each,
        no_make: request.barred(Role::Admin),
        earlier: moved(-half),
        later: moved(half),
        now_link: around.is_some().then(|| links.without("around")),
        empty: page.items.is_empty(),
        range,
        frame,
        links,
        next,
    };
    UiResponse::page(&template)
}

/// The runs of these jobs in the window, as many as one page can have.
async fn summaries(request: &UiRequest, rows: &[JobRow], window: &Window) -> Result<Vec<RunSummary>, Problem> {
    if rows.is_empty() || !request.may_read_runs() {
        return Ok(Vec::new());
    }
    let keys: Vec<_> = rows.iter().map(|row| row.job.definition.key.clone()).collect();
    let each = RecentRuns::most_each(keys.len());
    // A run that began before the window may reach into it.
    let from = window.from.checked_sub(SignedDuration::from_hours(1)).unwrap_or(window.from);
    Ok(request.app.bell.store().recent_runs(&RecentRuns::new(keys, each)?.from(from).to(window.to)).await?)
}

async fn gaps(request: &UiRequest, window: &Window) -> Result<Vec<(JobId, Gap)>, Problem> {
    if !request.may_read_runs() {
        return Ok(Vec::new());
    }
    let filter = GapFilter { from: Some(window.from), to: Some(window.to), ..GapFilter::default() };
    let page = request.runs().gaps(&filter, &PageRequest { limit: MAX_GAPS, after: None }).await?;
    Ok(page.items.into_iter().map(|(job, _, gap)| (job, gap)).collect())
}

async fn outages(request: &UiRequest, window: &Window) -> Result<Vec<Outage>, Problem> {
    if !request.may_read_runs() {
        return Ok(Vec::new());
    }
    Ok(request.app.bell.reports().outages(Some(window.from), Some(window.to)).await?)
}
