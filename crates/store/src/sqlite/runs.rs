//! Runs: planning, starting, recording, listing.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use async_trait::async_trait;
use everbell_core::plan::REPLACER;
use everbell_core::settle::Transition;
use everbell_core::store::{
    AuditEntry, Bucket, Canceled, Claim, Cursor, Deed, GapFilter, Page, PageRequest, PlanDue, PlanFn, Planned,
    RecentRuns, Recorded, RunFilter, RunHistogram, RunStore, RunSummary, SlotOutcome, StartRuns, StoreError,
    StoreResult,
};
use everbell_core::{Gap, GapReason, JobId, MAX_PRIORITY, OrgId, OutputSoFar, Run, RunId, RunStatus, Target};
use jiff::Timestamp;
use uuid::Uuid;

use super::batch::{self, Hex};
use super::chains::followers_of;
use super::outcomes::{count_losses, end_row, ended_runs, failures_of, retried, retry_row};
use super::run_lists::{count_sql, list_sql, scans};
use super::run_statistics::counting;
use super::timers::{cancel, insert_runs, write};
use super::transaction::Tx;
use super::{SqliteStore, audit, jobs};
use crate::micros::Micros;
use crate::rows::from_row::by_name;
use crate::rows::job_list::label_text;
use crate::rows::placeholders::filled_sql;
use crate::rows::summary::{self, HistogramColumns};
use crate::rows::{
    ClaimColumns, GapColumns, PlanBatch, Recording, RunColumns, RunValues, TimerColumns, WholeRun, check_cap,
    check_limit, cursor_time, org_text, page_of, scan,
};

/// How often a claim begins again because it met rows that cannot be read.
const MAX_CLAIM_ROUNDS: usize = 100;

/// A timer that is due, and whether a job of the targets has a priority.
struct DueTimer {
    timer: TimerColumns,
    by_priority: bool,
}

by_name!(sqlx::sqlite::SqliteRow, DueTimer { by_priority } flatten { timer });

/// A pending run that may start.
struct Waiting {
    run: ClaimColumns,
    available_at: Micros,
    priority: i32,
}

impl Waiting {
    /// Its place among all that wait: the most urgent first, then the oldest.
    fn start_order(&self) -> (Reverse<i32>, Micros, Uuid) {
        (Reverse(self.priority), self.available_at, self.run.id)
    }
}

by_name!(sqlx::sqlite::SqliteRow, Waiting { priority, available_at } flatten { run });

#[async_trait]
impl RunStore for SqliteStore {
    async fn plan_due(&self, request: &PlanDue<'_>, plan: &PlanFn<'_>) -> StoreResult<Planned> {
        let now: Timestamp = Micros::from(request.now).into();
        let targets = batch::rows(request.targets.iter().map(Target::as_str));
        let mut held = self.writer("planning due timers").await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/lock_due_timers.sql"))
            .bind(Micros::from(now))
            .bind(targets.clone())
            .bind(request.limit)
            .bind(request.limit_by_priority);
        let timers: Vec<DueTimer> = tx.all(query).await?;
        let due = !timers.is_empty();
        let mut batch = PlanBatch::default();
        batch.by_priority = timers.first().is_some_and(|first| first.by_priority);
        self.ask(&mut tx, timers.into_iter().map(|due| due.timer).collect(), now, plan, &mut batch).await?;
        if let Some(start) = &request.start {
            batch.start(start);
        }
        let written = write(&mut tx, &batch, REPLACER, now).await?;
        let query = sqlx::query(include_str!("sql/next_due.sql")).bind(Micros::from(now)).bind(targets);
        let next: Option<(Micros,)> = tx.first(query).await?;
        // Usually nothing is due: then nothing was written, so there is nothing to commit and no loop to wake.
        let all_started = batch.starts.as_ref().is_some_and(|starts| starts.are_all) && batch.cancel.is_empty();
        if due && all_started {
            tx.commit().await?;
        } else if due {
            tx.commit_and_wake().await?;
        }
        let mut new = batch.gaps.iter().map(|row| written.gaps.contains(&row.id)).collect::<Vec<_>>().into_iter();
        let mut planned = batch.into_planned(&written.runs, request.start.as_ref(), next.map(|(at,)| at));
        planned.gaps.retain(|_| new.next().unwrap_or(true));
        Ok(planned)
    }

