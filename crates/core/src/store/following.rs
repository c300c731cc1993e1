//! Questions of a store when runs have ended that others follow.

use super::Due;
use crate::chain::{self, EndedRun, Start};
use crate::plan::{Plan, PlanContext};

impl Due {
    /// The decision about a job when runs of the job before it have ended, with everything that was read for it.
    pub fn follow(&self, is_paused: bool, ended: &[EndedRun]) -> Plan {
        chain::follow(&self.job, &self.timer, &self.seen(), is_paused, ended)
    }

    /// The decision about a job that waited for runs of several jobs, which have all ended: see [`chain::join`].
    pub fn start_runs(&self, is_paused: bool, starts: &[Start]) -> Plan {
        chain::start_runs(&self.job, &self.timer, &self.seen(), is_paused, starts)
    }

    fn seen(&self) -> PlanContext<'_> {
        PlanContext {
            active: &self.active,
            upstream_succeeded_at: self.upstream_succeeded_at,
            org_spec: None,
            frozen: &self.frozen,
        }
    }
}
