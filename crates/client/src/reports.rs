//! Reports over all jobs: gaps, outages, next fires, backfills and statistics.

use std::time::Duration;

use everbell_wire as wire;
use everbell_wire::form::iso;
use jiff::Timestamp;

use crate::call::Call;
use crate::client::Client;
use crate::pages::Pages;
use crate::query::{AllGapsQuery, BackfillQuery, NextQuery};

/// Reports over all jobs.
#[derive(Clone, Copy, Debug)]
pub struct Reports<'a>(&'a Client);

impl Client {
    /// Reports over all jobs.
    pub fn reports(&self) -> Reports<'_> {
        Reports(self)
    }
}

impl Reports<'_> {
    /// Lists the slots of all jobs that got no run.
    pub fn gaps(self, query: &AllGapsQuery) -> Pages<wire::Gap> {
        Pages::new(self.0, "/gaps", query)
    }

    /// Lists times in which no instance scheduled anything, the latest first: those that end at or after `from` and begin
    /// before `to`. With `empty`, also those in which no job had a slot.
    pub fn outages(
        self,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
        empty: bool,
    ) -> Call<wire::Items<wire::Outage>> {
        let call = from.into_iter().fold(self.0.get("/outages"), |call, at| call.parameter("from", &at.to_string()));
        let call = to.into_iter().fold(call, |call, at| call.parameter("to", &at.to_string()));
        if empty { call.parameter("empty", "true") } else { call }
    }

    /// Lists the next times at which jobs fire.
    pub fn next(self, query: &NextQuery) -> Call<wire::NextFires> {
        self.0.get("/next").query(query)
    }

    /// Lists the backfills of all jobs, newest first.
    pub fn backfills(self, query: &BackfillQuery) -> Pages<wire::BackfillReport> {
        Pages::new(self.0, "/backfills", query).page_size(50)
    }

    /// Returns statistics of all jobs within a window that ends now; 24 hours if absent.
    pub fn stats(self, window: Option<Duration>) -> Call<wire::ClusterStats> {
        window.into_iter().fold(self.0.get("/stats"), |call, window| call.parameter("window", &iso(window)))
    }
}
