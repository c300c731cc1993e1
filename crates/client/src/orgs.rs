//! Orgs and their overrides of jobs.

use everbell_wire as wire;
use everbell_wire::JSON_LINES;
use serde::Serialize;

use crate::call::Call;
use crate::client::Client;
use crate::pages::Pages;
use crate::path::segment;
use crate::query::OrgQuery;
use crate::request::{OrgInput, OverridePut};

/// Operations on orgs.
#[derive(Clone, Copy, Debug)]
pub struct Orgs<'a>(&'a Client);

impl Client {
    /// Operations on orgs.
    pub fn orgs(&self) -> Orgs<'_> {
        Orgs(self)
    }
}

impl Orgs<'_> {
    /// Lists orgs.
    pub fn list(self, query: &OrgQuery) -> Pages<wire::Org> {
        Pages::new(self.0, "/orgs", query)
    }

    /// Gets an org.
    pub fn get(self, id: &str) -> Call<wire::Org> {
        self.0.get(&path(id))
    }

    /// Creates or updates an org. An absent member keeps its value.
    pub fn put(self, id: &str, org: &OrgInput) -> Call<wire::Org> {
        self.0.put(&path(id)).json(org)
    }

    /// Updates an org with a merge patch: an absent member keeps its value, `null` resets it.
    pub fn update(self, id: &str, patch: &impl Serialize) -> Call<wire::Org> {
        self.0.patch(&path(id)).json(patch)
    }

    /// Deletes an org. Its runs stay.
    pub fn delete(self, id: &str, reason: Option<&str>) -> Call<()> {
        self.0.delete(&path(id)).reason(reason)
    }

    /// Creates or updates up to 10,000 orgs, all of them or none. Each line is a JSON object with an `id`.
    pub fn import(self, lines: String, dry_run: bool, reason: Option<&str>) -> Call<wire::Imported> {
        let call = self.0.post("/orgs").parameter("dryRun", &dry_run.to_string());
        call.reason(reason).body(JSON_LINES, lines)
    }

    /// Lists the jobs of an org, and when each fires for it.
    pub fn jobs(self, id: &str) -> Call<wire::Items<wire::OrgJob>> {
        self.0.get(&format!("{}/jobs", path(id)))
    }

    /// Gets an org's override of a job.
    pub fn get_override(self, id: &str, job_key: &str) -> Call<wire::OrgOverride> {
        self.0.get(&override_path(id, job_key))
    }

    /// Sets an org's override of a job.
    pub fn put_override(self, id: &str, job_key: &str, body: &OverridePut) -> Call<wire::OrgOverride> {
        self.0.put(&override_path(id, job_key)).json(body)
    }

    /// Removes an org's override of a job.
    pub fn delete_override(self, id: &str, job_key: &str, reason: Option<&str>) -> Call<()> {
        self.0.delete(&override_path(id, job_key)).reason(reason)
    }

    /// Previews a move of an org to another time zone, with this many times of each job.
    pub fn what_if(self, id: &str, timezone: &str, count: usize) -> Call<wire::WhatIf> {
        let call = self.0.get(&format!("{}/what-if", path(id)));
        call.parameter("timezone", timezone).parameter("count", &count.to_string())
    }
}

fn path(id: &str) -> String {
    format!("/orgs/{}", segment(id))
}

fn override_path(id: &str, job_key: &str) -> String {
    format!("{}/jobs/{}", path(id), segment(job_key))
}