    async fn start_runs(&self, request: &StartRuns<'_>) -> StoreResult<Vec<Claim>> {
        let mut held = self.writer("starting runs").await?;
        let mut tx = held.begin().await?;
        let mut unreadable = Vec::new();
        for _ in 0..MAX_CLAIM_ROUNDS {
            let known_bad = unreadable.len();
            let mut claims = self.startable(&mut tx, request, &mut unreadable).await?;
            // What cannot be read must not start, and must not stand in the way of the others: look again without it.
            if unreadable.len() > known_bad {
                continue;
            }
            if !claims.is_empty() {
                let query = sqlx::query(include_str!("sql/start_runs.sql"))
                    .bind(batch::ids(claims.iter().map(|claim| claim.run.id.as_uuid())))
                    .bind(request.instance.as_uuid())
                    .bind(Micros::from(request.now))
                    .bind(Micros::from(request.lease_until));
                tx.run(query).await?;
                tx.commit().await?;
            }
            claims.sort_by_key(Claim::start_order);
            return Ok(claims);
        }
        Ok(Vec::new())
    }

    async fn record(&self, transitions: &[Transition], now: Timestamp) -> StoreResult<Vec<Recorded>> {
        if transitions.is_empty() {
            return Ok(Vec::new());
        }
        let mut held = self.writer("recording runs").await?;
        let mut tx = held.begin().await?;
        let followers = followers_of(&mut tx, transitions).await?;
        count_losses(&mut tx, transitions).await?;
        let mut recording = Recording::new(transitions);
        for wave in Recording::waves(transitions) {
            let ended: Vec<_> = wave.iter().filter_map(|place| end_row(&transitions[*place])).collect();
            let again: Vec<_> = wave.iter().filter_map(|place| retry_row(&transitions[*place])).collect();
            let mut applied = ended_runs(&mut tx, &ended).await?;
            let (again, asked) = retried(&mut tx, &again).await?;
            applied.extend(again);
            recording.applied(transitions, &wave, &applied);
            let instead = recording.canceled(transitions, &wave, &asked, now);
            let instead: Vec<_> = instead.iter().filter_map(end_row).collect();
            ended_runs(&mut tx, &instead).await?;
        }
        let (jobs, only_successes) = recording.jobs(transitions);
        if !only_successes {
            let had = failures_of(&mut tx, jobs).await?;
            let now_have = recording.count(transitions, &had);
            let rows = batch::rows(now_have.iter().map(|(job, failures)| (Hex(*job), failures)));
            tx.run(sqlx::query(include_str!("sql/set_failures.sql")).bind(rows)).await?;
        } else if !jobs.is_empty() {
            // The usual case: everything succeeded, and so it did before.
            tx.run(sqlx::query(include_str!("sql/clear_failures.sql")).bind(batch::ids(jobs))).await?;
        }
        self.retire_finished(&mut tx, &recording.ended(transitions), now).await?;
        if self.start_followers(&mut tx, &followers, &recording.ends(transitions, now), now).await? {
            tx.commit_and_wake().await?;
        } else {
            tx.commit().await?;
        }
        Ok(recording.into_recorded())
    }

    async fn runs_after(&self, ended: RunId, finished_at: Timestamp, limit: u32) -> StoreResult<Vec<Run>> {
        check_limit(limit)?;
        self.started_after(ended, finished_at, limit).await
    }

    async fn save_outputs(&self, outputs: &[OutputSoFar]) -> StoreResult<Vec<RunId>> {
        if outputs.is_empty() {
            return Ok(Vec::new());
        }
        let mut held = self.writer("keeping what runs print").await?;
        let mut tx = held.begin().await?;
        let row = |output: &OutputSoFar| (Hex(output.run_id.as_uuid()), output.attempt, output.text.clone());
        let query = sqlx::query(include_str!("sql/save_outputs.sql")).bind(batch::rows(outputs.iter().map(row)));
        let kept: Vec<(Uuid,)> = tx.all(query).await?;
        tx.commit().await?;
        Ok(kept.into_iter().map(|(run,)| RunId::from_uuid(run)).collect())
    }

    async fn insert_run(&self, run: &Run, audit: &AuditEntry) -> StoreResult<()> {
        let mut held = self.writer("inserting a run").await?;
        let mut tx = held.begin().await?;
        let new = insert_runs(&mut tx, &[RunValues::of_trial(run)], Micros::from(run.created_at)).await?;
        if new.is_empty() {
            return Err(StoreError::Conflict { what: format!("run `{}` already exists", run.id) });
        }
        let deed = || Deed { runs: vec![run.id], ..Deed::default() };
        audit::insert_audit_of(&mut tx, audit, deed).await?;
        tx.commit_and_wake().await
    }

