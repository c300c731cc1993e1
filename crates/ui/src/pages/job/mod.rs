//! A job: its definition, next runs, history, versions, audit entries and explained slots.

mod about;
mod backfills;
mod chain;
pub(crate) mod history;
mod org_runs;
mod slots;
mod upcoming;
mod versions;

use askama::Template;
use everbell::{JobStatus, RunFilter, RunRecord};
use everbell_core::Zone;
use everbell_core::store::{AuditEntry, Page, PageRequest, ProblemFilter};

use self::about::About;
pub(crate) use self::about::declared;
use self::backfills::ActiveBackfill;
use self::chain::Chain;
use self::history::HistoryCharts;
use self::org_runs::OrgRuns;
use self::slots::{GapLine, SlotExplanation};
use self::upcoming::UpcomingFire;
use self::versions::Version;
use super::action::Subject;
use super::runs::row::{Hosts, Row};
use crate::audit_line::AuditLine;
use crate::frozen::Frozen;
use crate::pretty::pretty;
use crate::snippets::Snippets;
use crate::{Frame, Section, UiRequest, UiResponse};
use everbell_http::access::Role;
use everbell_http::api::job_history::moment;
use everbell_http::problem::Problem;
use everbell_wire::form::{Field, Kind, TEXT, optional};

pub(crate) const QUERY: &[Field] = &[
    optional("at", Kind::Time, "The time to explain. A time without an offset is in the job's time zone."),
    optional("orgId", TEXT, "For this org, of a job that fires for each."),
    optional("fires", Kind::Integer { min: 1, max: 200 }, "How many fires are shown."),
];

/// How many of each are shown.
const MAX_AUDIT_ENTRIES: u32 = 10;
const MAX_GAPS: u32 = 20;
const DEFAULT_FIRES: u32 = 5;
const MAX_RECENT_RUNS: u32 = 10;

