//! [`App`]: what every request can reach.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use everbell::client::WindowCounters;
use everbell::{Everbell, JobId, OrgId, RunRecord, StoreError, StoreResult, Timestamp};
use everbell_core::Zone;
use everbell_core::store::JobRef;
use subtle::ConstantTimeEq;
use tokio::sync::watch;

use super::access::{Actor, Authenticator, bearer, token_hash};
use super::counted::{CountedWindows, Window};
use super::denials::Denials;
use super::limit::{Limiter, Quota, Refused};
use super::live::Live;
use super::options::ApiOptions;
use super::problem::{Kind, Problem};
use super::proxy;
use super::reload::Reload;
use super::streams::Streams;
use super::target_editor::TargetEditor;
use everbell_observe::{Duties, Metrics, Report, readiness};
use everbell_wire::secret::Secret;

/// The most zones of jobs that are remembered.
const MAX_CACHED_ZONES: usize = 50_000;

/// How long the time zone of an org is cached.
const ORG_ZONE_TTL: Duration = Duration::from_secs(2);

/// The cached time zone of an org.
#[derive(Clone)]
struct KnownZone {
    /// By the monotonic clock.
    read: Duration,
    /// Nothing if it cannot be read.
    zone: Option<Zone>,
    moved_at: Option<Timestamp>,
}

/// The settings of this moment.
struct Current {
    options: Arc<ApiOptions>,
    duties: Duties,
}

/// The state that all requests share.
pub struct App {
    /// The library that does the work.
    pub bell: Everbell,
    current: RwLock<Current>,
    /// Authenticates callers.
    pub authenticator: Authenticator,
    /// Passes events on to streams.
    pub live: Live,
    pub(crate) streams: Streams,
    /// Denied requests that wait to be written to the audit trail.
    pub denials: Arc<Denials>,
    /// How often each actor may write; nothing without a limit.
    pub writes: Option<Limiter<String>>,
    /// Counters and histograms.
    pub metrics: Metrics,
    /// Reads the configuration again, where there is one.
    pub(crate) reload: OnceLock<Arc<dyn Reload>>,
    /// Knows the rules for targets that admins define, where there are any.
    pub(crate) target_editor: OnceLock<Arc<dyn TargetEditor>>,
    /// The documentation, for programs and for people: made once, as anybody may ask for it.
    pub(crate) documented: OnceLock<(String, String)>,
    /// The zones of jobs. A version never changes, so neither does its zone.
    zones: Mutex<HashMap<JobId, Zone>>,
    org_zones: Mutex<HashMap<OrgId, KnownZone>>,
    counted: CountedWindows,
    /// The keys of requests that are being answered.
    pub in_progress: Mutex<HashSet<String>>,
}

impl App {
    /// The application of a server. Event streams end when `ended` says so.
    pub fn new(
        options: ApiOptions,
        admin_token: Option<&Secret>,
        duties: Duties,
        bell: Everbell,
        metrics: Metrics,
        ended: watch::Receiver<bool>,
    ) -> App {
        let app = App::assemble(options, Authenticator::new(admin_token), Live::new(ended), bell, metrics);
        app.current.write().unwrap_or_else(PoisonError::into_inner).duties = duties;
        app
    }

    /// For another program, which mounts it where it likes.
    pub(crate) fn embedded(
        options: ApiOptions,
        admin_token: Option<&Secret>,
        bell: Everbell,
        metrics: Metrics,
        ended: watch::Receiver<bool>,
    ) -> App {
        App::assemble(options, Authenticator::new(admin_token), Live::new(ended), bell, metrics)
    }

    fn assemble(
        options: ApiOptions,
        authenticator: Authenticator,
        live: Live,
        bell: Everbell,
        metrics: Metrics,
    ) -> App {
        App {
            writes: options.settings.write_limit.map(Limiter::new),
            streams: Streams::default(),
            denials: Arc::default(),
            reload: OnceLock::new(),
            target_editor: OnceLock::new(),
            documented: OnceLock::new(),
            zones: Mutex::default(),
            org_zones: Mutex::default(),
            counted: CountedWindows::default(),
            in_progress: Mutex::default(),
            current: RwLock::new(Current {
                options: Arc::new(options),
                duties: Duties { schedules: false, poll: Duration::ZERO, heartbeat: Duration::ZERO },
            }),
            authenticator,
            live,
            bell,
            metrics,
        }
    }

