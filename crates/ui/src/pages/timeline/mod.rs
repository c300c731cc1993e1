//! The timeline: past, active and planned runs with one row per job, missed slots, and how many runs start when.

mod ahead;
mod events;
mod forecast;
pub(crate) mod herd;
pub(crate) mod month;

use std::collections::BTreeSet;

use askama::Template;
use everbell::client::OrgSchedules;
use everbell::{JobRow, JobStatus};
use everbell_core::outage::Outage;
use everbell_core::store::{Bucket, GapFilter, JobFilter, JobSort, PageRequest, RecentRuns, RunHistogram, RunSummary};
use everbell_core::{Gap, JobId, RunStatus, Zone};
use jiff::{SignedDuration, Timestamp};

use self::ahead::Known;
use self::events::Coming;
use self::forecast::{Forecast, Herd};
use crate::chart::{self, Timeline, counted};
use crate::label_groups::{GROUP, group_name, groups};
use crate::links::Chip;
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
    optional("label", TEXT, "Jobs with this label: `name` or `name=value`."),
    GROUP,
    optional("empty", Kind::Flag, "Also jobs without runs in this time. Default: false."),
    CURSOR,
];

/// The filters that are shown as such, and what they are called.
const FILTERS: [(&str, &str); 3] = [("q", "Text"), ("label", "Label"), ("target", "Target")];

/// How many jobs a page has.
const MAX_ROWS: u32 = 50;
/// How many gaps are looked at.
const MAX_GAPS: u32 = 500;
/// How many jobs the load counts, and how many are read at once.
const MAX_COUNTED_JOBS: usize = 2_000;
const READ_ROWS: u32 = 500;

#[derive(Template)]
#[template(path = "timeline.html")]
struct TimelinePage {
    frame: Frame,
    links: Links,
    /// The filters that are set.
    chips: Vec<Chip>,
    range: &'static str,
    earlier: String,
    later: String,
    now_link: Option<String>,
    /// The pictures: one, or one for each value of a label.
    pictures: Vec<Group>,
    table: Markup,
    /// The names of labels to group by.
    label_names: BTreeSet<String>,
    /// Jobs that ran more often than can be shown.
    cut: usize,
    /// Jobs that fire for each org.
    for_each: usize,
    /// Minutes in which many jobs fire.
    herds: Vec<HerdLine>,
    /// Whether the load has fires of every job, and not only of those that are listed.
    counts_all: bool,
    /// Whether some jobs are not in the load.
    is_cut: bool,
    /// Jobs without anything in this time, and where they are shown too.
    hidden: usize,
    all_link: String,
    next: Option<String>,
    empty: bool,
    /// The address of the calendar feed.
    feed: String,
    /// The reason why the actor may not create jobs.
    no_make: Option<String>,
}

/// The jobs with a value of a label, or all of them.
struct Group {
    /// Its name, how many jobs it has, and the timeline of its jobs alone.
    head: Option<(String, usize, Option<String>)>,
    picture: Markup,
    agenda: Markup,
}

/// A minute in which many jobs fire, and where that can be changed.
struct HerdLine {
    /// `11 jobs start`.
    who: String,
    at: String,
    /// The time of the day alone.
    clock: String,
    href: String,
}

impl HerdLine {
    fn new(herd: &Herd, request: &UiRequest) -> HerdLine {
        let jobs = counted(herd.jobs, "job");
        let start = if herd.jobs == 1 { "starts" } else { "start" };
        let who = match herd.runs {
            runs if runs == herd.jobs => format!("{jobs} {start}"),
            runs => format!("{} of {jobs} start", counted(runs, "run")),
        };
        let there = herd.at.to_zoned(request.clock().zone(None).as_jiff().clone());
        HerdLine {
            who,
            at: request.clock().words(herd.at, None),
            clock: there.strftime("%H:%M").to_string(),
            href: format!("/timeline/herd?at={}", url_time(herd.at)),
        }
    }
}

/// A window around a moment.
pub(crate) struct Window {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    pub(crate) now: Timestamp,
    /// The zone of times in words.
    pub(crate) zone: Zone,
}

impl Window {
    fn around(middle: Timestamp, half: SignedDuration, request: &UiRequest) -> Result<Window, Problem> {
        let far = |_| Problem::at("parameter", "around", "is too far away");
        Ok(Window {
            from: middle.checked_sub(half).map_err(far)?,
            to: middle.checked_add(half).map_err(far)?,
            now: request.now,
            zone: request.clock().zone(None),
        })
    }
}

/// The load below the rows.
struct Lane {
    load: Vec<chart::Load>,
    herds: Vec<Herd>,
    /// Whether it counts every job, and not only those that are listed.
    counts_all: bool,
    /// Whether some jobs are left out.
    is_cut: bool,
}

