//! An org: where it is, what time it is there, and when which job fires for it.

use askama::Template;
use everbell::core::store::OrgJob;
use everbell_core::store::PageRequest;
use jiff::Timestamp;

use super::stand::Stand;
use super::{OrgSubject, local_now};
use crate::audit_line::AuditLine;
use crate::clock::Clock;
use crate::markup::{Markup, url_part};
use crate::pretty::pretty;
use crate::{Frame, Reply, Section, Visit};
use everbell_http::access::Role;
use everbell_http::problem::Problem;

/// How many entries of the audit trail are shown.
const ENTRIES: u32 = 10;

#[derive(Template)]
#[template(path = "orgs/org.html")]
struct OrgPage {
    frame: Frame,
    subject: OrgSubject,
    /// What the clock shows there.
    now: Option<Markup>,
    /// Where it was before, and when it moved.
    moved: Option<(String, Markup, Markup)>,
    /// Its zone as a part of a query.
    zone_part: String,
    created: Markup,
    updated: (Markup, Markup),
    settings: String,
    jobs: Vec<Row>,
    /// Nothing for who may not see what was done.
    audit: Option<Vec<AuditLine>>,
    runs: bool,
    /// Why who is here may not act.
    no_act: Option<String>,
}

/// A job that fires for orgs.
struct Row {
    key: String,
    part: String,
    stand: Stand,
}

impl Row {
    fn of(subject: &OrgSubject, row: &OrgJob, clock: &Clock) -> Row {
        let key = row.job.definition.key.to_string();
        Row { part: url_part(&key), key, stand: Stand::of_org(&subject.org, row, clock) }
    }
}

pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    let subject = OrgSubject::of(&visit).await?;
    let (clock, orgs) = (visit.clock(), visit.orgs());
    let (frame, jobs, audit) = tokio::join!(
        visit.frame(Section::Orgs, subject.called.clone()),
        orgs.jobs_of(&subject.org.id),
        entries(&visit, &subject, &clock),
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
        jobs: jobs?.iter().map(|row| Row::of(&subject, row, &clock)).collect(),
        audit: audit?,
        runs: visit.may_read_runs(),
        no_act: visit.barred(Role::Operator),
        subject,
    };
    Reply::page(&page)
}

/// What was done to the org, the newest first.
async fn entries(visit: &Visit, subject: &OrgSubject, clock: &Clock) -> Result<Option<Vec<AuditLine>>, Problem> {
    if visit.barred(Role::Operator).is_some() {
        return Ok(None);
    }
    let (object, page) = (format!("org:{}", subject.id), PageRequest { limit: ENTRIES, after: None });
    let entries = visit.app.bell.store().list_audit(Some(&object), &page).await?.items;
    Ok(Some(entries.iter().map(|entry| AuditLine::of(entry, clock)).collect()))
}
