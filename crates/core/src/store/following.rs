//! Questions of a store when runs have ended that others follow.

use super::Due;
use crate::chain::{self, EndedRun};
use crate::plan::{Plan, PlanContext};

impl Due {
    /// The decision about a job when runs of the job before it have ended, with everything that was read for it.
    pub fn follow(&self, is_paused: bool, ended: &[EndedRun]) -> Plan {
        let seen = PlanContext {
            active: &self.active,
            upstream_succeeded_at: self.upstream_succeeded_at,
            org_spec: None,
            frozen: &self.frozen,
        };
        chain::follow(&self.job, &self.timer, &seen, is_paused, ended)
    }
}
