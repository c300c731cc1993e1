//! The next fires of a job, and explanations of a given time.

use everbell_core::calendar::{Exclusion, Roll};
use everbell_core::chain::RunGroup;
use everbell_core::freeze::Freeze;
use everbell_core::org::{self, Eligibility, OffReason};
use everbell_core::store::{JobRef, JobRow, PageRequest, RunFilter, SlotOutcome, StoreError, StoreResult};
use everbell_core::{Gap, JobId, JobKey, JobState, JobStatus, OrgId, Pause, Run, Spec, Timer, TriggerType};
use jiff::{Timestamp, Zoned};

use super::covering::covering_run;
use super::fires::{MAX_FIRES, fires, fires_from};
use super::jobs::Jobs;
use super::names::IntoJobRef;
use super::org_jobs::JobOfOrg;

/// The most versions that are asked about one slot.
const MAX_VERSIONS: usize = 100;

/// The outcome of a job at a given time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Explanation {
    /// The job does not fire at this time.
    NoSlot {
        /// The slot before.
        previous: Option<Timestamp>,
        /// The slot after.
        next: Option<Timestamp>,
    },
    /// A time at which the expression matches, on a day that a calendar of the job excludes.
    Excluded {
        /// The calendar and the day.
        exclusion: Exclusion,
        /// The next slot after it.
        next: Option<Timestamp>,
    },
    /// A slot on a day that a calendar of the job excludes: it fires on another day.
    Rolled {
        /// The calendar and the day.
        exclusion: Exclusion,
        /// When it fires.
        to: Timestamp,
    },
    /// The job did not exist yet: its slots start after its creation.
    BeforeCreation {
        /// When the first version was created.
        created_at: Timestamp,
    },
    /// A slot that is still to come, or is being planned.
    Ahead,
    /// A slot that is still to come, and that a freeze keeps from firing.
    Frozen(Freeze),
    /// A slot without its own fire: an operator moved the next fire, and the moved fire covers this slot too.
    Moved {
        /// The slot whose fire was moved.
        from: Timestamp,
        /// When it fires instead.
        to: Timestamp,
    },
    /// A slot that was folded into the run of another one.
    Folded {
        /// The gap that the slot is part of.
        gap: Gap,
        /// The run that covers it.
        run: Box<Run>,
    },
    /// A slot that was missed while the job is paused: it becomes a gap, or a run, when the job is resumed.
    Paused(Pause),
    /// A time since which the job cannot fire, for this reason. If it is a slot, it becomes a gap after the repair;
    /// while the schedule cannot be read, slots are unknown.
    Errored(String),
    /// The job does not fire at set times: it starts when runs of another job end.
    Following {
        /// The runs that start it, in words.
        rule: String,
        /// Its last run by then that other runs started.
        run: Option<Box<Run>>,
        /// The jobs that it starts after, each with its last run by then.
        parents: Vec<(JobKey, Option<Box<Run>>)>,
        /// The last group of runs that it waited for by then, if it starts after several jobs, and what is missing there.
        group: Option<(RunGroup, Vec<String>)>,
    },
    /// A slot that got a run or a gap.
    Settled(SlotOutcome),
    /// A slot without a record: its history was pruned, or its version ended before.
    Unknown,
}

impl Jobs {
    /// Returns the next times at which the job fires if nothing changes, at most 1,000, in its zone.
    ///
    /// Empty for a job that is retired or errored, or paused without an end.
    pub async fn next_fires(&self, job: impl IntoJobRef, count: usize) -> StoreResult<Vec<Zoned>> {
        let row = self.get(job).await?;
        let Ok(spec) = &row.job.definition.spec else { return Ok(Vec::new()) };
        Ok(fires(&row, spec, row.timer.as_ref(), self.context.now(), count.min(MAX_FIRES)))
    }

    /// Like [`Jobs::next_fires`], from a given time on.
    pub async fn next_fires_from(
        &self,
        job: impl IntoJobRef,
        from: Timestamp,
        count: usize,
    ) -> StoreResult<Vec<Zoned>> {
        let row = self.get(job).await?;
        let Ok(spec) = &row.job.definition.spec else { return Ok(Vec::new()) };
        Ok(fires_from(&row, spec, row.timer.as_ref(), (self.context.now(), from), count))
    }

