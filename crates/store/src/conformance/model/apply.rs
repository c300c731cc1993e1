//! Makes an operation happen on a store, and writes its answer in a form that can be compared.

use std::fmt::Debug;

use everbell_core::change::{self, Edit, JobChange, JobView};
use everbell_core::plan::{Backfill, RunNow};
use everbell_core::settle::Next;
use everbell_core::store::{
    Claim, GapFilter, JobFilter, JobRow, JobSort, LastAdmin, PageRequest, PlanDue, PruneBefore, Recorded, RunFilter,
    StartRuns, Store, StoreResult, TargetRoom,
};
use everbell_core::{Invalid, JobKey, Pause, RunId};
use jiff::Timestamp;

use super::super::given::{LOG, MAIL, core_plan, job_at, kind, target};
use super::super::plain::Plain;
use super::super::world::{by_key, room};
use super::operation::{Change, Operation};

/// The answer of a store, and what the generator learns from it.
#[derive(Debug, Default)]
pub(super) struct Observation {
    /// The whole answer, as text.
    pub(super) text: String,
    /// Runs that were started.
    pub(super) claims: Vec<Claim>,
    /// Runs that were inserted.
    pub(super) runs: Vec<RunId>,
    /// Runs that ended.
    pub(super) ended: Vec<RunId>,
    /// Jobs that were returned.
    pub(super) jobs: Vec<JobRow>,
}

impl Observation {
    fn new<T: Debug>(answer: StoreResult<T>) -> Observation {
        let text = match answer {
            Ok(answer) => format!("{answer:?}"),
            Err(error) => format!("error: {}", kind(&error)),
        };
        Observation { text, ..Observation::default() }
    }
}

impl Operation {
    pub(super) async fn apply(&self, store: &dyn Store) -> Observation {
        match self {
            Operation::Create(..) | Operation::Change { .. } | Operation::Get(_) => self.on_job(store).await,
            Operation::Plan { .. }
            | Operation::Start { .. }
            | Operation::Record { .. }
            | Operation::Extend { .. }
            | Operation::Keep(_)
            | Operation::Expired { .. } => self.on_the_way(store).await,
            Operation::InsertRun(run, entry) => {
                Observation { runs: vec![run.id], ..Observation::new(store.insert_run(run, entry).await) }
            }
            Operation::Cancel { run, now, entry } => Observation::new(store.cancel_run(*run, "ana", *now, entry).await),
            Operation::GetRun(run) => Observation::new(store.get_run(*run).await.map(Plain::plain)),
            Operation::SlotOutcome { job, slot } => Observation::new(store.slot_outcome(*job, None, *slot).await),
            Operation::Prune { before, limit } => {
                Observation::new(store.prune(PruneBefore::all(*before), *limit).await)
            }
            _ => self.on_the_rest(store).await,
        }
    }

    async fn on_job(&self, store: &dyn Store) -> Observation {
        match self {
            Operation::Create(new, entry) => {
                let answer = store.create_job(new, entry).await.map(Plain::plain);
                Observation { jobs: answer.as_ref().ok().cloned().into_iter().collect(), ..Observation::new(answer) }
            }
            Operation::Change { key, revision, change, now, entry } => {
                let decide = |view: &JobView| change.decide(view, *now);
                let answer = store.change_job(&by_key(key), *revision, &decide, entry).await.map(Plain::plain);
                let (mut jobs, mut runs) = (Vec::new(), Vec::new());
                if let Ok(changed) = &answer {
                    jobs.push(changed.job.clone());
                    jobs.extend(changed.successor.clone());
                    runs.extend(changed.runs.iter().map(|run| run.id));
                }
                Observation { runs, jobs, ..Observation::new(answer) }
            }
            Operation::Get(key) => Observation::new(store.get_job(&by_key(key)).await.map(Plain::plain)),
            _ => unreachable!("{self:?} is about no job"),
        }
    }

    /// The room that a start has.
    fn rooms(&self) -> Vec<TargetRoom> {
        match self {
            Operation::Start { room: [log, mail], .. } => room(&[(LOG, *log), (MAIL, *mail)]),
            _ => Vec::new(),
        }
    }

