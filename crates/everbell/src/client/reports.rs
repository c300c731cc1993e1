//! [`Reports`]: what happened to all jobs together, and what comes next.

use std::collections::BTreeMap;
use std::sync::Arc;

use everbell_core::freeze::Freeze;
use everbell_core::org::OrgSlot;
use everbell_core::outage::{Absence, AbsenceGroup, Outage, merge_absences};
use everbell_core::store::{
    Bucket, GapCount, JobFilter, JobRow, JobSort, MAX_ABSENCES, Page, PageRequest, RunHistogram, StoreResult,
};
use everbell_core::{Definition, JobId, JobKey, JobStatus, Scope};
use jiff::{SignedDuration, Timestamp};

use super::backfill_reports::BackfillReport;
use super::fires::upcoming;
use super::org_schedules::OrgSchedules;
use super::{Context, Jobs};

/// The most jobs that are looked at for fires from a later time on.
const MAX_JOBS: usize = 10_000;
/// The number of jobs in one read.
const PAGE_ROWS: u32 = 1_000;
/// The most fires that are listed at once.
pub const MAX_NEXT_FIRES: usize = 5_000;

/// Reports over all jobs: `bell.reports().outages(None, None).await?`.
#[derive(Clone, Debug)]
pub struct Reports {
    pub(super) context: Context,
}

/// A request for the list of coming fires.
#[derive(Clone, Debug)]
pub struct NextRequest {
    /// Only fires at or after this time; now if absent.
    pub from: Option<Timestamp>,
    /// Only times before this one.
    pub until: Option<Timestamp>,
    /// Only jobs with this label, of any value if that is absent.
    pub label: Option<(String, Option<String>)>,
    /// Only jobs that fire at most this many times in the 24 hours after the first of these fires.
    pub most_a_day: Option<usize>,
    /// How many fires at most, up to 5,000.
    pub limit: usize,
}

/// A fire to come.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NextFire {
    /// The time of the fire.
    pub at: Timestamp,
    /// The job.
    pub job: Arc<JobRow>,
    /// How many runs it has: several for several orgs, or where calendars move several slots to this time.
    pub runs: u64,
    /// The orgs that it fires for, for a job with scope `per_org`.
    pub orgs: Option<OrgSlot>,
    /// The freeze that keeps it from firing. A one-time job waits until its end.
    pub frozen: Option<Freeze>,
}

/// Fires to come, the earliest first.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NextFires {
    /// The fires.
    pub fires: Vec<NextFire>,
    /// Whether there are more.
    pub more: bool,
    /// Whether every job was looked at, and every group of orgs.
    pub complete: bool,
    /// How many jobs were left out because they fire too often a day.
    pub frequent: usize,
}

/// Runs and gaps of a window, counted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClusterStats {
    /// The runs.
    pub runs: Bucket,
    /// The gaps, by reason.
    pub gaps: Vec<GapCount>,
    /// The absences of all instances that end in the window or later.
    pub absences: Vec<Absence>,
}

impl Reports {
    pub(crate) fn new(context: Context) -> Reports {
        Reports { context }
    }

    /// Lists the outages that end at or after `from` and begin before `to`, the latest first, at most 100: times in which no
    /// instance scheduled anything, and the outcomes of the slots in them. An outage in which no job had a slot is listed
    /// too, without jobs.
    pub async fn outages(&self, from: Option<Timestamp>, to: Option<Timestamp>) -> StoreResult<Vec<Outage>> {
        let store = &self.context.parts.store;
        let mut outages = Vec::new();
        for group in AbsenceGroup::from_absences(store.absences(from, to, MAX_ABSENCES).await?).into_iter().rev() {
            outages.push(self.outage(&group).await?);
        }
        Ok(outages)
    }

    /// Returns the latest outage that ended at or after this time and in which jobs had slots.
    pub async fn latest_outage(&self, since: Timestamp) -> StoreResult<Option<Outage>> {
        let store = &self.context.parts.store;
        let absences = store.absences(Some(since), None, MAX_ABSENCES).await?;
        for group in AbsenceGroup::from_absences(absences).into_iter().rev() {
            let outage = self.outage(&group).await?;
            if !outage.jobs.is_empty() {
                return Ok(Some(outage));
            }
        }
        Ok(None)
    }

