//! The list of jobs: schedule, status, last run and next run of each.

mod history;

use std::collections::{BTreeSet, HashMap};

use askama::Template;
use everbell::{JobFilter, JobRow, JobStatus};
use everbell_core::cron::WarningCode;
use everbell_core::freeze::Freeze;
use everbell_core::store::{JobSort, RunSummary};
use everbell_core::{Definition, Scope, Spec, Zone};
use everbell_wire as wire;
use jiff::{SignedDuration, Timestamp};

use self::history::History;
use crate::clock::{Clock, lasted};
use crate::frame::NavCounts;
use crate::frozen::Frozen;
use crate::label_groups::{GROUP, group_name, groups};
use crate::links::Chip;
use crate::markup::{Markup, url_part};
use crate::pages::action::bulk::MAX_RETURN_PATH_CHARS;
use crate::{Frame, Links, Section, UiRequest, UiResponse, badge};
use everbell_http::access::Role;
use everbell_http::api::jobs::{self, filter};
use everbell_http::page;
use everbell_http::problem::Problem;
use everbell_wire::form::{Field, joined};

/// The query parameters: those of the API, and how to group.
pub(crate) const QUERY: &[Field] = &joined::<{ jobs::LIST.len() + 1 }>(jobs::LIST, &[GROUP]);

/// The filters that are shown as such, and what they are called. The tabs show the status.
const FILTERS: [(&str, &str); 10] = [
    ("q", "Text"),
    ("label", "Label"),
    ("target", "Target"),
    ("scheduleType", "Type"),
    ("lastRunStatus", "Last run"),
    ("source", "Source"),
    ("errored", "Schedule error"),
    ("failing", "Failing"),
    ("scheduled", "Next run"),
    ("jobKey", "Versions of"),
];

/// How far ahead daylight saving time changes are shown.
const CLOCK_CHANGE_HORIZON: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Among more jobs, counting those that are retired would make the page slow.
const MAX_COUNTED_JOBS: u64 = 5_000;

#[derive(Template)]
#[template(path = "jobs.html")]
struct JobsPage {
    frame: Frame,
    links: Links,
    /// Where all that match are paused or resumed.
    matching: Links,
    sort: &'static str,
    /// The filters that are set.
    chips: Vec<Chip>,
    /// Whether versions that an edit replaced are listed, so that a key does not name a row.
    versions: bool,
    /// Whether there was never a job.
    none_yet: bool,
    rows: Vec<Row>,
    /// The names of labels to group by.
    label_names: BTreeSet<String>,
    /// How many jobs are retired, unless they are many.
    archived: Option<u32>,
    /// How many match, if they are all on this page.
    whole: Option<usize>,
    targets: Vec<String>,
    /// The labels of the jobs on this page, to choose from.
    labels: BTreeSet<String>,
    /// Where the list begins, if this is not its first page.
    first: Option<String>,
    next: Option<String>,
    /// The reasons why the actor may not act, or may not create jobs.
    no_act: Option<String>,
    no_make: Option<String>,
}

