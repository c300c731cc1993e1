//! Runs.

use everbell_wire as wire;
use serde::Serialize;

use crate::bulk::RerunRequest;
use crate::call::Call;
use crate::client::Client;
use crate::pages::Pages;
use crate::path::segment;
use crate::query::{RunQuery, TopQuery};
use crate::remote::{RunComplete, RunFail, RunHeartbeat, RunLog, RunProgressReport};
use crate::request::ReasonRequest;

/// Operations on runs.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a>(&'a Client);

impl Client {
    /// Operations on runs.
    pub fn runs(&self) -> Runs<'_> {
        Runs(self)
    }
}

impl Runs<'_> {
    /// Lists runs, newest first, without their outputs.
    pub fn list(self, query: &RunQuery) -> Pages<wire::Run> {
        Pages::new(self.0, "/runs", query)
    }

    /// Lists the jobs that run, fail or cost the most.
    pub fn top(self, query: &TopQuery) -> Call<wire::Top> {
        self.0.get("/top").query(query)
    }

    /// Gets a run.
    pub fn get(self, id: &str) -> Call<wire::Run> {
        self.0.get(&format!("/runs/{}", segment(id)))
    }

    /// Cancels a run that has not started, or asks a running handler to stop.
    pub fn cancel(self, id: &str, reason: Option<&str>) -> Call<wire::Canceled> {
        self.0.post(&format!("/runs/{}/cancel", segment(id))).json(&ReasonRequest { reason })
    }

    /// Reports that the remote side of a run is at work.
    pub fn heartbeat(self, id: &str, attempt: Option<u32>) -> Call<wire::RemoteRun> {
        self.report(id, "heartbeat", &RunHeartbeat { attempt })
    }

    /// Reports how far a run has come.
    pub fn progress(self, id: &str, progress: &RunProgressReport) -> Call<wire::RemoteRun> {
        self.report(id, "progress", progress)
    }

    /// Adds text to the output of a run.
    pub fn append_log(self, id: &str, log: &RunLog) -> Call<wire::RemoteRun> {
        self.report(id, "log", log)
    }

    /// Ends a run with success.
    pub fn complete(self, id: &str, completion: &RunComplete) -> Call<wire::RemoteRun> {
        self.report(id, "complete", completion)
    }

    /// Ends the attempt of a run with a failure.
    pub fn fail(self, id: &str, failure: &RunFail) -> Call<wire::RemoteRun> {
        self.report(id, "fail", failure)
    }

    fn report(self, id: &str, what: &str, body: &impl Serialize) -> Call<wire::RemoteRun> {
        self.0.post(&format!("/runs/{}/{what}", segment(id))).json(body)
    }

    /// Runs again with the same payload.
    pub fn rerun(self, id: &str, reason: Option<&str>) -> Call<wire::RunNow> {
        self.0.post(&format!("/runs/{}/rerun", segment(id))).json(&ReasonRequest { reason })
    }

    /// Reruns many runs, or lists which it would rerun.
    pub fn rerun_many(self, request: &RerunRequest) -> Call<wire::Reruns> {
        self.0.post("/runs/rerun").json(request)
    }
}
