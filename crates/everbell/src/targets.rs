//! [`Targets`]: the labels that an instance serves, and what each of them does; [`Serving`]: those of this moment.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use everbell_core::handover::{MAX_LEASE, MIN_LEASE};
use everbell_core::settle::Outcome;
use everbell_core::{Invalid, Json, Target};
use tokio::sync::watch;

use crate::clock::BoxFuture;
use crate::run::Run;
use crate::trace::TracingHook;

/// A handler with its types erased: takes a run, returns an outcome.
pub type Action = Arc<dyn Fn(Run) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// Returns why a handler cannot read a payload, as `no u64: invalid type: …`.
pub type PayloadCheck = Arc<dyn Fn(&Json) -> Result<(), String> + Send + Sync>;

/// Limits on the runs of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TargetOptions {
    /// The maximum number of concurrent runs on this instance: default as many as the instance takes.
    pub concurrency: Option<u32>,
    /// The longest time of a run: default the job's timeout; the shorter one counts.
    pub timeout: Option<Duration>,
    /// How long the remote side of a run that was handed over may be silent until the run is lost. Without it no run can be
    /// handed over.
    pub remote_lease: Option<Duration>,
}

impl TargetOptions {
    /// Sets the most concurrent runs on this instance.
    #[must_use]
    pub fn concurrency(self, runs: u32) -> TargetOptions {
        TargetOptions { concurrency: Some(runs), ..self }
    }

    /// Sets the longest time of a run.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> TargetOptions {
        TargetOptions { timeout: Some(timeout), ..self }
    }

    /// Lets the handler hand its runs over to a remote side ([`Run::hand_over`](crate::Run::hand_over)), which may be silent
    /// for this long, 1 s to 24 h, until its run is lost.
    #[must_use]
    pub fn remote_lease(self, lease: Duration) -> TargetOptions {
        TargetOptions { remote_lease: Some(lease.clamp(MIN_LEASE, MAX_LEASE)), ..self }
    }
}

/// The action and options of a target.
#[derive(Clone)]
pub(crate) struct Served {
    pub(crate) action: Action,
    pub(crate) options: TargetOptions,
    check_payload: PayloadCheck,
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("options", &self.options).finish_non_exhaustive()
    }
}

/// The targets that an instance serves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Targets {
    served: BTreeMap<Target, Served>,
    /// Those that were served before a reload. Runs that were claimed by then still end.
    removed: BTreeMap<Target, Served>,
    /// The roles of the instance since a reload; before it, those of its options.
    pub(crate) roles: Option<Vec<String>>,
    /// The traces that their runs belong to.
    pub(crate) tracing: TracingHook,
}

impl Targets {
    pub(crate) fn new(tracing: TracingHook) -> Targets {
        Targets { tracing, ..Targets::default() }
    }

    /// Serves a target that takes any payload. Returns whether the label was free.
    #[cfg(test)]
    pub(crate) fn add(&mut self, target: Target, action: Action, options: TargetOptions) -> bool {
        self.add_checked(target, action, options, Arc::new(|_: &Json| Ok(())))
    }

    /// Serves a target. Returns whether the label was free.
    pub(crate) fn add_checked(
        &mut self,
        target: Target,
        action: Action,
        options: TargetOptions,
        check_payload: PayloadCheck,
    ) -> bool {
        self.served.insert(target, Served { action, options, check_payload }).is_none()
    }

    /// Refuses a payload that the handler of its target cannot read. Targets that are not served here are not checked.
    pub(crate) fn check_payload(&self, target: &Target, payload: &Json, job: Option<&str>) -> Result<(), Invalid> {
        let Some(served) = self.served.get(target) else { return Ok(()) };
        (served.check_payload)(payload).map_err(|mismatch| {
            let job = job.map_or_else(String::new, |job| format!(" of job `{job}`"));
            Invalid::new("payload", format!("target `{target}` cannot read the payload{job}: it is {mismatch}"))
        })
    }

    /// Whether runs of this target are taken.
    pub(crate) fn serves(&self, target: &Target) -> bool {
        self.served.contains_key(target)
    }

    /// Whether no target is served.
    pub(crate) fn is_empty(&self) -> bool {
        self.served.is_empty()
    }

    /// Returns what a run of this target does, also if its target was removed after the run was claimed.
    pub(crate) fn action_of(&self, target: &Target) -> Option<&Served> {
        self.served.get(target).or_else(|| self.removed.get(target))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Target> {
        self.served.keys()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Target, &Served)> {
        self.served.iter()
    }
}

/// The targets that an instance serves at this moment. Clones share them, and see when they are replaced.
#[derive(Clone, Debug)]
pub(crate) struct Serving(Arc<watch::Sender<Arc<Targets>>>);

impl Serving {
    pub(crate) fn new(targets: Targets) -> Serving {
        Serving(Arc::new(watch::Sender::new(Arc::new(targets))))
    }

    /// Returns the targets of this moment.
    pub(crate) fn now(&self) -> Arc<Targets> {
        Arc::clone(&self.0.borrow())
    }

    /// Serves these targets from now on. Runs in flight keep the action that they began with.
    pub(crate) fn replace(&self, mut targets: Targets) {
        self.0.send_modify(|now| {
            for (target, served) in now.served.iter().chain(&now.removed) {
                if !targets.served.contains_key(target) {
                    targets.removed.entry(target.clone()).or_insert_with(|| served.clone());
                }
            }
            *now = Arc::new(targets);
        });
    }

    /// Serves these targets besides those of this moment, which they override.
    pub(crate) fn add(&self, targets: &Targets) {
        let mut both = Targets::clone(&self.now());
        both.served.extend(targets.served.iter().map(|(target, served)| (target.clone(), served.clone())));
        self.replace(both);
    }

    /// Sees each replacement from now on.
    pub(crate) fn watch(&self) -> watch::Receiver<Arc<Targets>> {
        self.0.subscribe()
    }
}
