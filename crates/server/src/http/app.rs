//! [`App`]: what every request can reach.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use everbell::{Everbell, JobId, OrgId, RunRecord, StoreError, StoreResult, Timestamp};
use everbell_core::Zone;
use everbell_core::store::JobRef;
use subtle::ConstantTimeEq;
use tokio::sync::watch;

use super::access::{Actor, Gate, Role, token_hash};
use super::live::Live;
use super::problem::{Kind, Problem};
use super::streams::Streams;
use super::{docs, openapi};
use crate::config::{ApiSettings, Config, Template, usual_templates};
use crate::observe::{Duties, Metrics, Report, readiness};
use crate::secret::Secret;
use crate::ui::Kept;

/// How the API behaves.
#[derive(Clone, Debug)]
pub(crate) struct ApiOptions {
    pub(crate) settings: ApiSettings,
    /// The least role that reads runs.
    pub(crate) run_history: Role,
    /// A proxy stands in front, which tells the address of the caller.
    pub(crate) trust_proxy: bool,
    /// What `/metrics` asks for; without, only this machine may ask.
    pub(crate) metrics_token: Option<Secret>,
    pub(crate) served: Served,
    pub(crate) templates: Vec<Template>,
    /// Where people reach this server, if that was said.
    pub(crate) public_url: Option<String>,
    /// How long history is kept; nothing means for good.
    pub(crate) keep: Option<Duration>,
    /// How long a run that is canceled may take to stop.
    pub(crate) cancel_grace: Duration,
    /// Whether there are pages.
    pub(crate) ui: bool,
    /// What this installation is called, for people who have several.
    pub(crate) environment: Option<String>,
}

/// How much is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    All,
    /// Probes and metrics, by a process that only schedules.
    Probes,
    /// The API and nothing beside it, inside of another program.
    Embedded,
}

impl ApiOptions {
    fn of(config: &Config) -> ApiOptions {
        ApiOptions {
            settings: config.api.clone(),
            run_history: config.auth.run_history,
            trust_proxy: config.server.trust_proxy,
            metrics_token: config.auth.metrics_token.clone(),
            templates: config.templates.clone(),
            environment: config.ui.environment.clone(),
            ui: config.ui.enabled,
            public_url: config.server.public_url.clone(),
            keep: config.engine.retention,
            cancel_grace: config.engine.cancel_grace,
            served: if config.server.role.answers() { Served::All } else { Served::Probes },
        }
    }

    /// Whether the web UI is served.
    pub(crate) fn has_pages(&self) -> bool {
        self.ui && self.served == Served::All
    }

    /// Whether a path is below a mount.
    pub(crate) fn is_mounted(&self, path: &str) -> bool {
        self.served == Served::Embedded
            || path.starts_with("/api/")
            || self.settings.mounts.iter().any(|mount| path.starts_with(mount.as_str()))
    }
}

/// The most zones of jobs that are remembered.
const MOST_ZONES: usize = 50_000;

/// How long the place of an org is good for.
const PLACE_GOOD_FOR: Duration = Duration::from_secs(2);

/// Where an org was when it was read.
#[derive(Clone)]
struct KnownPlace {
    /// By the monotonic clock.
    read: Duration,
    /// Nothing if it cannot be read.
    zone: Option<Zone>,
    moved_at: Option<Timestamp>,
}

/// What every request can reach.
pub(crate) struct App {
    pub(crate) bell: Everbell,
    pub(crate) options: ApiOptions,
    pub(crate) gate: Gate,
    pub(crate) live: Live,
    pub(crate) streams: Arc<Streams>,
    pub(crate) metrics: Metrics,
    pub(crate) ui: Kept,
    duties: Duties,
    /// The documentation, for programs and for people: made once, as anybody may ask for it.
    documented: OnceLock<(String, String)>,
    /// The zones of jobs. A version never changes, so neither does its zone.
    zones: Mutex<HashMap<JobId, Zone>>,
    places: Mutex<HashMap<OrgId, KnownPlace>>,
    /// The keys of requests that are being answered.
    pub(crate) answering: Mutex<HashSet<String>>,
}

impl App {
    pub(crate) fn new(config: &Config, bell: Everbell, metrics: Metrics, ended: watch::Receiver<bool>) -> App {
        App {
            options: ApiOptions::of(config),
            gate: Gate::new(config.auth.admin_token.as_ref()),
            live: Live::new(ended),
            streams: Arc::default(),
            duties: Duties {
                schedules: config.server.role.schedules() && !config.targets.is_empty(),
                poll: config.engine.poll,
                heartbeat: config.engine.lease.heartbeat,
            },
            ui: Kept::default(),
            documented: OnceLock::new(),
            zones: Mutex::default(),
            places: Mutex::default(),
            answering: Mutex::default(),
            bell,
            metrics,
        }
    }