    /// Returns the outcomes of the slots of a group of absences.
    async fn outage(&self, group: &AbsenceGroup) -> StoreResult<Outage> {
        let mut late = Vec::new();
        for range in &group.ranges {
            late.extend(self.context.parts.store.late_slots(range).await?);
        }
        Ok(Outage::new(group.absence, &late))
    }

    /// Returns the keys of these jobs. One that no longer exists is left out.
    pub async fn job_keys(&self, jobs: impl IntoIterator<Item = JobId>) -> StoreResult<BTreeMap<JobId, JobKey>> {
        let mut ids: Vec<JobId> = jobs.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(self.context.parts.store.job_keys(&ids).await?.into_iter().collect())
    }

    /// Counts the runs and gaps of `[from, to)`.
    pub async fn stats(&self, from: Timestamp, to: Timestamp) -> StoreResult<ClusterStats> {
        let store = &self.context.parts.store;
        let histogram = RunHistogram::new(vec![from, to])?.with_times();
        let buckets = store.count_runs_by_time(&histogram).await?;
        Ok(ClusterStats {
            runs: Bucket::sum(&buckets).unwrap_or_else(|| Bucket::new(from, to)),
            gaps: store.count_gaps(from, to).await?,
            absences: merge_absences(store.absences(Some(from), Some(to), MAX_ABSENCES).await?),
        })
    }

    /// Lists the backfills of all jobs, newest first, with their progress, a page at a time.
    pub async fn backfills(&self, page: &PageRequest) -> StoreResult<Page<(JobKey, BackfillReport)>> {
        let entries = self.context.parts.store.list_backfill_entries(page).await?;
        let org_updates = self.context.parts.store.list_org_updates().await?;
        let jobs = Jobs::new(self.context.clone());
        let mut items = Vec::new();
        for entry in entries.items {
            let key = entry.object.strip_prefix("job:").and_then(|key| JobKey::new(key).ok());
            let Some(key) = key else { continue };
            items.extend(jobs.backfill_of_entry(&key, entry, &org_updates).await?.map(|report| (key, report)));
        }
        Ok(Page::new(items, entries.next, entries.unreadable))
    }

    /// Lists the next fires of all active jobs, the earliest first, if nothing changes. The orgs for which a per-org job
    /// fires at the same time are one fire.
    pub async fn next(&self, request: &NextRequest) -> StoreResult<NextFires> {
        let now = self.context.now();
        let from = request.from.map_or(now, |from| from.max(now));
        let until = request.until.unwrap_or(everbell_core::LATEST);
        let limit = request.limit.clamp(1, MAX_NEXT_FIRES);
        let freezes = self.context.parts.store.freezes(now).await?;
        let (jobs, complete) = self.candidates(request, from > now, limit).await?;
        let schedules = self.org_schedules(jobs.iter().map(Arc::as_ref), until).await?;
        let (mut fires, mut frequent) = (Vec::new(), 0);
        for job in jobs {
            if request.most_a_day.is_some_and(|most| fires_more(&job, &schedules, (now, from), most)) {
                frequent += 1;
                continue;
            }
            add_fires(&job, &schedules, (now, from, until), limit, &mut fires);
        }
        fires.sort_by(|a, b| (a.at, a.job.key()).cmp(&(b.at, b.job.key())));
        let more = fires.len() > limit;
        fires.truncate(limit);
        for fire in &mut fires {
            fire.at = fire.at.max(now);
            fire.frozen = freeze_at(&freezes, &fire.job.job.definition, fire.at).cloned();
        }
        Ok(NextFires { fires, more, complete: complete && !schedules.is_cut(), frequent })
    }