/// The jobs whose load is counted: all jobs, unless a filter is set.
struct Counted {
    jobs: Vec<JobRow>,
    /// Whether there are more.
    more: bool,
}

impl Counted {
    async fn read(request: &UiRequest, filter: &JobFilter) -> Result<Option<Counted>, Problem> {
        if filter.text.is_some() || !filter.target.is_empty() || filter.label.is_some() {
            return Ok(None);
        }
        let (jobs, more) = counted_jobs(request, filter).await?;
        Ok(Some(Counted { jobs, more }))
    }
}

/// Counts the load: of all jobs, or of those that match a filter and are listed.
async fn lane(
    request: &UiRequest,
    counted: Option<&Counted>,
    (listed, rows): (&[JobRow], &[chart::Row]),
    coming: &Coming<'_>,
) -> Result<Lane, Problem> {
    let bounds = events::bounds(coming.window);
    let counts_all = counted.is_some();
    let started = if counts_all {
        let runs = runs_between(request, &bounds).await?;
        runs.into_iter().map(|(runs, _)| runs).chain(std::iter::repeat(0)).take(bounds.len() - 1).collect()
    } else {
        events::started(rows, &bounds)
    };
    let jobs = counted.map_or(listed, |counted| &counted.jobs);
    let forecast = Forecast::new(&forecast::Input { jobs, known: coming.known }, &bounds);
    let load = events::load(&bounds, &started, &forecast.starts, coming.known.now);
    Ok(Lane {
        load,
        herds: forecast.herds,
        counts_all,
        is_cut: counted.is_some_and(|counted| counted.more) || forecast.is_cut,
    })
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let api_request = request.to_api_request();
    let mut form = request.query(QUERY);
    let word = form.text("range").unwrap_or(RANGES[DEFAULT_RANGE].0).to_owned();
    let (range, _, hours) = RANGES.into_iter().find(|(own, ..)| *own == word).unwrap_or(RANGES[DEFAULT_RANGE]);
    let around = moment(&mut form, "around", None)?;
    let (middle, half) = span(around, hours, request.now);
    let window = Window::around(middle, half, &request)?;
    let status = vec![JobStatus::Active, JobStatus::Paused];
    let filter = JobFilter { status, sort: JobSort::NextRunAt, ..filter(&api_request, &form)? };
    let asked = PageRequest { limit: MAX_ROWS, ..page::from_query(&api_request)? };
    let page = request.jobs().list(&filter, &asked).await?;
    let counted = Counted::read(&request, &filter).await?;
    let (summaries, gaps, outages, frame, freezes, orgs) = tokio::join!(
        summaries(&request, &page.items, &window),
        gaps(&request, &window),
        outages(&request, &window),
        request.frame(Section::Timeline, "Timeline"),
        async { request.app.bell.freezes().list().await },
        org_schedules(&request, counted.iter().flat_map(|counted| &counted.jobs).chain(&page.items), window.to),
    );
    let (summaries, gaps, outages, freezes, orgs) = (summaries?, gaps?, outages?, freezes?, orgs?);
    let coming = Coming { known: Known { freezes: &freezes, orgs: &orgs, now: window.now }, window: &window };
    let mut drawn = events::rows(&page.items, &summaries, &gaps, &coming);
    let lane = lane(&request, counted.as_ref(), (&page.items, &drawn.rows), &coming).await?;
    let listed = drawn.rows.len();
    if !form.flag("empty") {
        drawn.rows.retain(|row| !row.is_empty(window.from, window.to));
    }
    let links = Links::new("/timeline", &request.query);
    let (zone, outages) = (window.zone.clone(), events::outages(&outages, &window));
    let base = Timeline {
        id: "timeline",
        zone: &zone,
        from: window.from,
        to: window.to,
        now: request.now,
        rows: &drawn.rows,
        load: &lane.load,
        outages: &outages,
        runs_of: &runs_of,
    };
    let parts = form.text("group").map_or_else(Vec::new, |label| parts(&page.items, &drawn.rows, label, &links));
    let moved = |by: SignedDuration| links.with("around", &middle.saturating_add(by).unwrap_or(middle).to_string());
    let next = page::next(&api_request, page.next.as_ref()).map(|cursor| links.with("cursor", &cursor));
    let template = TimelinePage {
        feed: format!("{}/next/calendar.ics", request.api_base()),
        pictures: pictures(&base, &parts),
        table: Markup::from_html(chart::timeline_table(&base)),
        label_names: page.items.iter().flat_map(|row| row.job.definition.labels.keys().cloned()).collect(),
        cut: drawn.cut,
        for_each: drawn.for_each,
        herds: lane.herds.iter().map(|herd| HerdLine::new(herd, &request)).collect(),
        counts_all: lane.counts_all,
        is_cut: lane.is_cut,
        hidden: listed - drawn.rows.len(),
        all_link: links.with("empty", "true"),
        no_make: request.barred(Role::Admin),
        earlier: moved(-half),
        later: moved(half),
        now_link: around.is_some().then(|| links.without("around")),
        empty: page.items.is_empty(),
        range,
        frame,
        chips: links.chips(&FILTERS),
        links,
        next,
    };
    UiResponse::page(&template)
}

