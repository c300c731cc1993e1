//! The outcomes of runs, and what follows for jobs.

use everbell_core::RunStatus;
use everbell_core::settle::{Next, Transition, cancel_retry};
use everbell_core::store::Recorded;
use jiff::Timestamp;

use super::state::{State, micros};

impl State {
    pub(super) fn record_one(&mut self, transition: &Transition, now: Timestamp) -> Recorded {
        let Transition { run_id, attempt, from, to, output } = transition;
        let Some(active) = self.active.get_mut(run_id) else { return Recorded::LeaseLost };
        if active.run.attempt != *attempt || active.run.status != *from {
            return Recorded::LeaseLost;
        }
        let job = active.lane;
        if let Some(output) = output {
            self.outputs.insert(*run_id, output.clone());
        }
        match to {
            Next::Retry { not_before, failure, ended } => {
                let ended = ended.clone().map(|mut ended| {
                    ended.ended_at = micros(ended.ended_at);
                    ended
                });
                active.run.earlier_attempts.extend(ended);
                active.available_at = micros(*not_before);
                active.run.status = RunStatus::Pending;
                active.run.lease_until = None;
                active.run.failure = Some(failure.clone());
                active.run.next_attempt_at = Some(active.available_at);
                if let Some(by) = active.run.cancel_by.clone()
                    && let Some(canceled) = cancel_retry(transition, &by, now)
                {
                    self.record_one(&canceled, now);
                    return Recorded::Canceled { by };
                }
            }
            Next::Finish { status, finished_at, failure, result } => {
                if let Some(job) = job.and_then(|id| self.jobs.get_mut(&id)) {
                    let failures = &mut job.state.consecutive_failures;
                    match status {
                        RunStatus::Failed => *failures += 1,
                        RunStatus::Succeeded => *failures = 0,
                        RunStatus::Canceled | RunStatus::Skipped | RunStatus::Pending | RunStatus::Running => {}
                    }
                }
                self.end(*run_id, *status, *finished_at, failure.clone(), result.clone(), now);
            }
        }
        let job = job.and_then(|id| self.jobs.get(&id));
        Recorded::Applied { consecutive_failures: job.map_or(0, |job| job.state.consecutive_failures) }
    }
}
