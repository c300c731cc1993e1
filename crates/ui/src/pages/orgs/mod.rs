//! Orgs: tenants with their own zone. Who they are, when which job fires for each, and what changes that.

pub(crate) mod delete;
pub(crate) mod edit;
pub(crate) mod enable;
mod forecast;
pub(crate) mod import;
pub(crate) mod job_orgs;
pub(crate) mod job_override;
pub(crate) mod list;
pub(crate) mod org;
mod org_job_status;
pub(crate) mod run_now;
pub(crate) mod stop;
pub(crate) mod time;
mod what_if;

use everbell::Org;
use everbell::core::store::OrgJob;
use everbell_core::{UnknownZone, Zone};
use jiff::Timestamp;

use super::action::Refusal;
use crate::clock::Clock;
use crate::clock::Face;
use crate::markup::{Markup, url_part};
use crate::request::UiRequest;
use everbell_http::excerpt::excerpt;
use everbell_http::problem::{Kind, Problem};
use everbell_wire::FaultCode;
use everbell_wire::form::Fault;

/// The org that a page shows or an action applies to.
pub(crate) struct OrgSubject {
    pub(crate) id: String,
    /// The id as a part of a path.
    pub(crate) part: String,
    /// Its name; its id if it has none.
    pub(crate) called: String,
    /// Its zone, or why that can no longer be read.
    pub(crate) zone: Result<Zone, UnknownZone>,
    /// The revision that was read, which guards against concurrent changes.
    pub(crate) revision: u64,
    pub(crate) org: Org,
}

impl OrgSubject {
    /// The org that the path names.
    pub(crate) async fn load(request: &UiRequest) -> Result<OrgSubject, Problem> {
        let id = request.to_api_request().org()?;
        Ok(OrgSubject::from(request.orgs().get(&id).await?))
    }

    /// Where the org is shown.
    pub(crate) fn path(&self) -> String {
        org_path(&self.part)
    }

    /// A job that fires for orgs, as this one sees it: the one that the path names.
    async fn job(&self, request: &UiRequest) -> Result<OrgJob, Problem> {
        let key = request.part("jobKey");
        let jobs = request.orgs().jobs_of(&self.org.id).await?;
        let found = jobs.into_iter().find(|row| row.job.definition.key.as_str() == key);
        found.ok_or_else(|| Problem::new(Kind::NotFound, format!("No per-org job has the key `{}`.", excerpt(key))))
    }

    /// A time on the clock of the org, and how far away it is.
    fn moment(&self, clock: &Clock, at: Timestamp) -> (Markup, Markup) {
        (local(clock, at, self.zone.as_ref().ok()), clock.away(at))
    }
}

impl From<Org> for OrgSubject {
    fn from(org: Org) -> OrgSubject {
        OrgSubject {
            id: org.id.to_string(),
            part: url_part(org.id.as_str()),
            called: called(&org),
            zone: Zone::get(&org.place.timezone),
            revision: org.revision,
            org,
        }
    }
}

/// Where the org with this id is shown, which is a part of a path already.
fn org_path(part: &str) -> String {
    format!("/orgs/{part}")
}

/// Returns the display name of an org, or its id.
pub(crate) fn called(org: &Org) -> String {
    if org.name.is_empty() { org.id.to_string() } else { org.name.clone() }
}

/// Renders a time in the time zone of an org, regardless of the display preference.
fn local(clock: &Clock, at: Timestamp, zone: Option<&Zone>) -> Markup {
    clock.with(Face::Schedule).day(at, Some(zone.unwrap_or(&Zone::utc())))
}

/// Renders the current local time of an org, rounded down to the minute.
fn local_now(clock: &Clock, zone: &Zone) -> Markup {
    let minute = Timestamp::from_second(clock.now.as_second().div_euclid(60) * 60).unwrap_or(clock.now);
    local(clock, minute, Some(zone))
}

/// A time in UTC.
fn utc(clock: &Clock, at: Timestamp) -> Markup {
    clock.with(Face::Utc).at(at, None)
}

/// One fault of one field.
fn fault(name: &str, text: impl Into<String>) -> Problem {
    Problem::body(vec![Fault::new(format!("/{name}"), FaultCode::Invalid, text)])
}

/// Assigns the errors of a problem to the fields of a form about an org.
fn refusal(problem: Option<&Problem>, fields: &[&str]) -> Refusal {
    if problem.is_some_and(|problem| problem.kind == Kind::RevisionMismatch) {
        let text = "The org has changed in the meantime, and nothing was done. This is its current state: check it, then try again.";
        return Refusal { faults: Vec::new(), whole: Some(text.to_owned()) };
    }
    Refusal::from_problem(problem, fields)
}
