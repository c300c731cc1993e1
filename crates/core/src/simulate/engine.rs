//! The virtual clock: a queue of events, and the state of jobs and runs between them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::job_state::JobState;
use super::places::Places;
use super::{LEASE, MAX_STEPS, Outage, REAPER_PATIENCE, Scenario, SimulatedJob, Simulation, SlotStatus};
use crate::ids::{Invalid, RunId};
use crate::plan::{self, PlanContext, REPLACER};
use crate::run::{ActiveRun, RunStatus};
use crate::settle::{Next, Outcome, Settling, Transition, cancel_retry, settle};

/// The order in which events of one instant happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// An attempt has taken its time.
    AttemptEnds,
    OutageBegins,
    /// A lost run is settled.
    LossNoticed,
    /// The backoff of a run is over.
    Available,
    /// A timer is due.
    Due,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at: Timestamp,
    kind: Kind,
    job: usize,
    /// The run and its attempt, for events of runs.
    run: Option<(RunId, u32)>,
}

pub(super) struct Engine<'a> {
    scenario: &'a Scenario,
    outages: Vec<Outage>,
    jobs: Vec<JobState<'a>>,
    by_key: BTreeMap<&'a str, usize>,
    events: BinaryHeap<Reverse<Event>>,
    places: Places,
}

