//! [`Targets`]: the labels that an instance serves, and what each of them does.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use everbell_core::settle::Outcome;
use everbell_core::{Invalid, Json, Target};

use crate::clock::BoxFuture;
use crate::run::Run;
use crate::trace::TracingHook;

/// A handler with its types erased: takes a run, returns an outcome.
pub type Action = Arc<dyn Fn(Run) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// Returns why a handler cannot read a payload, as `no u64: invalid type: …`.
pub type PayloadCheck = fn(&Json) -> Result<(), String>;

/// Limits on the runs of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TargetOptions {
    /// The most concurrent runs on this instance: default as many as the instance takes.
    pub concurrency: Option<u32>,
    /// The longest time of a run: default the job's timeout; the shorter one counts.
    pub timeout: Option<Duration>,
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
    /// The traces that their runs belong to.
    pub(crate) tracing: TracingHook,
}

impl Targets {
    pub(crate) fn new(tracing: TracingHook) -> Targets {
        Targets { served: BTreeMap::new(), tracing }
    }

    /// Serves a target that takes any payload. Returns whether the label was free.
    #[cfg(test)]
    pub(crate) fn add(&mut self, target: Target, action: Action, options: TargetOptions) -> bool {
        self.add_checked(target, action, options, |_| Ok(()))
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

    pub(crate) fn get(&self, target: &Target) -> Option<&Served> {
        self.served.get(target)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Target> {
        self.served.keys()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Target, &Served)> {
        self.served.iter()
    }
}