/// The middle of the window, and half of its length. Around now it stands still for a while, for five minutes of a day: until
/// then an update of the page moves nothing, and sends only the rows with news.
fn span(around: Option<Timestamp>, hours: i64, now: Timestamp) -> (Timestamp, SignedDuration) {
    let half = SignedDuration::from_mins(hours * 30);
    let step = (half.as_secs() / 144).max(1);
    let stepped = Timestamp::from_second(now.as_second().div_euclid(step) * step).unwrap_or(now);
    (around.unwrap_or(stepped), half)
}

/// Where the runs of a row in a time are listed.
fn runs_of(row: &chart::Row, from: Timestamp, to: Timestamp) -> String {
    format!("/runs?jobKey={}&from={}&to={}", url_part(&row.key), url_time(from), url_time(to))
}

/// Draws all rows as one picture, or each group as one.
fn pictures(base: &Timeline<'_>, parts: &[Part]) -> Vec<Group> {
    let drawn = |input: &Timeline<'_>, head| Group {
        head,
        picture: Markup::from_html(chart::timeline(input)),
        agenda: Markup::from_html(chart::agenda(input)),
    };
    if parts.is_empty() {
        return vec![drawn(base, None)];
    }
    let group = |(place, part): (usize, &Part)| {
        let id = format!("timeline-{place}");
        // The load is that of all of them, below the last.
        let load = if place + 1 == parts.len() { base.load } else { &[] };
        drawn(&Timeline { id: &id, rows: &part.rows, load, ..*base }, Some(part.head.clone()))
    };
    parts.iter().enumerate().map(group).collect()
}

/// The rows of a group.
struct Part {
    head: (String, usize, Option<String>),
    rows: Vec<chart::Row>,
}

/// The rows by the values of a label.
fn parts(jobs: &[JobRow], rows: &[chart::Row], label: &str, links: &Links) -> Vec<Part> {
    let value = |row: &chart::Row| {
        let job = jobs.iter().find(|job| job.job.definition.key.as_str() == row.key)?;
        job.job.definition.labels.get(label).cloned()
    };
    let part = |(value, places): (Option<String>, Vec<usize>)| {
        let name = group_name(label, value.as_deref());
        let href = value.as_ref().map(|_| links.with("label", &name));
        let rows: Vec<chart::Row> = places.into_iter().map(|place| rows[place].clone()).collect();
        Part { head: (name, rows.len(), href), rows }
    };
    groups(rows, value).into_iter().map(part).collect()
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
    Ok(request.runs().recent_runs(&RecentRuns::new(keys, each)?.from(from).to(window.to)).await?)
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

/// The jobs that the load counts, those that fire first before others, and whether there are more.
async fn counted_jobs(request: &UiRequest, filter: &JobFilter) -> Result<(Vec<JobRow>, bool), Problem> {
    let (mut jobs, mut after) = (Vec::new(), None);
    loop {
        let page = request.jobs().list(filter, &PageRequest { limit: READ_ROWS, after }).await?;
        jobs.extend(page.items);
        after = page.next;
        if after.is_none() || jobs.len() >= MAX_COUNTED_JOBS {
            return Ok((jobs, after.is_some()));
        }
    }
}

/// When those of these jobs that fire for each org do so before this time.
async fn org_schedules(
    request: &UiRequest,
    jobs: impl IntoIterator<Item = &JobRow>,
    to: Timestamp,
) -> Result<OrgSchedules, Problem> {
    Ok(request.app.bell.reports().org_schedules(jobs, to).await?)
}

/// How many runs of all jobs started between these bounds, and how many of them failed. What is to come has no runs.
async fn runs_between(request: &UiRequest, bounds: &[Timestamp]) -> Result<Vec<(u64, u64)>, Problem> {
    let begun = bounds.partition_point(|bound| *bound <= request.now);
    if !request.may_read_runs() || begun == 0 {
        return Ok(Vec::new());
    }
    let histogram = RunHistogram::new(bounds[..(begun + 1).min(bounds.len())].to_vec())?;
    let buckets = request.runs().count_runs_by_time(&histogram).await?;
    let count = |bucket: &Bucket| (bucket.total() - bucket.count(RunStatus::Skipped), bucket.count(RunStatus::Failed));
    Ok(buckets.iter().map(count).collect())
}

/// A time as a part of an address.
fn url_time(at: Timestamp) -> String {
    url_part(&at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}