    /// The jobs that may have a fire among the first ones: those that fire first or, from a later time on, all of them.
    async fn candidates(
        &self,
        request: &NextRequest,
        later: bool,
        limit: usize,
    ) -> StoreResult<(Vec<Arc<JobRow>>, bool)> {
        let filter = JobFilter {
            status: vec![JobStatus::Active],
            label: request.label.clone(),
            sort: if later { JobSort::Key } else { JobSort::NextRunAt },
            ..JobFilter::default()
        };
        let most = if later { MAX_JOBS } else { limit + 1 };
        let (mut rows, mut after) = (Vec::new(), None);
        loop {
            let page = PageRequest { limit: PAGE_ROWS.min((most - rows.len()).max(1) as u32), after };
            let page = self.context.parts.store.list_jobs(&filter, &page).await?;
            rows.extend(page.items.into_iter().map(Arc::new));
            after = page.next;
            if after.is_none() || rows.len() >= most {
                break;
            }
        }
        // Jobs that were not read fire later than those that were.
        Ok((rows, !later || after.is_none()))
    }
}

/// Adds the fires of a job that are among the first `limit` ones and one more.
fn add_fires(
    job: &Arc<JobRow>,
    schedules: &OrgSchedules,
    range: (Timestamp, Timestamp, Timestamp),
    limit: usize,
    fires: &mut Vec<NextFire>,
) {
    let (now, from, until) = range;
    let definition = &job.job.definition;
    let Ok(spec) = &definition.spec else { return };
    let own: Box<dyn Iterator<Item = (Timestamp, Option<OrgSlot>)>> = match definition.scope {
        Scope::Global => Box::new(upcoming(job, spec, job.timer.as_ref(), (now, from)).map(|at| (at, None))),
        Scope::PerOrg => Box::new(schedules.fires(job.id(), range).map(|slot| (slot.at, Some(slot)))),
    };
    // Later than as many others, it cannot be among the first.
    let bound = if fires.len() > limit { fires[limit].at } else { Timestamp::MAX };
    let own = own.take_while(|(at, _)| *at < until && *at <= bound).take(limit + 1);
    let before = fires.len();
    // A fire that an operator moved has the runs of its own time.
    let moved = job.timer.as_ref().and_then(|timer| Some((timer.next_run_at?, timer.rescheduled_from?)));
    let meant = |at: Timestamp| moved.filter(|(to, _)| *to == at).map_or(at, |(_, from)| from);
    fires.extend(own.map(|(at, orgs)| {
        let runs = orgs.as_ref().map_or_else(|| spec.runs_at(meant(at)), |slot| slot.runs);
        NextFire { at, job: Arc::clone(job), runs, orgs, frozen: None }
    }));
    if fires.len() > before {
        fires.sort_by_key(|fire| fire.at);
        fires.truncate(limit + 1);
    }
}

/// Whether a job fires more often than this in the 24 hours after its first fire, for the same org if it fires for each.
fn fires_more(job: &JobRow, schedules: &OrgSchedules, range: (Timestamp, Timestamp), most: usize) -> bool {
    let day = SignedDuration::from_hours(24);
    if let Some(schedule) = schedules.get(job.id()) {
        let first = schedule.slots(range.1, everbell_core::LATEST).next();
        let end = |first: Timestamp| first.saturating_add(day).unwrap_or(first);
        return first.is_some_and(|slot| schedule.most_slots(slot.at, end(slot.at)) > most as u64);
    }
    let definition = &job.job.definition;
    let (Ok(spec), Scope::Global) = (&definition.spec, definition.scope) else { return false };
    let mut own = upcoming(job, spec, job.timer.as_ref(), range);
    let Some(first) = own.next() else { return false };
    let is_same_day = |at: Timestamp| at.duration_since(first) < day;
    most.checked_sub(1).is_none_or(|more| own.nth(more).is_some_and(is_same_day))
}

/// Returns the freeze that keeps a job from firing at this time: the one that lasts longest. The slot decides, so a fire that
/// jitter delays into a freeze happens.
pub fn freeze_at<'a>(freezes: &'a [Freeze], job: &Definition, at: Timestamp) -> Option<&'a Freeze> {
    let jittered = job.scope == Scope::Global && !job.policies.jitter.is_zero();
    let spec = job.spec.as_ref().ok().filter(|_| jittered);
    let slot = spec.and_then(|spec| spec.prev_at_or_before(at)).unwrap_or(at);
    let applies = |freeze: &&Freeze| freeze.applies_to(job) && freeze.span().is_some_and(|span| span.contains(slot));
    freezes.iter().filter(applies).max_by_key(|freeze| freeze.ends_at)
}