#[derive(Template)]
#[template(path = "job/job.html")]
struct JobPage {
    frame: Frame,
    subject: Subject,
    about: About,
    /// The target of an active job, if no live instance serves it.
    unserved: Option<String>,
    /// The end and the reason of the freeze that keeps an active job from firing.
    frozen: Option<Frozen>,
    /// Its open problems: kind and reason.
    problems: Vec<(&'static str, String)>,
    history: Option<HistoryCharts>,
    recent: Vec<Row>,
    chain: Chain,
    /// Backfills that are not done.
    backfills: Vec<ActiveBackfill>,
    upcoming: Vec<UpcomingFire>,
    /// The runs of all orgs, of a job that fires for each.
    org_runs: OrgRuns,
    /// Whether times are shown in another zone than UTC.
    shows_utc: bool,
    more_fires: Option<u32>,
    versions: Vec<Version>,
    /// `None` if the role may not read runs.
    gaps: Option<Vec<GapLine>>,
    asked: String,
    /// The org that was asked about.
    asked_org: String,
    explanation: Option<SlotExplanation>,
    audit: Option<Vec<AuditLine>>,
    payload: String,
    /// The job as others would write it; nothing for one that cannot be read.
    same: Option<Snippets>,
    no_act: Option<String>,
    no_make: Option<String>,
}

impl JobPage {
    fn is(&self, status: &str) -> bool {
        self.subject.row.job.state.status.as_str() == status
    }
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let subject = Subject::load(&request).await?;
    let clock = request.clock();
    let mut form = request.query(QUERY);
    let asked = form.text("at").unwrap_or_default().to_owned();
    let count = form.count("fires").unwrap_or(DEFAULT_FIRES);
    let asked_org = form.text("orgId").unwrap_or_default().to_owned();
    let whose = slots::asked(&request, &subject, &asked_org).await?;
    let at = moment(&mut form, "at", Some(&whose.1))?;
    let jobs = request.jobs();
    let freezes = request.app.bell.freezes();
    let (
        frame,
        served,
        versions,
        gaps,
        audit,
        explanation,
        history,
        recent,
        problems,
        freezes,
        active,
        chain,
        org_runs,
    ) = tokio::join!(
        request.frame(Section::Jobs, subject.key.clone()),
        request.is_served(&subject.definition().target),
        jobs.versions(&subject.key),
        slots::gaps(&request, &subject, MAX_GAPS),
        entries(&request, &subject.key),
        slots::explain(&request, &subject, &whose, at),
        history::HistoryData::load(&request, &subject),
        recent(&request, &subject),
        problems(&request, &subject),
        freezes.list(),
        backfills::active(&request, &subject),
        Chain::load(&request, &subject, &clock),
        org_runs::OrgRunData::load(&request, &subject, count as usize),
    );
    let (versions, freezes, fires) = (versions?, freezes?, subject.status() == JobStatus::Active);
    let frozen = Frozen::at(&freezes, subject.definition(), request.now, &clock);
    let page = JobPage {
        about: About::new(&subject, &clock, &freezes),
        unserved: (fires && !served?).then(|| subject.definition().target.to_string()),
        frozen: frozen.filter(|_| fires),
        problems: problems?,
        history: history?.map(|data| data.draw(&subject, &clock)),
        recent: recent?.iter().map(|(run, zone)| Row::new(run, &clock, zone.as_ref(), &Hosts::default())).collect(),
        backfills: active,
        chain: chain?,
        shows_utc: clock.zone(Some(&subject.zone)).name() != "UTC",
        upcoming: upcoming::fires(&subject, &clock, &freezes, count as usize),
        org_runs: org_runs?.draw(&subject, &clock, &freezes),
        more_fires: (count < 200).then_some((count * 5).min(200)),
        versions: Version::all(&versions, &clock),
        gaps: gaps?.map(|gaps| gaps.iter().map(|(gap, run)| GapLine::new(gap, *run, &clock, &subject.zone)).collect()),
        audit: audit?.map(|page| page.items.iter().map(|entry| AuditLine::new(entry, &clock)).collect()),
        payload: pretty(subject.row.job.definition.payload.as_str()),
        explanation: explanation?,
        same: Snippets::new(&subject.row.job.definition, &request.api_base(), request.now).ok(),
        no_act: request.barred(Role::Operator),
        no_make: request.barred(Role::Admin),
        asked,
        asked_org,
        frame,
        subject,
    };
    UiResponse::page(&page)
}

/// Loads the open problems; none if the role may not read runs.
async fn problems(request: &UiRequest, subject: &Subject) -> Result<Vec<(&'static str, String)>, Problem> {
    if !request.may_read_runs() {
        return Ok(Vec::new());
    }
    let key = subject.row.job.definition.key.clone();
    let filter = ProblemFilter { open: Some(true), job: Some(key), ..ProblemFilter::default() };
    let page = request.app.bell.store().list_problems(&filter, &PageRequest::default()).await?;
    Ok(page.items.into_iter().map(|problem| (problem.kind.summary(), problem.reason)).collect())
}

/// Loads the newest runs with their time zones; none if the role may not read runs.
async fn recent(request: &UiRequest, subject: &Subject) -> Result<Vec<(RunRecord, Option<Zone>)>, Problem> {
    if !request.may_read_runs() {
        return Ok(Vec::new());
    }
    let filter = RunFilter { job_key: Some(subject.row.job.definition.key.clone()), ..RunFilter::default() };
    let mut recent = Vec::new();
    for run in request.runs().list(&filter, &PageRequest { limit: MAX_RECENT_RUNS, after: None }).await?.items {
        let zone = request.app.zone_of(&run).await?;
        recent.push((run, zone));
    }
    Ok(recent)
}

/// Loads the audit entries of the job. Returns `None` if the role does not allow it.
async fn entries(request: &UiRequest, key: &str) -> Result<Option<Page<AuditEntry>>, Problem> {
    if request.barred(Role::Operator).is_some() {
        return Ok(None);
    }
    let page = PageRequest { limit: MAX_AUDIT_ENTRIES, after: None };
    Ok(Some(request.app.bell.store().list_audit(Some(&format!("job:{key}")), &page).await?))
}

/// Whether something can still be done to it.
fn lives(status: JobStatus) -> bool {
    status != JobStatus::Retired
}
