//! Jobs, their versions, their actions and their history.

use std::time::Duration;

use everbell_wire as wire;
use everbell_wire::JobBody;
use everbell_wire::form::iso;
use jiff::Timestamp;
use serde::Serialize;

use crate::bulk::BulkActionRequest;
use crate::call::Call;
use crate::client::Client;
use crate::pages::Pages;
use crate::path::{job, segment};
use crate::query::{GapQuery, JobOrgQuery, JobQuery};
use crate::request::{
    BackfillRequest, BackfillSettings, OrgSelection, PauseRequest, ReasonRequest, RescheduleRequest, ResumeRequest,
    RunNowRequest, SkipNextRequest,
};

/// Operations on jobs. A job is named by its key, its key and version as in `daily-briefing@2`, or its id.
#[derive(Clone, Copy, Debug)]
pub struct Jobs<'a>(&'a Client);

impl Client {
    /// Operations on jobs.
    pub fn jobs(&self) -> Jobs<'_> {
        Jobs(self)
    }
}

#[derive(Serialize)]
struct RunForOrgs<'a> {
    orgs: &'a OrgSelection,
    #[serde(flatten)]
    request: &'a RunNowRequest,
}

impl Jobs<'_> {
    /// Lists jobs.
    pub fn list(self, query: &JobQuery) -> Pages<wire::Job> {
        Pages::new(self.0, "/jobs", query)
    }

    /// Gets a job.
    pub fn get(self, name: &str) -> Call<wire::Job> {
        self.0.get(&job(name))
    }

    /// Creates a job.
    pub fn create(self, body: &JobBody) -> Call<wire::Job> {
        self.0.post("/jobs").json(body)
    }

    /// Updates a job with a merge patch: an absent member keeps its value, `null` resets it. Creates the next version if
    /// anything differs.
    pub fn update(self, name: &str, patch: &JobBody) -> Call<wire::Job> {
        self.0.patch(&job(name)).json(patch)
    }

    /// Creates the next version of a job from a merge patch, even if nothing differs.
    pub fn create_version(self, name: &str, patch: &JobBody) -> Call<wire::NewVersion> {
        self.0.post(&format!("{}/new-version", job(name))).json(patch)
    }

    /// Goes back to the declaration of a job that was edited since a program or a configuration file declared it.
    pub fn restore_declaration(self, name: &str, reason: Option<&str>) -> Call<wire::Job> {
        self.0.post(&format!("{}/restore-declaration", job(name))).json(&ReasonRequest { reason })
    }

    /// Retires a job. Its runs and versions stay.
    pub fn retire(self, name: &str, reason: Option<&str>) -> Call<wire::Job> {
        self.0.delete(&job(name)).reason(reason)
    }

    /// Deletes a job with everything about it: versions, payloads, runs, gaps and org overrides. This cannot be undone.
    pub fn purge(self, name: &str, reason: Option<&str>) -> Call<wire::PurgedJob> {
        self.0.post(&format!("{}/purge", job(name))).json(&ReasonRequest { reason })
    }

    /// Pauses, resumes, runs, skips or retires many jobs.
    pub fn bulk(self, request: &BulkActionRequest) -> Call<wire::Bulk> {
        self.0.post("/jobs/bulk").json(request)
    }

    /// Lists the versions of a job, newest first.
    pub fn versions(self, name: &str) -> Call<wire::Items<wire::Job>> {
        self.0.get(&format!("{}/versions", job(name)))
    }

    /// Compares two versions of a job.
    pub fn diff(self, name: &str, from: u32, to: u32) -> Call<wire::Items<wire::ChangedField>> {
        let call = self.0.get(&format!("{}/diff", job(name)));
        call.parameter("from", &from.to_string()).parameter("to", &to.to_string())
    }

    /// Pauses a job.
    pub fn pause(self, name: &str, request: &PauseRequest) -> Call<wire::Paused> {
        self.0.post(&format!("{}/pause", job(name))).json(request)
    }

    /// Resumes a job.
    pub fn resume(self, name: &str, request: &ResumeRequest) -> Call<wire::Resumed> {
        self.0.post(&format!("{}/resume", job(name))).json(request)
    }

    /// Runs a job now. While another run is active, the `overlap` policy applies unless `force` or `queue` is set.
    pub fn run_now(self, name: &str, request: &RunNowRequest) -> Call<wire::RunNow> {
        self.0.post(&format!("{}/run-now", job(name))).json(request)
    }

    /// Runs a job with scope `per_org` now for several orgs.
    pub fn run_now_for_orgs(self, name: &str, orgs: &OrgSelection, request: &RunNowRequest) -> Call<wire::RunNowOrgs> {
        self.0.post(&format!("{}/run-now", job(name))).json(&RunForOrgs { orgs, request })
    }

    /// Moves only the next run of a job.
    pub fn reschedule(self, name: &str, request: &RescheduleRequest) -> Call<wire::Job> {
        self.0.post(&format!("{}/reschedule", job(name))).json(request)
    }

    /// Skips the next runs of a job.
    pub fn skip_next(self, name: &str, request: &SkipNextRequest) -> Call<wire::Job> {
        self.0.post(&format!("{}/skip-next", job(name))).json(request)
    }

    /// Lists the next times at which a job fires.
    pub fn next(self, name: &str, count: usize) -> Call<wire::Fires> {
        self.0.get(&format!("{}/next", job(name))).parameter("count", &count.to_string())
    }

    /// Lists the times at which a job fires from a given time on.
    pub fn next_from(self, name: &str, from: Timestamp, count: usize) -> Call<wire::Fires> {
        self.next(name, count).parameter("from", &from.to_string())
    }

    /// Explains what happened at a given time. A job with scope `per_org` needs an org.
    pub fn explain(self, name: &str, at: Timestamp, org: Option<&str>) -> Call<wire::Explanation> {
        let call = self.0.get(&format!("{}/explain", job(name))).parameter("at", &at.to_string());
        org.into_iter().fold(call, |call, org| call.parameter("orgId", org))
    }

    /// Shows the jobs before and after a job, and the runs that it waits for.
    pub fn chain(self, name: &str) -> Call<wire::job::Chain> {
        self.0.get(&format!("{}/chain", job(name)))
    }

    /// Lists the slots of a job that got no run.
    pub fn gaps(self, name: &str, query: &GapQuery) -> Pages<wire::Gap> {
        Pages::new(self.0, &format!("{}/gaps", job(name)), query)
    }

    /// Returns statistics of the runs within a window that ends now; 30 days if absent.
    pub fn stats(self, name: &str, window: Option<Duration>) -> Call<wire::Stats> {
        let call = self.0.get(&format!("{}/stats", job(name)));
        window.into_iter().fold(call, |call, window| call.parameter("window", &iso(window)))
    }

    /// Lists the backfills of a job, newest first.
    pub fn backfills(self, name: &str) -> Call<wire::Items<wire::BackfillReport>> {
        self.0.get(&format!("{}/backfills", job(name)))
    }

    /// Creates runs for past slots that have none.
    pub fn backfill(self, name: &str, request: &BackfillRequest) -> Call<wire::Backfill> {
        self.0.post(&format!("{}/backfills", job(name))).json(request)
    }

    /// Gets a backfill.
    pub fn get_backfill(self, name: &str, id: &str) -> Call<wire::BackfillReport> {
        self.0.get(&format!("{}/backfills/{}", job(name), segment(id)))
    }

    /// Changes how a backfill runs.
    pub fn update_backfill(self, name: &str, id: &str, settings: &BackfillSettings) -> Call<wire::BackfillReport> {
        self.0.patch(&format!("{}/backfills/{}", job(name), segment(id))).json(settings)
    }

    /// Pauses a backfill.
    pub fn pause_backfill(self, name: &str, id: &str, reason: Option<&str>) -> Call<wire::BackfillReport> {
        self.0.post(&format!("{}/backfills/{}/pause", job(name), segment(id))).json(&ReasonRequest { reason })
    }

    /// Resumes a paused backfill.
    pub fn resume_backfill(self, name: &str, id: &str, reason: Option<&str>) -> Call<wire::BackfillReport> {
        self.0.post(&format!("{}/backfills/{}/resume", job(name), segment(id))).json(&ReasonRequest { reason })
    }

    /// Stops a backfill, and withdraws its runs that have not started.
    pub fn stop_backfill(self, name: &str, id: &str) -> Call<wire::StoppedBackfill> {
        self.0.post(&format!("{}/backfills/{}/stop", job(name), segment(id)))
    }

    /// Lists the orgs of a job, and when it fires for each.
    pub fn orgs(self, name: &str, query: &JobOrgQuery) -> Call<wire::JobOrgs> {
        self.0.get(&format!("{}/orgs", job(name))).query(query)
    }

    /// Rebuilds the timers of a job for every org.
    pub fn rebuild_orgs(self, name: &str, reason: Option<&str>) -> Call<wire::OrgUpdateStarted> {
        self.0.post(&format!("{}/orgs/rebuild", job(name))).json(&ReasonRequest { reason })
    }

    /// Stops an update that creates runs for every org of a job. Runs that it has created stay.
    pub fn stop_org_update(self, name: &str, id: &str, reason: Option<&str>) -> Call<wire::OrgUpdate> {
        self.0.post(&format!("{}/sweeps/{}/stop", job(name), segment(id))).json(&ReasonRequest { reason })
    }
}
