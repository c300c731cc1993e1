//! Finds jobs, runs, orgs, pages and actions by a few letters. Scripts show it as a palette over any page.

mod commands;

use askama::Template;
use everbell::{JobFilter, JobRow, JobStatus};
use everbell_core::JobKey;
use everbell_core::store::{OrgFilter, PageRequest};

use self::commands::Subject;
use crate::badge::run_words;
use crate::markup::url_part;
use crate::{Frame, Section, UiRequest, UiResponse};
use everbell_http::access::Role;
use everbell_http::api::runs::find_by_prefix;
use everbell_http::problem::Problem;
use everbell_wire::form::{Field, TEXT, optional};

/// The query parameters.
pub(crate) const QUERY: &[Field] =
    &[optional("q", TEXT, "What to look for."), optional("job", TEXT, "The job whose page is open.")];

/// The most results of each kind.
const MAX_JOBS: u32 = 8;
const MAX_RUNS: u32 = 5;
const MAX_ORGS: u32 = 5;
/// Actions are offered for this many of the jobs found.
const MAX_ACTED_ON: usize = 2;
/// A longer text is cut.
const MAX_QUERY_CHARS: usize = 200;

/// Pages: name, other words for it, address.
const PAGES: [(&str, &str, &str); 13] = [
    ("Overview", "home dashboard health", "/"),
    ("Jobs", "schedules cron list", "/jobs"),
    ("Runs", "history executions", "/runs"),
    ("Failed runs", "errors failures", "/runs?status=failed"),
    ("Problems", "alerts notifications channels", "/problems"),
    ("Top", "noisy costly slow failing jobs", "/top"),
    ("Timeline", "forecast load", "/timeline"),
    ("Calendars", "holidays freeze closures", "/calendars"),
    ("Orgs", "tenants organizations", "/orgs"),
    ("Targets", "handlers programs", "/targets"),
    ("Cluster", "instances servers", "/cluster"),
    ("Audit", "log changes who", "/audit"),
    ("Settings", "tokens theme sessions", "/settings"),
];

/// Actions that need no job, for operators.
const OPERATOR_ACTIONS: [(&str, &str, &str); 1] = [("Announce a freeze", "create add pause all jobs", "/freezes/new")];

/// Actions that need no job, for admins.
const ADMIN_ACTIONS: [(&str, &str, &str); 4] = [
    ("New job", "create add", "/new"),
    ("Import jobs", "create cron file crontab kubernetes cronjob systemd timer", "/import"),
    ("New org", "create tenant", "/new-org"),
    ("New calendar", "create add holidays", "/new-calendar"),
];

#[derive(Template)]
#[template(path = "find.html")]
struct FindPage {
    frame: Frame,
    q: String,
    groups: Vec<(&'static str, Vec<SearchResult>)>,
}

/// One result.
#[derive(Debug, PartialEq, Eq)]
struct SearchResult {
    name: String,
    note: String,
    href: String,
    /// Whether it is a form that opens above the page.
    opens_dialog: bool,
}

impl SearchResult {
    fn new(name: impl Into<String>, note: impl Into<String>, href: impl Into<String>) -> SearchResult {
        SearchResult { name: name.into(), note: note.into(), href: href.into(), opens_dialog: false }
    }
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let query = request.query(QUERY);
    let text: String = query.text("q").unwrap_or_default().trim().chars().take(MAX_QUERY_CHARS).collect();
    let (verb, name) = commands::split(&text);
    let open = query.text("job").unwrap_or_default();
    let (found, named, open, runs, orgs) = tokio::join!(
        jobs(&request, &text),
        async { if verb.is_empty() { Ok(Vec::new()) } else { jobs(&request, name).await } },
        open_job(&request, open),
        runs(&request, &text),
        orgs(&request, &text)
    );
    let (found, named, open) = (found?, named?, open?);
    let plain = |(name, _, href): &(&'static str, &str, &'static str)| SearchResult::new(*name, "", *href);
    let mut actions: Vec<SearchResult> = match (verb, name) {
        ("", "") => Vec::new(),
        ("", _) | (_, "") => found.iter().take(MAX_ACTED_ON).flat_map(|job| commands::usual(&request, job)).collect(),
        (verb, _) => {
            named.iter().take(MAX_JOBS as usize).flat_map(|job| commands::called(&request, job, verb)).collect()
        }
    };
    for (role, all) in [(Role::Operator, &OPERATOR_ACTIONS[..]), (Role::Admin, &ADMIN_ACTIONS)] {
        if request.barred(role).is_none() {
            actions.extend(matching(all, &text).map(plain));
        }
    }
    let mut pages: Vec<SearchResult> = matching(&PAGES, &text).map(plain).collect();
    if request.barred(Role::Operator).is_some() {
        pages.retain(|page| page.href != "/audit");
    }
    let on_open: Vec<SearchResult> = open.iter().flat_map(|job| commands::on_open(&request, job, &text)).collect();
    actions.retain(|action| on_open.iter().all(|other| other.href != action.href));
    let groups = [
        ("This job", on_open),
        ("Jobs", found.iter().map(Subject::link).collect()),
        ("Runs", runs?),
        ("Orgs", orgs?),
        ("Actions", actions),
        ("Pages", pages),
    ];
    let page = FindPage {
        groups: groups.into_iter().filter(|(_, found): &(_, Vec<SearchResult>)| !found.is_empty()).collect(),
        frame: request.frame(Section::Find, "Search").await,
        q: text,
    };
    UiResponse::page(&page)
}

/// Those whose name or other words contain every word of the text.
fn matching<'a>(
    all: &'a [(&'static str, &'static str, &'static str)],
    text: &str,
) -> impl Iterator<Item = &'a (&'static str, &'static str, &'static str)> {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    all.iter().filter(move |(name, also, _)| {
        let own = format!("{} {also}", name.to_lowercase());
        words.iter().all(|word| own.contains(word.as_str()))
    })
}