    async fn cancel_run(&self, run: RunId, by: &str, now: Timestamp, audit: &AuditEntry) -> StoreResult<Canceled> {
        let mut held = self.writer("canceling a run").await?;
        let mut tx = held.begin().await?;
        let id = run.as_uuid();
        let outcome = match cancel(&mut tx, &[id], by, now).await? {
            (0, 0) => {
                let found: Option<RunColumns> = jobs::runs_of(&mut tx, [id]).await?.remove(&id);
                let status: RunStatus = found.ok_or_else(|| StoreError::not_found("run", run))?.read()?.status;
                return Ok(Canceled::TooLate(status));
            }
            (0, _) => Canceled::Requested,
            _ => Canceled::AtOnce,
        };
        let deed = || Deed { runs: vec![run], ..Deed::default() };
        audit::insert_audit_of(&mut tx, audit, deed).await?;
        tx.commit_and_wake().await?;
        Ok(outcome)
    }

    async fn get_run(&self, run: RunId) -> StoreResult<Run> {
        let query = sqlx::query(filled_sql!(include_str!("sql/get_run.sql"))).bind(run.as_uuid());
        let found: Option<WholeRun> = self.read_first("reading a run", query).await?;
        found.ok_or_else(|| StoreError::not_found("run", run))?.read()
    }

    async fn list_runs(&self, filter: &RunFilter, page: &PageRequest) -> StoreResult<Page<Run>> {
        check_limit(page.limit)?;
        let mut held = self.reader("listing runs").await?;
        // One transaction is one moment, so a run that ends while the scans go on is in exactly one of them.
        let mut tx = held.begin().await?;
        let mut rows: Vec<RunColumns> = Vec::new();
        for query in scans(&mut tx, filter, page, list_sql).await? {
            rows.extend(tx.all(query).await?);
        }
        Ok(scan::page(rows, page.limit))
    }

    /// A run is found by one of the scans only, so their counts add up.
    async fn count_runs(&self, filter: &RunFilter, cap: u32) -> StoreResult<u32> {
        check_cap(cap)?;
        let mut held = self.reader("counting runs").await?;
        let mut tx = held.begin().await?;
        let page = PageRequest { limit: cap - 1, after: None };
        let mut runs = 0;
        for query in scans(&mut tx, filter, &page, count_sql).await? {
            runs += tx.one::<(u32,)>(query).await?.0;
            if runs >= cap {
                break;
            }
        }
        Ok(runs.min(cap))
    }

    async fn recent_runs(&self, recent_runs: &RecentRuns) -> StoreResult<Vec<RunSummary>> {
        let mut rows = Vec::new();
        for version in self.versions(recent_runs).await? {
            rows.extend(version.runs()?);
        }
        Ok(summary::summaries(rows, recent_runs.each()))
    }

    async fn count_runs_by_time(&self, histogram: &RunHistogram) -> StoreResult<Vec<Bucket>> {
        let rows: Vec<HistogramColumns> = self.read("counting runs", counting(histogram)).await?;
        Ok(summary::buckets(histogram, &rows))
    }

    async fn list_gaps(
        &self,
        filter: &GapFilter,
        page: &PageRequest,
    ) -> StoreResult<Page<(JobId, Option<OrgId>, Gap)>> {
        check_limit(page.limit)?;
        let after = page.after.as_ref();
        let query = sqlx::query(include_str!("sql/list_gaps.sql"))
            .bind(filter.job_id.map(|job| job.as_uuid()))
            .bind(filter.org.as_ref().map(ToString::to_string))
            .bind(filter.reason.map(GapReason::as_str))
            .bind(filter.from.map(Micros::from))
            .bind(filter.to.map(Micros::from))
            .bind(cursor_time(after)?)
            .bind(after.map(|cursor| cursor.id))
            .bind(page.limit + 1)
            .bind(filter.job_key.as_ref().map(ToString::to_string))
            .bind(filter.label.as_ref().map(label_text));
        let rows: Vec<GapColumns> = self.read("listing gaps", query).await?;
        let cursor = |row: &GapColumns| Cursor { value: row.first_slot_at.0.to_string(), id: row.id };
        Ok(page_of(rows, page.limit, cursor, |row| row.id, GapColumns::read))
    }