impl<'a> Engine<'a> {
    pub(super) fn new(jobs: &'a [SimulatedJob], scenario: &'a Scenario) -> Engine<'a> {
        let mut engine = Engine {
            scenario,
            outages: scenario.merged_outages(),
            jobs: jobs.iter().map(|job| JobState::new(job, scenario)).collect(),
            by_key: jobs.iter().enumerate().map(|(n, job)| (job.definition.key.as_str(), n)).collect(),
            events: BinaryHeap::new(),
            places: Places::new(jobs, scenario),
        };
        for outage in engine.outages.clone() {
            engine.push(outage.from.max(scenario.from), Kind::OutageBegins, 0, None);
        }
        for job in 0..jobs.len() {
            engine.push_due(job);
        }
        engine
    }

    /// Handles the events of each instant of the window, and starts what may start then.
    pub(super) fn run(&mut self) -> Result<(), Invalid> {
        let mut steps = 0;
        while let Some(now) = self.next_instant() {
            let mut has_started = false;
            while let Some(Reverse(event)) = self.events.peek().copied().filter(|Reverse(event)| event.at == now) {
                self.events.pop();
                // A run that waited starts before the next slot of its job is decided.
                if event.kind == Kind::Due && !has_started {
                    self.start_ready(now);
                    has_started = true;
                }
                self.handle(event);
                steps += 1;
            }
            self.start_ready(now);
            if steps > MAX_STEPS {
                let reason = format!("the simulation takes more than {MAX_STEPS} steps: choose a shorter window");
                return Err(Invalid::new("to", reason));
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Simulation {
        let to = self.scenario.to;
        let jobs = self.jobs.into_iter().map(|job| job.finish(to)).collect();
        Simulation { jobs, peak: self.places.peak, peak_at: self.places.peak_at }
    }

    fn next_instant(&self) -> Option<Timestamp> {
        self.events.peek().map(|Reverse(event)| event.at).filter(|at| *at < self.scenario.to)
    }

    fn push(&mut self, at: Timestamp, kind: Kind, job: usize, run: Option<(RunId, u32)>) {
        self.events.push(Reverse(Event { at, kind, job, run }));
    }

    fn push_due(&mut self, job: usize) {
        if let Some(at) = self.jobs[job].timer.next_run_at {
            self.push(at.max(self.scenario.from), Kind::Due, job, None);
        }
    }

    /// The end of the outage at this instant, if there is one.
    fn down_until(&self, at: Timestamp) -> Option<Timestamp> {
        let after = self.outages.partition_point(|outage| outage.from <= at);
        let last = after.checked_sub(1).and_then(|before| self.outages.get(before))?;
        Some(last.to).filter(|to| *to > at)
    }

    fn handle(&mut self, event: Event) {
        let Event { at, kind, job, run } = event;
        // An attempt that an outage interrupted is lost, so its end decides nothing; no instance does anything else.
        let waits = ![Kind::AttemptEnds, Kind::OutageBegins].contains(&kind);
        if let Some(back) = self.down_until(at).filter(|_| waits) {
            return self.push(back, kind, job, run);
        }
        match (kind, run) {
            (Kind::OutageBegins, _) => self.lose_all(at),
            (Kind::Due, _) => self.plan(job, at),
            (Kind::AttemptEnds, Some((id, attempt))) => {
                let JobState { definition, duration, .. } = self.jobs[job];
                let timeout = definition.policies.timeout;
                let outcome =
                    if duration <= timeout { Outcome::Succeeded { result: None } } else { Outcome::TimedOut(timeout) };
                self.settle(job, id, Some(attempt), outcome, at);
            }
            (Kind::LossNoticed, Some((id, attempt))) => self.settle_lost(job, id, attempt, at),
            (Kind::Available, Some((id, _))) => self.offer(job, id),
            (Kind::AttemptEnds | Kind::LossNoticed | Kind::Available, None) => {}
        }
    }

    /// Every instance is gone, and every run that is at work with it.
    fn lose_all(&mut self, now: Timestamp) {
        let back = self.down_until(now).unwrap_or(now);
        let noticed_at = after(now, LEASE).max(after(back, REAPER_PATIENCE));
        self.places.clear();
        for number in 0..self.jobs.len() {
            let job = &mut self.jobs[number];
            job.running = 0;
            let mut lost = Vec::new();
            for (id, run) in job.active.iter_mut().filter(|(_, run)| run.status == RunStatus::Running && !run.lost) {
                run.lost = true;
                lost.push((*id, run.attempt));
                job.result.records[run.record].end_attempt(now);
            }
            for run in lost {
                self.push(noticed_at, Kind::LossNoticed, number, Some(run));
            }
        }
    }

    fn plan(&mut self, number: usize, now: Timestamp) {
        // One plan holds a limited number of runs; the rest stays due.
        while self.jobs[number].timer.next_run_at.is_some_and(|next| next <= now) {
            let upstream_succeeded_at = self.upstream(number, now);
            let job = &mut self.jobs[number];
            let active: Vec<ActiveRun> = job.active.iter().map(|(id, run)| run.seen(*id)).collect();
            let seen = PlanContext { active: &active, upstream_succeeded_at, ..PlanContext::default() };
            let decided = plan::plan(job.definition, &job.timer, &seen, now);
            job.timer = decided.timer;
            job.result.error = decided.error;
            decided.gaps.iter().for_each(|gap| job.add_gap(gap));
            let started: Vec<RunId> = decided.runs.into_iter().filter_map(|run| job.add_run(run)).collect();
            for id in decided.cancel {
                self.cancel(number, id, now);
            }
            for id in started {
                self.offer(number, id);
            }
        }
        self.offer_held(number);
        self.push_due(number);
    }

    /// When the job that this one depends on succeeded.
    fn upstream(&self, number: usize, now: Timestamp) -> Option<Timestamp> {
        let dependency = self.jobs[number].definition.policies.depends_on.as_ref()?;
        let Some(upstream) = self.by_key.get(dependency.job_key.as_str()) else { return Some(now) };
        Some(self.jobs[*upstream].succeeded_at.unwrap_or(self.scenario.from))
    }

    fn cancel(&mut self, number: usize, id: RunId, now: Timestamp) {
        let Some(run) = self.jobs[number].active.get_mut(&id) else { return };
        run.cancel_requested = true;
        // No instance is left that could stop a lost run; it ends when its loss is noticed.
        if !run.lost {
            self.settle(number, id, None, Outcome::Canceled { by: REPLACER.to_owned() }, now);
        }
    }

    fn settle_lost(&mut self, number: usize, id: RunId, attempt: u32, now: Timestamp) {
        self.settle(number, id, Some(attempt), Outcome::Lost(None), now);
    }

    /// Ends an attempt, or a run that waits. An attempt that is not the current one any more decides nothing.
    fn settle(&mut self, number: usize, id: RunId, attempt: Option<u32>, outcome: Outcome, now: Timestamp) {
        let job = &mut self.jobs[number];
        let is_loss = matches!(outcome, Outcome::Lost(_));
        let Some(run) = job.active.get(&id).filter(|run| run.lost == is_loss) else { return };
        if attempt.is_some_and(|attempt| attempt != run.attempt || run.status != RunStatus::Running) {
            return;
        }
        let settling = Settling::new(id, run.status, run.attempt, Some(&job.definition.policies));
        let Some(decided) = settle(&settling.after(run.earlier.clone()), outcome, now) else { return };
        let canceled = if run.cancel_requested { cancel_retry(&decided, REPLACER, now) } else { None };
        if run.status != RunStatus::Running {
            self.places.withdraw(number, id);
        } else if !is_loss {
            // The place of a lost run went with its instance.
            self.places.leave(number);
            job.running -= 1;
            job.result.records[run.record].end_attempt(now);
        }
        self.apply(number, canceled.unwrap_or(decided), now);
        self.offer_held(number);
    }

    fn apply(&mut self, number: usize, transition: Transition, now: Timestamp) {
        let job = &mut self.jobs[number];
        match transition.to {
            Next::Retry { not_before, ended, .. } => {
                let Some(run) = job.active.get_mut(&transition.run_id) else { return };
                (run.status, run.lost) = (RunStatus::Pending, false);
                run.available_at = not_before;
                run.earlier.extend(ended);
                job.result.records[run.record].status = SlotStatus::Waiting;
                let attempt = run.attempt;
                self.push(not_before, Kind::Available, number, Some((transition.run_id, attempt)));
            }
            Next::Finish { status, finished_at, failure, .. } => {
                let Some(ended) = job.active.remove(&transition.run_id) else { return };
                let record = &mut job.result.records[ended.record];
                let code = failure.map_or_else(String::new, |failure| failure.code.as_str().to_owned());
                record.status = match status {
                    RunStatus::Succeeded => SlotStatus::Succeeded,
                    RunStatus::Canceled => SlotStatus::Canceled,
                    _ => SlotStatus::Failed(code),
                };
                record.run.iter_mut().for_each(|run| run.finished_at = Some(finished_at));
                match status {
                    RunStatus::Succeeded => (job.failures, job.succeeded_at) = (0, Some(now)),
                    RunStatus::Failed => job.failures += 1,
                    _ => {}
                }
                if status == RunStatus::Failed && job.definition.policies.pause_reason(job.failures).is_some() {
                    job.result.paused_at = job.result.paused_at.or(Some(now));
                    job.timer = plan::disarm(&job.timer);
                    // A pause holds back what has not started.
                    self.places.withdraw_all(number);
                }
            }
        }
    }

    /// Lets a pending run start when a place is free, unless it is held back.
    fn offer(&mut self, number: usize, id: RunId) {
        let job = &self.jobs[number];
        let Some(run) = job.active.get(&id) else { return };
        if run.status == RunStatus::Pending && !run.held && job.result.paused_at.is_none() {
            self.places.offer(number, job.definition.policies.priority, run.available_at, id);
        }
    }

    /// Lets the first held run of a job start if fewer than `maxConcurrentRuns` others are not held.
    fn offer_held(&mut self, number: usize) {
        let job = &self.jobs[number];
        let Some((id, run)) = job.active.iter().find(|(_, run)| run.held) else { return };
        let others = job.active.values().filter(|other| !other.held).count();
        if others < job.definition.policies.max_concurrent_runs as usize && job.result.paused_at.is_none() {
            self.places.offer(number, job.definition.policies.priority, run.available_at, *id);
        }
    }

    /// Starts runs until every place is taken; none during an outage.
    fn start_ready(&mut self, now: Timestamp) {
        while self.down_until(now).is_none() {
            let Some((id, number)) = self.places.take_next() else { return };
            let job = &mut self.jobs[number];
            let Some(run) = job.active.get_mut(&id) else { continue };
            run.status = RunStatus::Running;
            run.held = false;
            run.attempt += 1;
            let (attempt, record) = (run.attempt, &mut job.result.records[run.record]);
            record.begin_attempt(now);
            job.result.longest_wait = job.result.longest_wait.max(record.wait());
            job.running += 1;
            job.result.peak = job.result.peak.max(job.running);
            self.places.enter(number, now);
            let takes = job.duration.min(job.definition.policies.timeout);
            self.push(after(now, takes), Kind::AttemptEnds, number, Some((id, attempt)));
            self.offer_held(number);
        }
    }
}

fn after(at: Timestamp, wait: Duration) -> Timestamp {
    SignedDuration::try_from(wait).ok().and_then(|wait| at.checked_add(wait).ok()).unwrap_or(Timestamp::MAX)
}