/// Jobs whose key, description or target contains the text; those whose key begins with it come first.
async fn jobs(request: &UiRequest, text: &str) -> Result<Vec<Subject>, Problem> {
    let filter = JobFilter {
        status: vec![JobStatus::Active, JobStatus::Paused],
        text: Some(text.to_owned()).filter(|text| !text.is_empty()),
        ..JobFilter::default()
    };
    let page = request.jobs().list(&filter, &PageRequest { limit: MAX_JOBS, after: None }).await?;
    let exact = exact(request, text, &page.items).await?;
    let mut found: Vec<Subject> = exact.iter().chain(&page.items).map(Subject::new).collect();
    let wanted = text.to_lowercase();
    found.sort_by_key(|job| (job.key != text, !job.key.to_lowercase().starts_with(&wanted)));
    found.truncate(MAX_JOBS as usize);
    Ok(found)
}

/// The job with this key, unless it is retired.
async fn open_job(request: &UiRequest, key: &str) -> Result<Option<Subject>, Problem> {
    Ok(exact(request, key, &[]).await?.as_ref().map(Subject::new))
}

/// The job with exactly this key, if it is not among the first that contain the text.
async fn exact(request: &UiRequest, text: &str, found: &[JobRow]) -> Result<Option<JobRow>, Problem> {
    let Some(key) = JobKey::new(text).ok().filter(|key| found.iter().all(|row| row.job.definition.key != *key)) else {
        return Ok(None);
    };
    let filter =
        JobFilter { key: Some(key), status: vec![JobStatus::Active, JobStatus::Paused], ..JobFilter::default() };
    Ok(request.jobs().list(&filter, &PageRequest { limit: 1, after: None }).await?.items.pop())
}

/// Runs whose id begins with the text.
async fn runs(request: &UiRequest, text: &str) -> Result<Vec<SearchResult>, Problem> {
    if !request.may_read_runs() {
        return Ok(Vec::new());
    }
    let runs = find_by_prefix(&request.to_api_request(), text, MAX_RUNS).await?;
    let found = runs.iter().map(|run| {
        let name = run.job_key.as_ref().map_or_else(|| run.target.to_string(), ToString::to_string);
        SearchResult::new(
            run.id.to_string(),
            format!("{name} · {}", run_words(run.status).1),
            format!("/runs/{}", run.id),
        )
    });
    Ok(found.collect())
}

async fn orgs(request: &UiRequest, text: &str) -> Result<Vec<SearchResult>, Problem> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let filter = OrgFilter { text: Some(text.to_owned()), ..OrgFilter::default() };
    let page = request.orgs().list(&filter, &PageRequest { limit: MAX_ORGS, after: None }).await?;
    let found = page.items.iter().map(|org| {
        let id = org.id.to_string();
        let href = format!("/orgs/{}", url_part(&id));
        SearchResult::new(id, org.place.timezone.clone(), href)
    });
    Ok(found.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_by_all_words_in_any_case() {
        let found = |text: &str| matching(&PAGES, text).map(|(name, ..)| *name).collect::<Vec<_>>();
        assert_eq!(found("TIME"), ["Timeline"]);
        assert_eq!(found("runs fail"), ["Failed runs"]);
        assert_eq!(found("").len(), PAGES.len());
        assert_eq!(found("nothing of this"), [""; 0]);
    }
}