    /// How the API behaves at this moment.
    pub fn options(&self) -> Arc<ApiOptions> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).options)
    }

    /// Behaves as these options say from now on. Routes stay as they are: which ones there are, and below which paths, is
    /// decided when the server starts.
    pub fn replace(&self, options: ApiOptions, admin_token: Option<&Secret>, duties: Duties) {
        self.authenticator.configure(admin_token);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Current { options: Arc::new(options), duties };
    }

    /// Lets admins ask for a reload of the configuration. The first call counts.
    pub fn reload_with(&self, reload: Arc<dyn Reload>) {
        let _ = self.reload.set(reload);
    }

    /// Lets admins define targets, as far as the configuration allows it. The first call counts.
    pub fn edit_targets_with(&self, editor: Arc<dyn TargetEditor>) {
        let _ = self.target_editor.set(editor);
    }

    /// Returns the counters of all jobs in a window. Where they take long to read, they are some seconds old.
    pub async fn counters(&self, window: Window) -> StoreResult<Arc<WindowCounters>> {
        self.counted.read(&self.bell, window).await
    }

    /// The zone of the job of a run; nothing without a job, or for a zone that is no more. Of a run for an org that of
    /// the org, unless the org has moved since.
    pub async fn zone_of(&self, run: &RunRecord) -> StoreResult<Option<Zone>> {
        if let Some((org, slot)) = run.org.as_ref().zip(run.slot_at) {
            let known = self.org_zone(org).await?;
            let unmoved = known.filter(|known| known.moved_at.is_none_or(|at| at < slot));
            return Ok(unmoved.and_then(|known| known.zone));
        }
        let Some(job) = run.job_id else { return Ok(None) };
        let known = self.zones.lock().unwrap_or_else(PoisonError::into_inner).get(&job).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let row = self.bell.jobs().get(JobRef::Id(job)).await?;
        let Ok(spec) = &row.job.definition.spec else { return Ok(None) };
        let zone = spec.zone().clone();
        let mut zones = self.zones.lock().unwrap_or_else(PoisonError::into_inner);
        if zones.len() >= MAX_CACHED_ZONES {
            zones.clear();
        }
        zones.insert(job, zone.clone());
        Ok(Some(zone))
    }

    /// Returns the time zone of an org from a short-lived cache, because a list of runs needs the same orgs
    /// repeatedly.
    async fn org_zone(&self, org: &OrgId) -> StoreResult<Option<KnownZone>> {
        let now = self.bell.clock().monotonic();
        let known = self.org_zones.lock().unwrap_or_else(PoisonError::into_inner).get(org).cloned();
        if let Some(known) = known.filter(|known| now.saturating_sub(known.read) < ORG_ZONE_TTL) {
            return Ok(Some(known));
        }
        let settings = match self.bell.orgs().get(org).await {
            Ok(org) => org.place,
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let moved_at = settings.moved.map(|moved| moved.at);
        let known = KnownZone { read: now, zone: Zone::get(&settings.timezone).ok(), moved_at };
        let mut org_zones = self.org_zones.lock().unwrap_or_else(PoisonError::into_inner);
        if org_zones.len() >= MAX_CACHED_ZONES {
            org_zones.clear();
        }
        org_zones.insert(org.clone(), known.clone());
        Ok(Some(known))
    }

    /// Authorizes a request for metrics: by the metrics token or, without one, for programs on this machine that do
    /// not use a proxy.
    pub fn metrics_actor(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> Result<Actor, Problem> {
        let options = self.options();
        match &options.metrics_token {
            Some(token) => {
                let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
                let given = header.and_then(bearer).unwrap_or("");
                if !bool::from(token_hash(token.reveal()).ct_eq(&token_hash(given))) {
                    let why = Problem::new(Kind::Unauthenticated, "The metrics token is required.");
                    let from = proxy::client_address(&options, headers, peer);
                    return Err(if header.is_some() {
                        self.authenticator.count_failure(from, &self.bell, why)
                    } else {
                        why
                    });
                }
            }
            None => self.expect_local(headers, peer)?,
        }
        Ok(Actor::anonymous("metrics"))
    }

    fn expect_local(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> Result<(), Problem> {
        let options = self.options();
        let is_proxied = options.trust_proxy
            || options.public_url.is_some()
            || ["x-forwarded-for", "forwarded", "x-real-ip"].iter().any(|name| headers.contains_key(*name));
        if is_proxied || !peer.is_some_and(|peer| peer.to_canonical().is_loopback()) {
            let detail = "Without a token, metrics are available only to programs on this machine that do not use a proxy. Set \
                          `auth.metrics_token` and send it as `Authorization: Bearer …`.";
            return Err(Problem::new(Kind::Forbidden, detail));
        }
        if !proxy::names_this_machine(&options, headers) {
            let detail = "Without a token, metrics are available only to programs on this machine. Use `localhost`, a loopback \
                          address or the address of `server.listen`.";
            return Err(Problem::new(Kind::Misdirected, detail));
        }
        Ok(())
    }

    /// Counts a write of this actor.
    pub fn take_write(&self, actor: &Actor) -> Result<Option<Quota>, Refused> {
        let Some(writes) = &self.writes else { return Ok(None) };
        writes.take(&actor.name, self.bell.clock().monotonic()).map(Some)
    }

    /// Whether everything that this process needs is there.
    pub async fn readiness(&self) -> Report {
        let duties = self.current.read().unwrap_or_else(PoisonError::into_inner).duties;
        readiness(&self.bell, self.metrics.pulse(), &duties).await
    }
}

/// Whether a request comes from this machine. What a proxy on this machine passes on does not.
pub fn is_local(headers: &HeaderMap, peer: Option<IpAddr>) -> bool {
    let passed_on = ["x-forwarded-for", "forwarded", "x-real-ip"].iter().any(|name| headers.contains_key(*name));
    peer.is_some_and(|peer| peer.to_canonical().is_loopback()) && !passed_on
}