    /// Like [`Jobs::next_fires`], for one org of a per-org job, in its zone. Empty where the job is off for it.
    pub async fn next_fires_for(&self, job: impl IntoJobRef, org: &OrgId, count: usize) -> StoreResult<Vec<Zoned>> {
        self.next_fires_for_from(job, org, self.context.now(), count).await
    }

    /// Like [`Jobs::next_fires_for`], from a given time on.
    pub async fn next_fires_for_from(
        &self,
        job: impl IntoJobRef,
        org: &OrgId,
        from: Timestamp,
        count: usize,
    ) -> StoreResult<Vec<Zoned>> {
        let read = JobOfOrg::read(&self.context, &job.into_job_ref()?, org).await?;
        // While the job is paused its orgs are off too, and it may resume by itself.
        let eligibility = org::eligibility(&read.row.job.definition, &read.facts());
        let (true, Ok(spec)) =
            (matches!(eligibility, Eligibility::Eligible(_) | Eligibility::Off(OffReason::JobPaused)), read.spec())
        else {
            return Ok(Vec::new());
        };
        Ok(fires_from(&read.row, &spec, read.timer.as_ref(), (self.context.now(), from), count))
    }

    /// Explains what happened at this time: to the version that was current then, if the job is named by its key.
    pub async fn explain(&self, job: impl IntoJobRef, time: Timestamp) -> StoreResult<Explanation> {
        let Some(Lives { row, others, created_at }) = self.alive_at(job.into_job_ref()?, time).await? else {
            return Ok(Explanation::Unknown);
        };
        let told = match &row.job.definition.spec {
            Ok(spec) if spec.is_following() => return self.explain_following(&row, created_at, time).await,
            Ok(spec) => {
                let told = self.explain_slot(&row, None, row.timer.as_ref(), spec, created_at, time).await?;
                self.or_frozen(told, &row, time).await?
            }
            Err(broken) => self.explain_unreadable(&row, None, &broken.reason, created_at, time).await?,
        };
        self.or_by_others(told, &others, None, time).await
    }

    /// Explains a time of a job without a clock: by its last run by then, and those of the jobs before it.
    async fn explain_following(
        &self,
        row: &JobRow,
        created_at: Timestamp,
        time: Timestamp,
    ) -> StoreResult<Explanation> {
        let definition = &row.job.definition;
        let Some(spec) = definition.spec.as_ref().ok().filter(|_| time > created_at) else {
            return Ok(Explanation::BeforeCreation { created_at });
        };
        let last = async |key: &JobKey, trigger| {
            let to = Some(crate::clock::later(time, MICROSECOND));
            let filter = RunFilter { job_key: Some(key.clone()), trigger, to, ..RunFilter::default() };
            let page = PageRequest { limit: 1, after: None };
            let found = self.context.parts.store.list_runs(&filter, &page).await?;
            Ok::<_, StoreError>(found.items.into_iter().next().map(Box::new))
        };
        let run = last(&definition.key, Some(TriggerType::After)).await?;
        let mut parents = Vec::new();
        for parent in spec.parents() {
            parents.push((parent.job_key.clone(), last(&parent.job_key, None).await?));
        }
        let mut group = None;
        if let Some(fan_in) = spec.fan_in() {
            let groups = self.context.parts.store.run_groups(&definition.key, Some(time), 1).await?;
            let with_missing = |group: RunGroup| (group.missing(fan_in), group);
            group = groups.into_iter().next().map(with_missing).map(|(missing, group)| (group, missing));
        }
        let rule = spec.describe_parents().unwrap_or_default();
        Ok(Explanation::Following { rule, run, parents, group })
    }

