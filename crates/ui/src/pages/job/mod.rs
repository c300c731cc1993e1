//! A job: what it is, when it fires next, how it fared, who changed it, what became of a slot.

mod about;
mod coming;
pub(crate) mod past;
mod slots;
mod versions;

use askama::Template;
use everbell::{JobStatus, RunFilter, RunRecord};
use everbell_core::Zone;
use everbell_core::store::{AuditEntry, Page, PageRequest};

use self::about::About;
use self::coming::Coming;
use self::past::Past;
use self::slots::{GapLine, Told};
use self::versions::Version;
use super::action::Subject;
use super::runs::row::{Hosts, Row};
use crate::audit_line::AuditLine;
use crate::pretty::pretty;
use crate::snippets::Snippets;
use crate::{Frame, Reply, Section, Visit};
use everbell_http::access::Role;
use everbell_http::api::questions::moment;
use everbell_http::problem::Problem;
use everbell_wire::form::{Field, Kind, TEXT, optional};

pub(crate) const QUERY: &[Field] = &[
    optional("at", Kind::Time, "What became of this time; without an offset it is read in the job's zone."),
    optional("orgId", TEXT, "For this org, of a job that fires for each."),
    optional("fires", Kind::Integer { min: 10, max: 200 }, "How many fires are shown."),
];

/// How many of each are shown.
const ENTRIES: u32 = 10;
const GAPS: u32 = 20;
const FIRES: u32 = 10;
const RECENT: u32 = 10;

#[derive(Template)]
#[template(path = "job/job.html")]
struct JobPage {
    frame: Frame,
    subject: Subject,
    about: About,
    /// Its target, if nobody serves it although it is to fire.
    unserved: Option<String>,
    past: Option<Past>,
    recent: Vec<Row>,
    coming: Vec<Coming>,
    more_fires: Option<u32>,
    versions: Vec<Version>,
    /// Nothing for who may not read runs.
    gaps: Option<Vec<GapLine>>,
    asked: String,
    /// The org that was asked about.
    asked_org: String,
    told: Option<Told>,
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

pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    let subject = Subject::of(&visit).await?;
    let clock = visit.clock();
    let mut form = visit.query(QUERY);
    let asked = form.text("at").unwrap_or_default().to_owned();
    let count = form.count("fires").unwrap_or(FIRES);
    let asked_org = form.text("orgId").unwrap_or_default().to_owned();
    let whose = slots::asked(&visit, &subject, &asked_org).await?;
    let at = moment(&mut form, "at", Some(&whose.1))?;
    let jobs = visit.jobs();
    let (frame, served, versions, gaps, audit, told, past, recent) = tokio::join!(
        visit.frame(Section::Jobs, subject.key.clone()),
        visit.is_served(&subject.definition().target),
        jobs.versions(&subject.key),
        slots::gaps(&visit, &subject, GAPS),
        entries(&visit, &subject.key),
        slots::told(&visit, &subject, &whose, at),
        past::Read::of(&visit, &subject),
        recent(&visit, &subject),
    );
    let (versions, fires) = (versions?, subject.status() == JobStatus::Active);
    let page = JobPage {
        about: About::of(&subject, &clock),
        unserved: (fires && !served?).then(|| subject.definition().target.to_string()),
        past: past?.map(|read| read.drawn(&subject, &clock)),
        recent: recent?.iter().map(|(run, zone)| Row::of(run, &clock, zone.as_ref(), &Hosts::default())).collect(),
        coming: coming::fires(&subject, &clock, count as usize),
        more_fires: (count < 200).then_some((count * 5).min(200)),
        versions: Version::all(&versions, &clock),
        gaps: gaps?.map(|gaps| gaps.iter().map(|gap| GapLine::of(gap, &clock, &subject.zone)).collect()),
        audit: audit?.map(|page| page.items.iter().map(|entry| AuditLine::of(entry, &clock)).collect()),
        payload: pretty(subject.row.job.definition.payload.as_str()),
        told: told?,
        same: Snippets::new(&subject.row.job.definition, &visit.api_base(), visit.now).ok(),
        no_act: visit.barred(Role::Operator),
        no_make: visit.barred(Role::Admin),
        asked,
        asked_org,
        frame,
        subject,
    };
    Reply::page(&page)
}

/// The newest runs, each with its zone; none for who may not see any.
async fn recent(visit: &Visit, subject: &Subject) -> Result<Vec<(RunRecord, Option<Zone>)>, Problem> {
    if !visit.may_read_runs() {
        return Ok(Vec::new());
    }
    let filter = RunFilter { job_key: Some(subject.row.job.definition.key.clone()), ..RunFilter::default() };
    let mut recent = Vec::new();
    for run in visit.runs().list(&filter, &PageRequest { limit: RECENT, after: None }).await?.items {
        let zone = visit.app.zone_of(&run).await?;
        recent.push((run, zone));
    }
    Ok(recent)
}

/// What was done to the job; nothing for who may not see that.
async fn entries(visit: &Visit, key: &str) -> Result<Option<Page<AuditEntry>>, Problem> {
    if visit.barred(Role::Operator).is_some() {
        return Ok(None);
    }
    let page = PageRequest { limit: ENTRIES, after: None };
    Ok(Some(visit.app.bell.store().list_audit(Some(&format!("job:{key}")), &page).await?))
}

/// Whether something can still be done to it.
fn lives(status: JobStatus) -> bool {
    status != JobStatus::Retired
}
