//! Targets, instances, the status of the server, and cron expressions.

use everbell_wire as wire;

use crate::call::Call;
use crate::client::Client;
use crate::path::segment;
use crate::request::{CronPreviewRequest, TryTargetRequest};

/// Operations on targets.
#[derive(Clone, Copy, Debug)]
pub struct Targets<'a>(&'a Client);

/// Operations on instances.
#[derive(Clone, Copy, Debug)]
pub struct Instances<'a>(&'a Client);

/// Operations on cron expressions.
#[derive(Clone, Copy, Debug)]
pub struct Cron<'a>(&'a Client);

impl Client {
    /// Operations on targets.
    pub fn targets(&self) -> Targets<'_> {
        Targets(self)
    }

    /// Operations on instances.
    pub fn instances(&self) -> Instances<'_> {
        Instances(self)
    }

    /// Operations on cron expressions.
    pub fn cron(&self) -> Cron<'_> {
        Cron(self)
    }

    /// Reloads the configuration of the instance that answers, or only checks it.
    pub fn reload(&self, dry_run: bool) -> Call<wire::Reloaded> {
        self.post(if dry_run { "/config/reload?dryRun=true" } else { "/config/reload" })
    }

    /// Gets the state of the server and its database.
    pub fn status(&self) -> Call<wire::Status> {
        self.get("/status")
    }
}

impl Targets<'_> {
    /// Lists targets and the instances that serve them.
    pub fn list(self) -> Call<wire::Items<wire::Target>> {
        self.0.get("/targets")
    }

    /// Gets a target.
    pub fn get(self, target: &str) -> Call<wire::Target> {
        self.0.get(&path(target))
    }

    /// Creates or replaces a target by its definition, or, with `dry_run`, checks it. Without a revision, whatever is there is
    /// replaced; revision 0 means that there must be none.
    pub fn put(
        self,
        target: &str,
        definition: &serde_json::Value,
        revision: Option<u32>,
        dry_run: bool,
    ) -> Call<wire::TargetWritten> {
        let call = self.0.put(&path(target)).parameter("dryRun", &dry_run.to_string()).json(definition);
        match revision {
            Some(revision) => call.if_match(u64::from(revision)),
            None => call,
        }
    }

    /// Deletes a target that is not in the configuration; with `force` also one that current jobs name.
    pub fn delete(self, target: &str, force: bool) -> Call<()> {
        self.0.delete(&path(target)).parameter("force", &force.to_string())
    }

    /// Runs a target once, without a job.
    pub fn try_once(self, target: &str, request: &TryTargetRequest) -> Call<wire::RunNow> {
        self.0.post(&format!("{}/try", path(target))).json(request)
    }
}

impl Instances<'_> {
    /// Lists instances, oldest first.
    pub fn list(self) -> Call<wire::Items<wire::Instance>> {
        self.0.get("/instances")
    }

    /// Stops an instance from accepting work.
    pub fn drain(self, id: &str) -> Call<()> {
        self.0.post(&format!("/instances/{}/drain", segment(id)))
    }

    /// Lets an instance accept work again.
    pub fn undrain(self, id: &str) -> Call<()> {
        self.0.post(&format!("/instances/{}/undrain", segment(id)))
    }
}

impl Cron<'_> {
    /// Explains a cron expression and lists its next times.
    pub fn preview(self, request: &CronPreviewRequest) -> Call<wire::Preview> {
        self.0.post("/cron/preview").json(request)
    }

    /// Lists cron expression templates.
    pub fn templates(self) -> Call<wire::Items<wire::Template>> {
        self.0.get("/templates")
    }
}

fn path(target: &str) -> String {
    format!("/targets/{}", segment(target))
}