    async fn slot_outcome(&self, job: JobId, org: Option<&OrgId>, slot: Timestamp) -> StoreResult<Option<SlotOutcome>> {
        let mut held = self.reader("reading the outcome of a slot").await?;
        let mut tx = held.begin().await?;
        let id = RunId::for_slot(job, org, slot).as_uuid();
        if let Some(run) = jobs::runs_of(&mut tx, [id]).await?.remove(&id) {
            return Ok(Some(SlotOutcome::Run(Box::new(run.read()?))));
        }
        let query = sqlx::query(include_str!("sql/find_gap.sql"))
            .bind(job.as_uuid())
            .bind(org_text(org).to_owned())
            .bind(Micros::from(slot));
        let gap: Option<GapColumns> = tx.first(query).await?;
        gap.map(|gap| gap.read().map(|(_, _, gap)| SlotOutcome::Gap(gap))).transpose()
    }
}

impl SqliteStore {
    /// The runs that may start, as they will be then: the most urgent and oldest of all targets, as many of each as it has room for.
    /// Runs and jobs that cannot be read are added to `unreadable`.
    async fn startable(
        &self,
        tx: &mut Tx<'_>,
        request: &StartRuns<'_>,
        unreadable: &mut Vec<Uuid>,
    ) -> StoreResult<Vec<Claim>> {
        let rooms: BTreeMap<&str, (u32, bool)> =
            request.targets.iter().map(|want| (want.target.as_str(), (want.room, want.backfills))).collect();
        let bad = (!unreadable.is_empty()).then(|| batch::ids(unreadable.iter().copied()));
        let mut waiting: Vec<Waiting> = Vec::new();
        for (target, (room, backfills)) in rooms.into_iter().filter(|(_, (room, _))| *room > 0) {
            let most = room.min(request.limit);
            let (mut found, mut highest) = (Vec::<Waiting>::new(), MAX_PRIORITY);
            while (found.len() as u32) < most {
                let query = sqlx::query(include_str!("sql/next_priority.sql")).bind(target.to_owned()).bind(highest);
                let (Some(priority),): (Option<i32>,) = tx.one(query).await? else { break };
                let query = sqlx::query(include_str!("sql/waiting_runs.sql"))
                    .bind(target.to_owned())
                    .bind(Micros::from(request.now))
                    .bind(most - found.len() as u32)
                    .bind(bad.clone())
                    .bind(backfills)
                    .bind(priority);
                found.extend(tx.all::<Waiting>(query).await?);
                highest = priority - 1;
            }
            if may_start_held(tx, target, &found, most).await? {
                let query = sqlx::query(include_str!("sql/held_turns.sql"))
                    .bind(target.to_owned())
                    .bind(Micros::from(request.now))
                    .bind(most)
                    .bind(bad.clone())
                    .bind(backfills);
                found.extend(tx.all::<Waiting>(query).await?);
                found.sort_unstable_by_key(Waiting::start_order);
                found.truncate(most as usize);
            }
            waiting.extend(found);
        }
        waiting.sort_unstable_by_key(Waiting::start_order);
        waiting.truncate(request.limit as usize);
        let jobs = waiting.iter().filter_map(|row| row.run.job_id.map(JobId::from_uuid));
        let learned = self.learn(tx, jobs).await?;
        let mut claims = Vec::with_capacity(waiting.len());
        for Waiting { run, .. } in waiting {
            let (run_id, id) = (run.id, run.job_id.map(JobId::from_uuid));
            let job = id.and_then(|id| learned.get(id));
            match (id, job) {
                (Some(id), None) => unreadable.push(id.as_uuid()),
                (_, job) => match run.read(job, request.instance, request.now, request.lease_until) {
                    Ok(claim) => claims.push(claim),
                    Err(_) => unreadable.push(run_id),
                },
            }
        }
        Ok(claims)
    }
}

/// Whether a held run of a target, if it were its turn, would start before one of `found`, or take a place that they leave.
async fn may_start_held(tx: &mut Tx<'_>, target: &str, found: &[Waiting], most: u32) -> StoreResult<bool> {
    let query = sqlx::query(include_str!("sql/first_held.sql")).bind(target.to_owned());
    let first: Option<(i32, Micros, Uuid)> = tx.first(query).await?;
    let Some((priority, available_at, id)) = first else { return Ok(false) };
    let last = found.last().filter(|_| found.len() as u32 >= most);
    Ok(last.is_none_or(|last| (Reverse(priority), available_at, id) < last.start_order()))
}