    /// Like [`Jobs::explain`], for one org of a per-org job. The slots are those of its current zone and override;
    /// recorded outcomes count in any case.
    pub async fn explain_for(&self, job: impl IntoJobRef, org: &OrgId, time: Timestamp) -> StoreResult<Explanation> {
        let Some(Lives { row, others, created_at }) = self.alive_at(job.into_job_ref()?, time).await? else {
            return Ok(Explanation::Unknown);
        };
        let read = JobOfOrg::read(&self.context, &JobRef::Id(row.job.definition.id), org).await?;
        let created_at = created_at.max(read.org.created_at);
        let told = match &row.job.definition.spec {
            Ok(_) => {
                let (spec, timer) = (read.spec()?, read.timer.as_ref());
                let told = self.explain_slot(&row, Some(org), timer, &spec, created_at, time).await?;
                self.or_frozen(told, &row, time).await?
            }
            Err(broken) => self.explain_unreadable(&row, Some(org), &broken.reason, created_at, time).await?,
        };
        self.or_by_others(told, &others, Some(org), time).await
    }

    /// Returns the freeze that an announced slot falls into, if there is one. A one-time job waits instead.
    async fn or_frozen(&self, told: Explanation, row: &JobRow, time: Timestamp) -> StoreResult<Explanation> {
        let definition = &row.job.definition;
        if told != Explanation::Ahead || definition.is_one_time() {
            return Ok(told);
        }
        let freezes = self.context.parts.store.freezes(time).await?.into_iter();
        let covers = |freeze: &Freeze| freeze.span().is_some_and(|span| span.contains(time));
        let found = freezes.filter(covers).find(|freeze| freeze.applies_to(definition));
        Ok(found.map_or(told, Explanation::Frozen))
    }

    /// Returns the outcome of the slot under another version, if this one has none: that one skipped it ahead, or took
    /// it over.
    async fn or_by_others(
        &self,
        told: Explanation,
        others: &[JobId],
        org: Option<&OrgId>,
        time: Timestamp,
    ) -> StoreResult<Explanation> {
        if matches!(told, Explanation::Ahead | Explanation::Unknown) {
            for version in others.iter().take(MAX_VERSIONS) {
                let outcome = self.context.parts.store.slot_outcome(*version, org, time).await?;
                if let Some(run @ SlotOutcome::Run(_)) = outcome {
                    return Ok(Explanation::Settled(run));
                }
            }
        }
        Ok(told)
    }

    /// Returns the version that was current at this time, or the first, and when the first was created. A named version
    /// is itself.
    async fn alive_at(&self, job: JobRef, time: Timestamp) -> StoreResult<Option<Lives>> {
        let JobRef::Key(key) = job else {
            let row = self.get(job).await?;
            let created_at = row.job.definition.created_at;
            return Ok(Some(Lives { row, others: Vec::new(), created_at }));
        };
        let versions = self.versions(key.as_str()).await?;
        let Some(first) = versions.last() else { return Ok(None) };
        let created_at = first.job.definition.created_at;
        let row = versions.iter().find(|row| row.job.definition.created_at < time).unwrap_or(first).clone();
        let others = versions.iter().map(|row| row.job.definition.id).filter(|id| *id != row.job.definition.id);
        Ok(Some(Lives { others: others.collect(), row, created_at }))
    }

    async fn explain_slot(
        &self,
        row: &JobRow,
        org: Option<&OrgId>,
        timer: Option<&Timer>,
        spec: &Spec,
        created_at: Timestamp,
        time: Timestamp,
    ) -> StoreResult<Explanation> {
        // What is written down counts, also where today's schedule would not fire.
        if let Some(outcome) = self.context.parts.store.slot_outcome(row.job.definition.id, org, time).await? {
            let inside = spec.matches(time) || matches!(outcome, SlotOutcome::Run(_));
            if inside || spec.dst_skipped_between(just_before(time), time).contains(&time) {
                return self.with_the_run_that_stands_for_it(row, org, spec, outcome).await;
            }
        }
        if spec.roll() != Roll::Skip
            && let Some(told) = self.explain_rolled(row, org, spec, created_at, time).await?
        {
            return Ok(told);
        }
        if let Some(exclusion) = spec.exclusion_at(time).filter(|_| time > created_at) {
            return Ok(Explanation::Excluded { exclusion, next: spec.next_after(time) });
        }
        Ok(if !spec.matches(time) {
            let previous = spec.prev_at_or_before(time).filter(|slot| *slot > created_at);
            Explanation::NoSlot { previous, next: spec.next_after(time.max(created_at)) }
        } else if time <= created_at {
            Explanation::BeforeCreation { created_at }
        } else if timer.is_some_and(|timer| time > timer.last_slot_at) && row.job.state.status != JobStatus::Retired {
            match (&row.job.state.pause, &row.job.state.error) {
                (Some(pause), _) if time <= self.context.now() => Explanation::Paused(pause.clone()),
                (None, Some(error)) if time <= self.context.now() => Explanation::Errored(error.clone()),
                (None, None) => timer.and_then(|timer| moved(timer, time)).unwrap_or(Explanation::Ahead),
                _ => Explanation::Ahead,
            }
        } else {
            Explanation::Unknown
        })
    }