/// A job in the list.
pub(crate) struct Row {
    /// The group that begins with this row: its name, how many of these jobs it has, and the list of its jobs.
    pub(crate) group: Option<(String, usize, Option<String>)>,
    pub(crate) key: String,
    pub(crate) part: String,
    pub(crate) version: u32,
    pub(crate) target: String,
    pub(crate) schedule: wire::job::Schedule,
    /// The time of a one-time job.
    pub(crate) once_at: Option<Markup>,
    /// The status as a dot, with its word for those who do not see it.
    pub(crate) status: Markup,
    pub(crate) description: String,
    /// The labels, as the filter writes them.
    pub(crate) labels: Vec<String>,
    pub(crate) job_status: JobStatus,
    /// Whether it fires for each org, so that it has no fires of its own.
    pub(crate) for_each: bool,
    pub(crate) errored: bool,
    pub(crate) about: Option<String>,
    pub(crate) history: Option<History>,
    /// Since when it is paused, and until when.
    pub(crate) since: Option<Markup>,
    pub(crate) until: Option<Markup>,
    pub(crate) last: Option<Last>,
    /// The org that `next` is for, of a job that fires for each.
    pub(crate) next_org: Option<String>,
    /// The time in words, and how far away it is.
    pub(crate) next: Option<(String, Markup)>,
    /// The freeze that keeps it from firing then.
    pub(crate) frozen: Option<Frozen>,
    /// The next run of a paused job: hypothetical, or after the end of the pause.
    pub(crate) would: Option<(&'static str, String, Markup)>,
    pub(crate) late: bool,
    /// The effect of the next daylight saving time change.
    pub(crate) dst: Option<String>,
    pub(crate) failures: u32,
}

/// The last run of a job.
pub(crate) struct Last {
    pub(crate) id: String,
    /// The class and icon of its status, and its word.
    pub(crate) status: (&'static str, &'static str),
    /// When it was due, in words.
    pub(crate) at: String,
    pub(crate) away: Markup,
    /// How long it took, if it has ended.
    pub(crate) took: Option<String>,
    pub(crate) failure: Option<String>,
}

impl Row {
    pub(crate) fn new(row: &JobRow, freezes: &[Freeze], clock: &Clock) -> Row {
        let (definition, state) = (&*row.job.definition, &row.job.state);
        let spec = definition.spec.as_ref().ok();
        let zone = spec.map(|spec| spec.zone().clone());
        let next = row.next_run_at();
        let pause = state.pause.as_ref();
        let mut schedule = wire::job::Schedule::from(definition);
        if spec.is_none() && state.error.is_some() {
            // Why stands with its status.
            "Cannot be read".clone_into(&mut schedule.text);
        }
        let at = |at| clock.at(at, zone.as_ref());
        let paused = state.status == JobStatus::Paused;
        let for_each = definition.scope == Scope::PerOrg;
        // The time zone of a per-org job does not apply to any org.
        let own = spec.filter(|_| !for_each);
        Row {
            history: None,
            group: None,
            key: definition.key.to_string(),
            part: url_part(definition.key.as_str()),
            version: definition.version,
            target: definition.target.to_string(),
            once_at: schedule.run_at.map(at),
            schedule,
            status: badge::job_dot(state.status, state.error.is_some()),
            description: definition.description.clone(),
            labels: label_texts(definition),
            job_status: state.status,
            for_each,
            errored: state.error.is_some(),
            about: pause
                .map(|pause| format!("{} · paused by {}", pause.reason, pause.by))
                .or_else(|| state.error.clone()),
            since: pause.map(|pause| clock.away(pause.at)),
            until: pause.and_then(|pause| pause.until).map(at),
            last: row.last_run.as_ref().map(|run| Last::new(run, clock, zone.as_ref())),
            next_org: row.next_for_org.as_ref().map(|(_, org)| org.to_string()),
            next: next.map(|next| (clock.words(next, zone.as_ref()), clock.away(next))),
            frozen: next.and_then(|next| Frozen::at(freezes, definition, next, clock)),
            would: own.filter(|_| paused).and_then(|spec| {
                let end = pause.and_then(|pause| pause.until).filter(|until| *until > clock.now);
                let word = if end.is_some() { "will be" } else { "would be" };
                spec.next_after(end.unwrap_or(clock.now))
                    .map(|next| (word, clock.words(next, zone.as_ref()), clock.away(next)))
            }),
            late: next.is_some_and(|at| at < clock.now),
            dst: own.filter(|_| state.status != JobStatus::Retired).and_then(|spec| clock_change(spec, clock.now)),
            failures: state.consecutive_failures,
        }
    }

