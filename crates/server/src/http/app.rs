//! [`App`]: what every request can reach.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use axum::http::{HeaderMap, header};
use everbell::{Everbell, JobId, RunRecord};
use everbell_core::Zone;
use everbell_core::store::JobRef;
use subtle::ConstantTimeEq;
use tokio::sync::watch;

use super::access::{Actor, Gate, Role, token_hash};
use super::live::Live;
use super::problem::{Kind, Problem};
use crate::observe::{Metrics, Report};
use crate::secret::Secret;

/// How the API behaves.
#[derive(Clone, Debug)]
pub(crate) struct ApiOptions {
    /// Where the API is: `/api/v1`.
    pub(crate) mounts: Vec<String>,
    /// Whether the facade of schedules is there.
    pub(crate) compat: bool,
    /// Whether jobs are changed only for who says which revision they have read.
    pub(crate) require_if_match: bool,
    /// The status of a run-now that is skipped: 409 or 200.
    pub(crate) run_now_overlap_status: u16,
    /// Whether the page about the API is there.
    pub(crate) docs: bool,
    /// The least role that reads runs.
    pub(crate) run_history: Role,
    /// A proxy stands in front, which tells the address of the caller.
    pub(crate) trust_proxy: bool,
    /// What `/metrics` asks for; without, only this machine may ask.
    pub(crate) metrics_token: Option<Secret>,
}

impl Default for ApiOptions {
    fn default() -> Self {
        ApiOptions {
            mounts: vec!["/api/v1".to_owned(), "/api/v2/admin/cron".to_owned()],
            compat: true,
            require_if_match: false,
            run_now_overlap_status: 409,
            docs: true,
            run_history: Role::Viewer,
            trust_proxy: false,
            metrics_token: None,
        }
    }
}

impl ApiOptions {
    /// Whether a path is below a mount.
    pub(crate) fn is_mounted(&self, path: &str) -> bool {
        path.starts_with("/api/") || self.mounts.iter().any(|mount| path.starts_with(mount.as_str()))
    }
}

/// The most zones of jobs that are remembered.
const MOST_ZONES: usize = 50_000;

/// What every request can reach.
pub(crate) struct App {
    pub(crate) bell: Everbell,
    pub(crate) options: ApiOptions,
    pub(crate) gate: Gate,
    pub(crate) live: Live,
    pub(crate) metrics: Metrics,
    /// Whether this process schedules.
    pub(crate) schedules: bool,
    /// The zones of jobs. A version never changes, so neither does its zone.
    zones: Mutex<HashMap<JobId, Zone>>,
}

impl App {
    pub(crate) fn new(
        bell: Everbell,
        options: ApiOptions,
        admin_token: Option<&Secret>,
        metrics: Metrics,
        schedules: bool,
        ended: watch::Receiver<bool>,
    ) -> App {
        let gate = Gate::new(admin_token);
        App { bell, options, gate, live: Live::new(ended), metrics, schedules, zones: Mutex::default() }
    }

    /// The zone of the job of a run.
    pub(crate) async fn zone_of(&self, run: &RunRecord) -> Option<Zone> {
        let job = run.job_id?;
        let known = self.zones.lock().unwrap_or_else(PoisonError::into_inner).get(&job).cloned();
        if known.is_some() {
            return known;
        }
        let row = self.bell.store().get_job(&JobRef::Id(job)).await.ok()?;
        let zone = row.job.definition.spec.as_ref().ok()?.zone().clone();
        let mut zones = self.zones.lock().unwrap_or_else(PoisonError::into_inner);
        if zones.len() >= MOST_ZONES {
            zones.clear();
        }
        zones.insert(job, zone.clone());
        Some(zone)
    }

    /// Who may read metrics.
    pub(crate) fn metrics_actor(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> Result<Actor, Problem> {
        let actor = Actor { name: "metrics".to_owned(), role: Role::Viewer };
        let Some(token) = &self.options.metrics_token else {
            // What a proxy on this machine passes on is not from this machine.
            let passed_on = ["x-forwarded-for", "forwarded", "x-real-ip"].iter().any(|name| headers.contains_key(*name));
            return if peer.is_some_and(|peer| peer.to_canonical().is_loopback()) && !passed_on {
                Ok(actor)
            } else {
                let detail = "Metrics are for this machine only; configure a token for them to ask from elsewhere.";
                Err(Problem::new(Kind::Forbidden, detail))
            };
        };
        let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let brought = header.and_then(|header| header.split_once(' ')).map_or("", |(_, brought)| brought.trim());
        if bool::from(token_hash(token.reveal()).ct_eq(&token_hash(brought))) {
            return Ok(actor);
        }
        Err(Problem::new(Kind::Unauthenticated, "The token for metrics is needed."))
    }

    /// Whether everything that this process needs is there.
    pub(crate) async fn readiness(&self) -> Report {
        crate::observe::readiness(&self.bell, &self.metrics, self.schedules).await
    }
}
