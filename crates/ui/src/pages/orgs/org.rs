//! An org: where it is, what time it is there, and when which job fires for it.

use askama::Template;
use everbell::core::store::OrgJob;
use everbell_core::freeze::Freeze;
use everbell_core::store::PageRequest;
use jiff::Timestamp;

use super::org_job_status::OrgJobStatus;
use super::{OrgSubject, local_now};
use crate::audit_line::AuditLine;
use crate::clock::Clock;
use crate::markup::{Markup, url_part};
use crate::pretty::pretty;
use crate::{Frame, Section, UiRequest, UiResponse};
use everbell_http::access::Role;
use everbell_http::problem::Problem;

/// How many entries of the audit trail are shown.
const MAX_AUDIT_ENTRIES: u32 = 10;

#[derive(Template)]
#[template(path = "orgs/org.html")]
struct OrgPage {
    frame: Frame,
    subject: OrgSubject,
    /// The local time of the org.
    now: Option<Markup>,
    /// Where it was before, and when it moved.
    moved: Option<(String, Markup, Markup)>,
    /// Its zone as a part of a query.
    zone_part: String,
    created: Markup,
    updated: (Markup, Markup),
    settings: String,
    jobs: Vec<Row>,
    /// `None` if the role may not read the audit trail.
    audit: Option<Vec<AuditLine>>,
    runs: bool,
    /// The reason why the actor may not act.
    no_act: Option<String>,
}

/// A job that fires for orgs.
struct Row {
    key: String,
    part: String,
    status: OrgJobStatus,
}

impl Row {
    fn new(subject: &OrgSubject, row: &OrgJob, freezes: &[Freeze], clock: &Clock) -> Row {
        let key = row.job.definition.key.to_string();
        Row { part: url_part(&key), key, status: OrgJobStatus::for_org(&subject.org, row, freezes, clock) }
    }
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let subject = OrgSubject::load(&request).await?;
    let (clock, orgs) = (request.clock(), request.orgs());
    let freezes = request.app.bell.freezes().list().await?;
    let (frame, jobs, audit) = tokio::join!(
        request.frame(Section::Orgs, subject.called.clone()),
        orgs.jobs_of(&subject.org.id),
        entries(&request, &subject, &clock),
    );
    let at = |at: Timestamp| clock.at(at, subject.zone.as_ref().ok());
    let moved = subject.org.place.moved.as_ref();
    let page = OrgPage {
        frame,
        now: subject.zone.as_ref().ok().map(|zone| local_now(&clock, zone)),
        moved: moved.map(|moved| (moved.from.clone(), at(moved.at), clock.away(moved.at))),
        zone_part: url_part(&subject.org.place.timezone),
        created: at(subject.org.created_at),
        updated: (at(subject.org.updated_at), clock.away(subject.org.updated_at)),
        settings: pretty(subject.org.settings.as_str()),
        jobs: jobs?.iter().map(|row| Row::new(&subject, row, &freezes, &clock)).collect(),
        audit: audit?,
        runs: request.may_read_runs(),
        no_act: request.barred(Role::Operator),
        subject,
    };
    UiResponse::page(&page)
}

/// Loads the audit entries of the org, newest first.
async fn entries(request: &UiRequest, subject: &OrgSubject, clock: &Clock) -> Result<Option<Vec<AuditLine>>, Problem> {
    if request.barred(Role::Operator).is_some() {
        return Ok(None);
    }
    let (object, page) = (format!("org:{}", subject.id), PageRequest { limit: MAX_AUDIT_ENTRIES, after: None });
    let entries = request.app.bell.store().list_audit(Some(&object), &page).await?.items;
    Ok(Some(entries.iter().map(|entry| AuditLine::new(entry, clock)).collect()))
}