    /// Whether anything can still be done to it.
    pub(crate) fn is_living(&self) -> bool {
        self.job_status != JobStatus::Retired
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.job_status == JobStatus::Paused
    }
}

/// The labels of a job, as the filter writes them.
fn label_texts(definition: &Definition) -> Vec<String> {
    definition.labels.iter().map(|(name, value)| format!("{name}={value}")).collect()
}

/// Describes the effect of a daylight saving time change within the horizon.
fn clock_change(spec: &Spec, now: Timestamp) -> Option<String> {
    let until = now.checked_add(CLOCK_CHANGE_HORIZON).ok()?;
    if spec.zone().changes_between(now, until).is_empty() {
        return None;
    }
    let last = until.to_zoned(spec.zone().as_jiff().clone()).date();
    let moved = spec.warnings(now).into_iter().find(|warning| {
        matches!(warning.code, WarningCode::DstGap | WarningCode::DstFold)
            && warning.local_date.is_some_and(|date| date <= last)
    });
    moved.map(|warning| warning.detail)
}

impl Last {
    fn new(run: &everbell::RunRecord, clock: &Clock, zone: Option<&Zone>) -> Last {
        Last {
            id: run.id.to_string(),
            status: badge::run_words(run.status),
            at: clock.words(run.scheduled_at, zone),
            away: clock.away(run.scheduled_at),
            took: run.finished_at.map(|end| lasted(run.started_at, Some(end))),
            failure: run.failure.as_ref().map(|failure| failure.code.as_str().to_owned()),
        }
    }
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let api_request = request.to_api_request();
    let form = api_request.query(QUERY);
    let mut filter = filter(&api_request, &form)?;
    // Versions that an edit replaced belong to the page of their job.
    filter.latest = filter.key.is_none() && filter.status.contains(&JobStatus::Retired);
    let versions = filter.key.is_some() && filter.status.contains(&JobStatus::Retired);
    let sort = match filter.sort {
        JobSort::Key => "jobKey",
        JobSort::NextRunAt => "nextRunAt",
        JobSort::CreatedAt => "-createdAt",
        JobSort::Target => "target",
        JobSort::LastRun => "-lastRunAt",
    };
    let page_request = page::from_query(&api_request)?;
    let listed = async {
        let page = request.jobs().list(&filter, &page_request).await?;
        let summaries = history::summaries(&request, &page.items).await?;
        Ok::<_, Problem>((page, summaries, request.app.bell.freezes().list().await?))
    };
    let asked = form.list("target");
    let (listed, frame, targets) =
        tokio::join!(listed, request.frame(Section::Jobs, "Jobs"), targets(&request, &asked));
    let archived = archived(&request, frame.nav_counts.as_ref()).await?;
    let (mut page, summaries, freezes) = listed?;
    if !request.may_read_runs() {
        page.items.iter_mut().for_each(|row| row.last_run = None);
    }
    let clock = request.clock();
    let links = Links::new("/jobs", &request.query);
    let next = page::next(&api_request, page.next.as_ref()).map(|cursor| links.with("cursor", &cursor));
    let first = form.has("cursor").then(|| links.here());
    let mut rows = rows(&page.items, &summaries, &freezes, &clock);
    if let Some(label) = form.text("group") {
        rows = grouped(rows, &page.items, label, &links);
    }
    let none_yet = frame.nav_counts.as_ref().is_some_and(|nav_counts| nav_counts.jobs + nav_counts.retired == 0);
    let template = JobsPage {
        frame,
        none_yet,
        matching: matching(&request),
        labels: page.items.iter().flat_map(|row| label_texts(&row.job.definition)).collect(),
        whole: (first.is_none() && next.is_none()).then_some(page.items.len()),
        label_names: page.items.iter().flat_map(|row| row.job.definition.labels.keys().cloned()).collect(),
        rows,
        targets: targets?,
        archived,
        no_act: request.barred(Role::Operator),
        no_make: request.barred(Role::Admin),
        chips: links.chips(&FILTERS),
        links,
        sort,
        versions,
        first,
        next,
    };
    UiResponse::page(&template)
}

/// Counts the retired jobs, without versions that an edit replaced; `None` if there are too many jobs to look at all.
async fn archived(request: &UiRequest, counts: Option<&NavCounts>) -> Result<Option<u32>, Problem> {
    if counts.is_none_or(|counts| counts.jobs + counts.retired > MAX_COUNTED_JOBS) {
        return Ok(None);
    }
    let retired = JobFilter { status: vec![JobStatus::Retired], latest: true, ..JobFilter::default() };
    let counted = request.jobs().count(&retired, MAX_COUNTED_JOBS as u32).await?;
    Ok(Some(counted))
}

/// The jobs of a page, each with its last runs.
fn rows(jobs: &[JobRow], summaries: &HashMap<String, Vec<RunSummary>>, freezes: &[Freeze], clock: &Clock) -> Vec<Row> {
    let row = |job: &JobRow| {
        let (key, spec) = (job.job.definition.key.as_str(), job.job.definition.spec.as_ref().ok());
        let runs = summaries.get(key).map_or(&[][..], Vec::as_slice);
        let history = history::drawn(&job.job.definition, runs, clock, spec.map(Spec::zone));
        Row { history, ..Row::new(job, freezes, clock) }
    };
    jobs.iter().map(row).collect()
}

/// The rows in the order of the values of a label; the first of each group has its name.
fn grouped(rows: Vec<Row>, jobs: &[JobRow], label: &str, links: &Links) -> Vec<Row> {
    let groups = groups(jobs, |job| job.job.definition.labels.get(label).cloned());
    let mut rows: Vec<Option<Row>> = rows.into_iter().map(Some).collect();
    let mut ordered = Vec::with_capacity(rows.len());
    for (value, places) in groups {
        let name = group_name(label, value.as_deref());
        let href = value.as_ref().map(|_| links.with("label", &name));
        let mut group = Some((name, places.len(), href));
        for place in places {
            ordered.extend(rows[place].take().map(|row| Row { group: group.take(), ..row }));
        }
    }
    ordered
}

/// The filters without the order, for what is done to all that match; and the way back to the list as it is.
fn matching(request: &UiRequest) -> Links {
    let mut filters = request.query.as_object().cloned().unwrap_or_default();
    filters.retain(|name, _| !["sort", "limit", "jobKey", "group"].contains(&name.as_str()));
    filters.insert("all".to_owned(), true.into());
    if request.here.len() <= MAX_RETURN_PATH_CHARS {
        filters.insert("back".to_owned(), request.here.as_str().into());
    }
    Links::new("", &serde_json::Value::Object(filters))
}

/// Returns the targets that are served, and those of the filter.
pub(crate) async fn targets(request: &UiRequest, chosen: &[&str]) -> Result<Vec<String>, Problem> {
    let instances = request.app.bell.store().list_instances().await?;
    let served = instances.iter().flat_map(|instance| instance.targets.iter().map(ToString::to_string));
    let all: BTreeSet<String> = served.chain(chosen.iter().map(|target| (*target).to_owned())).collect();
    Ok(all.into_iter().collect())
}

#[cfg(test)]
mod tests;