    fn request<'a>(&self, rooms: &'a [TargetRoom]) -> Option<StartRuns<'a>> {
        let Operation::Start { instance, limit, now, lease_until, .. } = *self else { return None };
        Some(StartRuns { instance, targets: rooms, limit, now, lease_until })
    }

    async fn on_the_way(&self, store: &dyn Store) -> Observation {
        match self {
            Operation::Plan { now, targets, start } => {
                let targets: Vec<_> = targets.iter().map(|label| target(label)).collect();
                let rooms = start.as_deref().map(Operation::rooms).unwrap_or_default();
                let start = start.as_deref().and_then(|start| start.request(&rooms));
                let request = PlanDue { start, ..PlanDue::new(*now, 1_000, &targets) };
                let mut answer = store.plan_due(&request, &core_plan).await.map(Plain::plain);
                // Timers of the same instant are planned in any order.
                if let Ok(planned) = &mut answer {
                    planned.runs.sort_by_key(|run| run.id);
                    planned.gaps.sort_by_key(|(job, gap)| (*job, gap.first_slot_at));
                    planned.errored.sort();
                }
                let (mut runs, mut claims) = (Vec::new(), Vec::new());
                if let Ok(planned) = &answer {
                    runs.extend(planned.runs.iter().map(|run| run.id));
                    claims.clone_from(&planned.claims);
                }
                Observation { claims, runs, ..Observation::new(answer) }
            }
            Operation::Start { .. } => {
                let rooms = self.rooms();
                let Some(request) = self.request(&rooms) else { unreachable!("{self:?} starts runs") };
                let mut answer = store.start_runs(&request).await.map(Plain::plain);
                // The position of a retry among the others is up to the store.
                if let Ok(claims) = &mut answer {
                    claims.sort_by_key(|claim| claim.run.id);
                }
                Observation { claims: answer.as_ref().map_or(Vec::new(), Clone::clone), ..Observation::new(answer) }
            }
            Operation::Record { transitions, now } => {
                let answer = store.record(transitions, *now).await;
                let recorded = answer.as_ref().map_or(&[][..], Vec::as_slice);
                let over = transitions.iter().zip(recorded).filter(|(transition, recorded)| {
                    **recorded != Recorded::LeaseLost && matches!(transition.to, Next::Finish { .. })
                });
                let ended = over.map(|(transition, _)| transition.run_id).collect();
                Observation { ended, ..Observation::new(answer) }
            }
            Operation::Extend { instance, now, until } => {
                let mut answer = store.extend_leases(*instance, *now, *until).await;
                if let Ok(reports) = &mut answer {
                    reports.sort_by_key(|report| report.run);
                }
                Observation::new(answer)
            }
            Operation::Keep(outputs) => {
                let mut kept = store.save_outputs(outputs).await;
                if let Ok(kept) = &mut kept {
                    kept.sort();
                }
                Observation::new(kept)
            }
            Operation::Expired { now, limit } => Observation::new(store.expired_leases(*now, *limit).await),
            _ => unreachable!("{self:?} is not on the way of a run"),
        }
    }

    async fn on_the_rest(&self, store: &dyn Store) -> Observation {
        match self {
            Operation::Heartbeat(instance, lease, looks) => {
                Observation::new(store.heartbeat(instance, *lease, *looks).await)
            }
            Operation::Drain { instance, draining, entry } => {
                Observation::new(store.drain_instance(*instance, *draining, entry).await)
            }
            Operation::RemoveInstances(before) => Observation::new(store.remove_instances(*before).await),
            Operation::CreateToken(token, entry) => Observation::new(store.create_token(token, entry).await),
            Operation::FindToken { hash, now } => {
                let found = store.find_token(hash, *now).await;
                Observation::new(found.map(|token| token.map(|token| token.name)))
            }
            Operation::RevokeToken { name, now, entry } => {
                Observation::new(store.revoke_token(name, *now, LastAdmin::Refuse, entry).await)
            }
            Operation::FindRequest(request, now) => Observation::new(store.find_request(request, *now).await),
            Operation::Append(entry) => Observation::new(store.append_audit(entry).await),
            Operation::RememberAnswer(request, now) => {
                Observation::new(store.remember_answer(request, (201, "{}"), *now).await)
            }
            Operation::CountTargets => Observation::new(store.count_targets().await),
            Operation::Counts(now) => Observation::new(store.counts(*now).await),
            Operation::ListInstances => Observation::new(store.list_instances().await),
            Operation::ListTokens => {
                let mut tokens = store.list_tokens().await.unwrap();
                // The last use of a token is stored to the minute, more or less.
                for token in &mut tokens {
                    token.last_used_at = None;
                }
                tokens.sort_by(|a, b| a.name.cmp(&b.name));
                Observation { text: format!("{tokens:?}"), ..Observation::default() }
            }
            Operation::ListJobs(filter, limit) => list_jobs(store, filter, *limit).await,
            Operation::CountJobs(filter, cap) => Observation::new(store.count_jobs(filter, *cap).await),
            Operation::CountRuns(filter, cap) => Observation::new(store.count_runs(filter, *cap).await),
            Operation::ListRuns(filter, limit) => list_runs(store, filter, *limit).await,
            Operation::RecentRuns(recent_runs) => Observation::new(store.recent_runs(recent_runs).await),
            Operation::RunHistogram(histogram) => Observation::new(store.count_runs_by_time(histogram).await),
            Operation::CountHours(now) => count_hours(store, *now).await,
            Operation::ListGaps(limit) => list_gaps(store, *limit).await,
            Operation::ListAudit(limit) => list_audit(store, *limit).await,
            _ => unreachable!("{self:?} is done elsewhere"),
        }
    }
}

