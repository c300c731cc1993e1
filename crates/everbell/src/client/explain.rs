//! When a job fires next, and what became of a time that has gone by.

use everbell_core::store::{JobRef, JobRow, SlotOutcome, StoreResult};
use everbell_core::{Invalid, JobStatus, fire_at};
use jiff::{Timestamp, Zoned};

use super::jobs::Jobs;
use super::names::IntoJobRef;

/// The most fires that are told at once.
const MOST_FIRES: usize = 1_000;

/// What became of a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Explanation {
    /// The job does not fire at this time.
    NoSlot {
        /// The slot before.
        previous: Option<Timestamp>,
        /// The slot after.
        next: Option<Timestamp>,
    },
    /// The job did not exist yet: its slots begin after its creation.
    BeforeCreation {
        /// When the first version was made.
        created_at: Timestamp,
    },
    /// A slot that is still to come, or is being planned.
    Ahead,
    /// A slot that got a run or a gap.
    Settled(SlotOutcome),
    /// A slot of which nothing is known any more: its history was pruned, or its version ended before.
    Unknown,
}

impl Jobs {
    /// The next times at which the job fires if nothing else happens, at most 1,000, in its zone.
    ///
    /// None for a job that is retired or errored, or paused without an end.
    pub async fn next_fires(&self, job: impl IntoJobRef, count: usize) -> StoreResult<Vec<Zoned>> {
        let row = self.get(job).await?;
        Ok(fires(&row, self.context.now(), count.min(MOST_FIRES)))
    }

    /// What became of this time: of the version that was alive then, if the job is named by its key.
    pub async fn explain(&self, job: impl IntoJobRef, time: Timestamp) -> StoreResult<Explanation> {
        let (row, first) = match job.into_job_ref()? {
            JobRef::Key(key) => {
                let versions = self.versions(key.as_str()).await?;
                let first = versions.last().map(|row| row.job.definition.created_at);
                let alive = versions.iter().find(|row| row.job.definition.created_at < time).cloned();
                (alive.or_else(|| versions.last().cloned()), first)
            }
            other => {
                let row = self.get(other).await?;
                (Some(row.clone()), Some(row.job.definition.created_at))
            }
        };
        let Some((row, created_at)) = row.zip(first) else { return Ok(Explanation::Unknown) };
        let definition = &row.job.definition;
        let spec = definition.spec.as_ref().map_err(|broken| Invalid::new("schedule", broken.reason.clone()))?;
        // What is written down counts, also where today's schedule would not fire.
        if let Some(outcome) = self.context.parts.store.slot_outcome(definition.id, None, time).await? {
            let inside = spec.matches(time) || matches!(outcome, SlotOutcome::Run(_));
            if inside || spec.dst_skipped_between(just_before(time), time).contains(&time) {
                return Ok(Explanation::Settled(outcome));
            }
        }
        Ok(if !spec.matches(time) {
            Explanation::NoSlot { previous: spec.prev_at_or_before(time), next: spec.next_after(time) }
        } else if time <= created_at {
            Explanation::BeforeCreation { created_at }
        } else if row.timer.as_ref().is_some_and(|timer| time > timer.last_slot_at)
            && row.job.state.status != JobStatus::Retired
        {
            Explanation::Ahead
        } else {
            Explanation::Unknown
        })
    }
}

fn just_before(time: Timestamp) -> Timestamp {
    crate::clock::earlier(time, std::time::Duration::from_secs(1))
}

fn fires(row: &JobRow, now: Timestamp, count: usize) -> Vec<Zoned> {
    let (definition, state) = (&row.job.definition, &row.job.state);
    let (Ok(spec), Some(timer)) = (&definition.spec, &row.timer) else { return Vec::new() };
    let resumed_at = state.pause.as_ref().and_then(|pause| pause.until);
    // A moved fire takes the slots that it passes with it, and one that is due is about to happen.
    let (first, after) = match (state.status, timer.next_run_at, resumed_at) {
        (JobStatus::Active, Some(next), _) => {
            (Some(next), timer.rescheduled_from.unwrap_or(timer.last_slot_at).max(next).max(now))
        }
        (JobStatus::Paused, _, Some(until)) => (None, until.max(now)),
        _ => return Vec::new(),
    };
    let fire = |slot| fire_at(spec, definition.id, None, slot, definition.policies.jitter);
    // With jitter the next fire lies behind its slot, so slots are asked for from there on and compared as fires.
    let later = spec.slots_after(after).map(fire).filter(|at| first.is_none_or(|first| *at > first));
    let all = first.into_iter().chain(later).take(count);
    all.map(|at| at.to_zoned(spec.zone().as_jiff().clone())).collect()
}
