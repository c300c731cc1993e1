//! The orgs of a job: when it fires for each, whether it has today, and why not.

use askama::Template;
use everbell::core::org::{OrgTask, OrgUpdate};
use everbell::core::store::JobOrg;
use everbell_core::freeze::Freeze;
use everbell_core::{Job, Scope, Zone};

use super::org_job_status::OrgJobStatus;
use super::{called, local_now, org_path};
use crate::clock::Clock;
use crate::markup::{Markup, url_part};
use crate::pages::action::Subject;
use crate::{Frame, Links, Section, UiRequest, UiResponse};
use everbell_http::access::Role;
use everbell_http::api::org_jobs;
use everbell_http::page;
use everbell_http::problem::Problem;
use everbell_wire::form::Field;

/// The query parameters, which are those of the API.
pub(crate) const QUERY: &[Field] = org_jobs::OF_JOB;

#[derive(Template)]
#[template(path = "orgs/job_orgs.html")]
struct OfJobPage {
    frame: Frame,
    subject: Subject,
    /// Whether it fires for orgs at all.
    per_org: bool,
    links: Links,
    rows: Vec<Row>,
    org_updates: Vec<OrgUpdateLine>,
    /// Orgs of this page that cannot be read.
    unreadable: Vec<String>,
    first: Option<String>,
    next: Option<String>,
    /// The reason why the actor may not act.
    no_act: Option<String>,
}

/// An org of the job.
struct Row {
    id: String,
    part: String,
    called: String,
    timezone: String,
    now: Option<Markup>,
    status: OrgJobStatus,
}

/// An org update in progress.
pub(super) struct OrgUpdateLine {
    pub(super) what: &'static str,
    pub(super) seen: u64,
    pub(super) by: String,
    pub(super) since: Markup,
    /// The id, if the update can be stopped.
    stoppable: Option<String>,
}

impl Row {
    fn new(job: &Job, row: &JobOrg, freezes: &[Freeze], clock: &Clock) -> Row {
        let org = &row.org;
        let zone = Zone::get(&org.place.timezone).ok();
        Row {
            id: org.id.to_string(),
            part: url_part(org.id.as_str()),
            called: called(org),
            timezone: org.place.timezone.clone(),
            now: zone.map(|zone| local_now(clock, &zone)),
            status: OrgJobStatus::for_job(job, row, freezes, clock),
        }
    }

    fn path(&self) -> String {
        org_path(&self.part)
    }
}

impl OrgUpdateLine {
    pub(super) fn new(org_update: &OrgUpdate, clock: &Clock) -> OrgUpdateLine {
        let what = match org_update.task {
            OrgTask::Arm => "Creating timers",
            OrgTask::Resume { .. } => "Resuming timers",
            OrgTask::RunNow { .. } => "Creating manual runs",
            OrgTask::Backfill { .. } => "Creating backfill runs",
        };
        let stoppable = org_update.expect_stoppable().is_ok().then(|| org_update.id.to_string());
        OrgUpdateLine {
            what,
            seen: org_update.seen,
            by: org_update.actor.clone(),
            since: clock.away(org_update.at),
            stoppable,
        }
    }
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let subject = Subject::load(&request).await?;
    let (api_request, clock, orgs) = (request.to_api_request(), request.clock(), request.orgs());
    let form = api_request.query(QUERY);
    let links = Links::new(format!("{}/orgs", subject.path()), &request.query);
    let mut shown = OfJobPage {
        frame: request.frame(Section::Jobs, format!("Orgs of {}", subject.key)).await,
        per_org: subject.definition().scope == Scope::PerOrg,
        rows: Vec::new(),
        org_updates: Vec::new(),
        unreadable: Vec::new(),
        first: form.has("cursor").then(|| links.here()),
        next: None,
        no_act: request.barred(Role::Operator),
        subject,
        links,
    };
    if shown.per_org {
        let job = &shown.subject.row.job;
        let (filter, page_request) = (org_jobs::filter(&form), page::from_query(&api_request)?);
        let (page, org_updates) =
            tokio::join!(orgs.of_job(job.definition.id, &filter, &page_request), orgs.org_updates());
        let (page, freezes) = (page?, request.app.bell.freezes().list().await?);
        shown.rows = page.items.iter().map(|row| Row::new(job, row, &freezes, &clock)).collect();
        let own = |org_update: &&OrgUpdate| org_update.job_key == job.definition.key;
        shown.org_updates =
            org_updates?.iter().filter(own).map(|org_update| OrgUpdateLine::new(org_update, &clock)).collect();
        let cursor = page::next(&api_request, page.next.as_ref());
        shown.unreadable = page.unreadable;
        shown.next = cursor.map(|cursor| shown.links.with("cursor", &cursor));
    }
    UiResponse::page(&shown)
}

#[cfg(test)]
mod tests {
    use everbell::JobKey;
    use everbell_core::JobId;
    use jiff::Timestamp;

    use super::*;
    use crate::choices::Choices;

    #[test]
    fn it_is_told_what_is_under_way_and_how_far_it_is() {
        let at: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let org_update = OrgUpdate {
            id: uuid::Uuid::nil(),
            job: JobId::new(at, [7; 10]),
            job_key: JobKey::new("brief").unwrap(),
            task: OrgTask::RunNow { payload: None, overlap: None, trace_context: None },
            actor: "ana".to_owned(),
            at,
            reached: None,
            seen: 12_500,
        };
        let clock = Choices::default().clock("2026-11-15T12:01:00Z".parse().unwrap());
        let line = OrgUpdateLine::new(&org_update, &clock);
        assert_eq!((line.what, line.seen, line.by.as_str()), ("Creating manual runs", 12_500, "ana"));
        assert!(line.since.as_str().contains("1m ago"));
    }
}