/// Counts every hour whose turn it is, and reads all counters and all runs.
async fn count_hours(store: &dyn Store, now: Timestamp) -> Observation {
    loop {
        let progress = store.counting_progress().await.unwrap();
        let Some(hour) = progress.next_hour(now, Timestamp::MIN) else { break };
        assert!(store.count_hour(&hour, now).await.unwrap(), "{hour:?}");
    }
    let (from, to) = (Timestamp::UNIX_EPOCH, everbell_core::LATEST);
    let counters = store.read_counters(from, to, None).await.unwrap();
    let ended = store.count_ended_runs(from, to, None).await.unwrap();
    let progress = store.counting_progress().await.unwrap();
    Observation { text: format!("{progress:?} {counters:?} {ended:?}"), ..Observation::default() }
}

impl Change {
    fn decide(&self, view: &JobView, now: Timestamp) -> Result<JobChange, Invalid> {
        match self {
            Change::Pause => {
                let pause = Pause { reason: "because".to_owned(), by: "bo".to_owned(), at: now, until: None };
                change::pause(view, pause)
            }
            Change::Resume(missed) => change::resume(view, *missed, "bo", now),
            Change::Retire => change::retire(view, "bo", now),
            Change::NewVersion { id, schedule, activate } => {
                let spec = schedule.map(|schedule| job_at("x", schedule, now).spec.unwrap());
                let edit = Edit { spec, description: Some(format!("since {now}")), ..Edit::default() };
                change::new_version(view, edit, *id, *activate, "bo", now)
            }
            Change::Reschedule(to) => change::reschedule(view, *to, "bo", now),
            Change::SkipNext(count) => change::skip_next(view, *count, "bo", now),
            Change::RunNow { id, overlap } => change::run_now(
                view,
                &RunNow { id: *id, actor: "bo", payload: None, overlap: *overlap, trace_context: None },
                now,
            ),
            Change::Backfill { id, slots } => {
                let spec = view.job.definition.spec.as_ref().ok();
                let before = |slot: &Timestamp| spec?.prev_at_or_before(earlier(*slot));
                let first = spec.and_then(|spec| spec.prev_at_or_before(view.timer.last_slot_at));
                let mut slots: Vec<Timestamp> = std::iter::successors(first, before).take(*slots).collect();
                slots.reverse();
                change::backfill(view, &Backfill { id: *id, slots: &slots, parallel: None, trace_context: None })
            }
            Change::Refuse => Err(Invalid::new("reason", "not today")),
        }
    }
}

fn earlier(slot: Timestamp) -> Timestamp {
    slot.checked_sub(jiff::SignedDuration::from_secs(1)).unwrap()
}

async fn list_jobs(store: &dyn Store, filter: &JobFilter, limit: u32) -> Observation {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page = store.list_jobs(filter, &PageRequest { limit, after }).await.unwrap();
        rows.extend(page.items.plain());
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if filter.sort != JobSort::Key {
        // The order of rows with equal values is the store's own.
        let next = |row: &JobRow| row.timer.as_ref().and_then(|timer| timer.next_run_at);
        let time = |row: &JobRow| match filter.sort {
            JobSort::NextRunAt => (next(row).is_none(), next(row)),
            JobSort::LastRun => (false, row.last_run.as_ref().map(|run| run.id.time())),
            _ => (false, Some(row.job.definition.created_at)),
        };
        let ordered = match filter.sort {
            JobSort::NextRunAt => rows.is_sorted_by_key(time),
            JobSort::Target => rows.is_sorted_by_key(|row| row.job.definition.target.clone()),
            _ => rows.iter().rev().is_sorted_by_key(time),
        };
        assert!(ordered, "not in the order of {:?}", filter.sort);
        rows.sort_by_key(|row| row.job.definition.id);
    }
    let names: Vec<(JobKey, u32)> =
        rows.iter().map(|row| (row.job.definition.key.clone(), row.job.definition.version)).collect();
    Observation { text: format!("{names:?} {rows:?}"), ..Observation::default() }
}

async fn list_runs(store: &dyn Store, filter: &RunFilter, limit: u32) -> Observation {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page = store.list_runs(filter, &PageRequest { limit, after }).await.unwrap();
        rows.extend(page.items.plain());
        after = page.next;
        if after.is_none() {
            return Observation { text: format!("{rows:?}"), ..Observation::default() };
        }
    }
}

async fn list_gaps(store: &dyn Store, limit: u32) -> Observation {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page = store.list_gaps(&GapFilter::default(), &PageRequest { limit, after }).await.unwrap();
        rows.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    rows.sort_by_key(|(job, org, gap)| (gap.first_slot_at, gap.id(*job, org.as_ref())));
    Observation { text: format!("{rows:?}"), ..Observation::default() }
}

async fn list_audit(store: &dyn Store, limit: u32) -> Observation {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page = store.list_audit(None, &PageRequest { limit, after }).await.unwrap();
        rows.extend(page.items.plain());
        after = page.next;
        if after.is_none() {
            return Observation { text: format!("{rows:?}"), ..Observation::default() };
        }
    }
}