    /// For another program, which mounts it where it likes.
    pub(crate) fn embedded(bell: Everbell, admin_token: &Secret, metrics: Metrics) -> App {
        let settings = ApiSettings {
            mounts: vec![String::new()],
            compat: false,
            require_if_match: false,
            run_now_overlap_status: 409,
            docs: false,
        };
        App {
            options: ApiOptions {
                settings,
                run_history: Role::Viewer,
                trust_proxy: false,
                metrics_token: None,
                served: Served::Embedded,
                templates: usual_templates(),
                environment: None,
                ui: false,
                public_url: None,
                keep: None,
                cancel_grace: std::time::Duration::ZERO,
            },
            gate: Gate::new(Some(admin_token)),
            live: Live::without_end(),
            streams: Arc::default(),
            duties: Duties { schedules: false, poll: Duration::ZERO, heartbeat: Duration::ZERO },
            ui: Kept::default(),
            documented: OnceLock::new(),
            zones: Mutex::default(),
            places: Mutex::default(),
            answering: Mutex::default(),
            bell,
            metrics,
        }
    }

    /// The OpenAPI document, and the page that shows it.
    pub(crate) fn documented(&self) -> &(String, String) {
        self.documented.get_or_init(|| {
            let document = openapi::document(&self.options);
            (document.to_string(), docs::page(&document))
        })
    }

    /// The zone of the job of a run; nothing without a job, or for a zone that is no more. Of a run for an org that of
    /// the org, unless the org has moved since.
    pub(crate) async fn zone_of(&self, run: &RunRecord) -> StoreResult<Option<Zone>> {
        if let Some((org, slot)) = run.org.as_ref().zip(run.slot_at) {
            let place = self.place_of(org).await?;
            let there = place.filter(|place| place.moved_at.is_none_or(|at| at < slot));
            return Ok(there.and_then(|place| place.zone));
        }
        let Some(job) = run.job_id else { return Ok(None) };
        let known = self.zones.lock().unwrap_or_else(PoisonError::into_inner).get(&job).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let row = self.bell.store().get_job(&JobRef::Id(job)).await?;
        let Ok(spec) = &row.job.definition.spec else { return Ok(None) };
        let zone = spec.zone().clone();
        let mut zones = self.zones.lock().unwrap_or_else(PoisonError::into_inner);
        if zones.len() >= MOST_ZONES {
            zones.clear();
        }
        zones.insert(job, zone.clone());
        Ok(Some(zone))
    }

    /// Where an org is, or was a moment ago: a list of runs asks for the same ones again and again.
    async fn place_of(&self, org: &OrgId) -> StoreResult<Option<KnownPlace>> {
        let now = self.bell.clock().monotonic();
        let known = self.places.lock().unwrap_or_else(PoisonError::into_inner).get(org).cloned();
        if let Some(known) = known.filter(|known| now.saturating_sub(known.read) < PLACE_GOOD_FOR) {
            return Ok(Some(known));
        }
        let place = match self.bell.orgs().get(org).await {
            Ok(org) => org.place,
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let moved_at = place.moved.map(|moved| moved.at);
        let place = KnownPlace { read: now, zone: Zone::get(&place.timezone).ok(), moved_at };
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= MOST_ZONES {
            places.clear();
        }
        places.insert(org.clone(), place.clone());
        Ok(Some(place))
    }

    /// Who may read metrics.
    pub(crate) fn metrics_actor(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> Result<Actor, Problem> {
        let actor = Actor { name: "metrics".to_owned(), role: Role::Viewer };
        let Some(token) = &self.options.metrics_token else {
            return if is_local(headers, peer) {
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
        readiness(&self.bell, self.metrics.pulse(), &self.duties).await
    }
}

/// Whether a request comes from this machine. What a proxy on this machine passes on does not.
pub(crate) fn is_local(headers: &HeaderMap, peer: Option<IpAddr>) -> bool {
    let passed_on = ["x-forwarded-for", "forwarded", "x-real-ip"].iter().any(|name| headers.contains_key(*name));
    peer.is_some_and(|peer| peer.to_canonical().is_loopback()) && !passed_on
}