    /// Explains a slot that fires on another day, or a time at which only slots of other days fire.
    async fn explain_rolled(
        &self,
        row: &JobRow,
        org: Option<&OrgId>,
        spec: &Spec,
        created_at: Timestamp,
        time: Timestamp,
    ) -> StoreResult<Option<Explanation>> {
        let id = row.job.definition.id;
        for slot in spec.slots_at(time) {
            let outcome = self.context.parts.store.slot_outcome(id, org, slot).await?;
            if let Some(run @ SlotOutcome::Run(_)) = outcome {
                return Ok(Some(Explanation::Settled(run)));
            }
        }
        let Some(to) = spec.fires_at(time).filter(|to| *to != time && *to > created_at) else { return Ok(None) };
        let Some(exclusion) = spec.exclusion_at(time) else { return Ok(None) };
        // A run of that time is of another slot, but a gap is for all of them.
        if let Some(gap @ SlotOutcome::Gap(_)) = self.context.parts.store.slot_outcome(id, org, to).await? {
            return self.with_the_run_that_stands_for_it(row, org, spec, gap).await.map(Some);
        }
        Ok(Some(Explanation::Rolled { exclusion, to }))
    }

    /// Explains a time of a job whose schedule cannot be read, so that its slots are unknown. Recorded outcomes count;
    /// every later time is errored.
    async fn explain_unreadable(
        &self,
        row: &JobRow,
        org: Option<&OrgId>,
        reason: &str,
        created_at: Timestamp,
        time: Timestamp,
    ) -> StoreResult<Explanation> {
        if let Some(outcome) = self.context.parts.store.slot_outcome(row.job.definition.id, org, time).await? {
            return Ok(Explanation::Settled(outcome));
        }
        let JobState { status, updated_at, .. } = &row.job.state;
        let settled = row.timer.as_ref().is_some_and(|timer| time <= timer.last_slot_at);
        Ok(if time <= created_at {
            Explanation::BeforeCreation { created_at }
        } else if settled || (*status == JobStatus::Retired && time > *updated_at) {
            Explanation::Unknown
        } else {
            Explanation::Errored(reason.to_owned())
        })
    }

    /// Returns a gap of folded slots together with the run that covers them, if that still exists: the run of the slot
    /// after the gap, or of the one before it when an operator had moved that fire.
    async fn with_the_run_that_stands_for_it(
        &self,
        row: &JobRow,
        org: Option<&OrgId>,
        spec: &Spec,
        outcome: SlotOutcome,
    ) -> StoreResult<Explanation> {
        let SlotOutcome::Gap(gap) = outcome else { return Ok(Explanation::Settled(outcome)) };
        Ok(match covering_run(&self.context, row.job.definition.id, org, spec, &gap).await? {
            Some(run) => Explanation::Folded { gap, run },
            None => Explanation::Settled(SlotOutcome::Gap(gap)),
        })
    }
}

/// Returns how a moved fire affects a slot, if it does.
fn moved(timer: &Timer, slot: Timestamp) -> Option<Explanation> {
    let (from, to) = (timer.rescheduled_from?, timer.next_run_at?);
    (slot == from || (from..=to).contains(&slot)).then_some(Explanation::Moved { from, to })
}

/// The version that was current at a time, the others, and when the first was created.
struct Lives {
    row: JobRow,
    others: Vec<JobId>,
    created_at: Timestamp,
}

pub(super) fn just_before(time: Timestamp) -> Timestamp {
    crate::clock::earlier(time, std::time::Duration::from_secs(1))
}

/// Slots lie on whole microseconds at the finest.
const MICROSECOND: std::time::Duration = std::time::Duration::from_micros(1);
