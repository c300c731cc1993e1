//! [`Generator`]: what happens next, from a seed and from what was heard so far.

use std::time::Duration;

use everbell_core::change;
use everbell_core::plan::Missed;
use everbell_core::settle::{Outcome, Then, Transition, settle};
use everbell_core::store::Claim;
use everbell_core::{
    BackfillId, CatchUp, Definition, Dependency, Failure, FailureCode, JobId, JobKey, JobStatus, OnLost, OutputSoFar,
    Overlap, RunId,
};
use jiff::{SignedDuration, Timestamp};

use super::super::dice::Dice;
use super::super::given::{LOG, MAIL, audit, by_hand, instance_id, job_at, job_id, settling, to, with};
use super::apply::Observation;
use super::operation::{Change, Operation};

/// The emphasis of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavor {
    Running,
    Operating,
    Failing,
    Everything,
}

const SCHEDULES: [&str; 7] =
    ["* * * * *", "*/5 * * * *", "0 * * * *", "@every 90s", "17 */2 * * *", "30 2 * * * in America/New_York", "once"];

pub(super) struct Generator {
    pub(super) flavor: Flavor,
    pub(super) seed: u64,
    pub(super) dice: Dice,
    pub(super) now: Timestamp,
    /// Every name of this sequence begins so.
    pub(super) prefix: String,
    pub(super) keys: Vec<String>,
    pub(super) jobs: Vec<(JobId, String, JobStatus)>,
    pub(super) runs: Vec<RunId>,
    /// Those of them that may still be pending or running.
    pub(super) alive: Vec<RunId>,
    /// The claims of this sequence that are at work, as far as it knows.
    pub(super) claims: Vec<Claim>,
    pub(super) tokens: Vec<(String, [u8; 32])>,
    pub(super) made: u32,
    pub(super) pruned: u32,
}

impl Generator {
    pub(super) fn new(flavor: Flavor, seed: u64, now: Timestamp) -> Generator {
        Generator {
            flavor,
            seed,
            dice: Dice::new(seed),
            now,
            prefix: format!("s{seed}"),
            keys: Vec::new(),
            jobs: Vec::new(),
            runs: Vec::new(),
            alive: Vec::new(),
            claims: Vec::new(),
            tokens: Vec::new(),
            made: 0,
            pruned: 0,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    pub(super) fn learn(&mut self, operation: &Operation, answer: Observation) {
        self.runs.extend(&answer.runs);
        self.alive.extend(answer.runs);
        self.alive.retain(|run| !answer.ended.contains(run));
        self.claims.extend(answer.claims);
        for row in answer.jobs {
            let id = row.job.definition.id;
            self.jobs.retain(|(known, ..)| *known != id);
            self.jobs.push((id, row.job.definition.key.to_string(), row.job.state.status));
        }
        if let Operation::CreateToken(token, _) = operation {
            self.tokens.push((token.name.clone(), token.hash));
        }
    }

    pub(super) fn next(&mut self) -> Operation {
        if self.dice.one_in(2) {
            let seconds = *self.dice.pick(&[1, 20, 60, 61, 300, 1_000, 4_000]).unwrap_or(&1);
            self.now = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
        }
        if self.keys.len() < 2 {
            return self.create();
        }
        let weights = match self.flavor {
            Flavor::Running => [2, 4, 10, 10, 8, 2, 1, 2],
            Flavor::Operating => [3, 14, 8, 4, 3, 1, 1, 3],
            Flavor::Failing => [2, 3, 8, 10, 10, 8, 2, 2],
            Flavor::Everything => [2, 8, 8, 8, 8, 4, 6, 6],
        };
        let mut roll = self.dice.below(weights.iter().sum());
        let mut chosen = 0;
        while roll >= weights[chosen] {
            roll -= weights[chosen];
            chosen += 1;
        }
        match chosen {
            0 => self.create(),
            1 => self.change(),
            2 => self.plan(),
            3 => self.start(),
            4 => self.finish(),
            5 => self.lease(),
            6 => self.access(),
            _ => self.look(),
        }
    }

    pub(super) fn number(&mut self) -> u32 {
        self.made += 1;
        self.made
    }

    pub(super) fn fresh_name(&mut self) -> String {
        let number = self.number();
        format!("{}-{number}", self.prefix)
    }

    pub(super) fn key(&mut self) -> String {
        let unknown = format!("{}-unknown", self.prefix);
        if self.dice.one_in(20) { unknown } else { self.dice.pick(&self.keys).cloned().unwrap_or(unknown) }
    }

    fn create(&mut self) -> Operation {
        let again = self.dice.one_in(8) && !self.keys.is_empty();
        let key = if again { self.key() } else { self.fresh_name() };
        let schedule = match *self.dice.pick(&SCHEDULES).unwrap_or(&"@hourly") {
            "once" => {
                let minutes = self.dice.below(90) as i64;
                format!("once {}", self.now.checked_add(SignedDuration::from_mins(minutes)).unwrap())
            }
            schedule => schedule.to_owned(),
        };
        let mut definition = job_at(&key, &schedule, self.now);
        if again {
            let version = 1 + self.dice.below(3) as u32;
            definition = everbell_core::with!(Definition {
                id: job_id(&format!("{key}-{}", self.number()), version),
                version,
                ..definition
            });
        }
        if self.dice.one_in(3) {
            definition = to(definition, MAIL);
        }
        definition = self.with_policies(definition);
        self.keys.push(key.clone());
        Operation::Create(Box::new(change::create(definition)), audit("job.create", &key, self.now))
    }

    fn with_policies(&mut self, definition: Definition) -> Definition {
        let overlap = *self.dice.pick(Overlap::ALL).unwrap_or(&Overlap::Skip);
        let catch_up = *self.dice.pick(CatchUp::ALL).unwrap_or(&CatchUp::Once);
        let max = 1 + self.dice.below(3) as u32;
        let attempts = if self.flavor == Flavor::Failing { 1 + self.dice.below(3) as u32 } else { 1 };
        let on_lost = if attempts > 1 && self.dice.one_in(2) { OnLost::Retry } else { OnLost::Fail };
        let upstream = self.dice.one_in(6).then(|| self.dice.pick(&self.keys).cloned()).flatten();
        let limit = 1 + self.dice.below(4) as u32;
        let jitter = Duration::from_secs(if self.dice.one_in(5) { 20 } else { 0 });
        with(definition, |values| {
            values.overlap = overlap;
            values.catch_up = catch_up;
            values.catch_up_limit = limit;
            values.max_concurrent_runs = max;
            values.max_attempts = attempts;
            values.on_lost = on_lost;
            values.jitter = jitter;
            values.depends_on =
                upstream.map(|key| Dependency { job_key: JobKey::new(&key).unwrap(), within: Duration::from_mins(30) });
        })
    }

    fn change(&mut self) -> Operation {
        let (key, now) = (self.key(), self.now);
        let number = self.number();
        let later = now.checked_add(SignedDuration::from_secs(self.dice.below(4_000) as i64 - 100)).unwrap();
        let change = match self.dice.below(13) {
            0 | 1 => Change::Pause,
            2 => Change::Resume(Missed::Skip),
            3 => Change::Resume(Missed::RunOnce),
            4 => Change::Retire,
            5 => {
                let schedule = self.dice.one_in(2).then(|| SCHEDULES[self.dice.below(6)]);
                let id = job_id(&format!("{key}-{number}"), 0);
                Change::NewVersion { id, schedule, activate: self.dice.one_in(2) }
            }
            6 => Change::Reschedule(later),
            7 => Change::SkipNext(self.dice.below(4) as u32),
            8 => Change::Refuse,
            9 => {
                let mut random = [0; 10];
                random[..8].copy_from_slice(&u64::from(number).to_be_bytes());
                Change::Backfill { id: BackfillId::new(now, random), slots: self.dice.below(5) }
            }
            _ => {
                let overlap = self.dice.one_in(3).then(|| Overlap::ALL[self.dice.below(4)]);
                Change::RunNow { id: by_hand(now, &format!("{key}-{number}")), overlap }
            }
        };
        let revision = self.dice.one_in(6).then(|| 1 + self.dice.below(4) as u64);
        Operation::Change { entry: audit("job.change", &key, now), key, revision, change, now }
    }

    fn plan(&mut self) -> Operation {
        let targets = match self.dice.below(6) {
            0 => vec![LOG],
            1 => vec![MAIL],
            _ => vec![LOG, MAIL],
        };
        let start = self.dice.one_in(2).then(|| Box::new(self.start()));
        Operation::Plan { now: self.now, targets, start }
    }

    fn start(&mut self) -> Operation {
        let room = [self.dice.below(6) as u32, self.dice.below(6) as u32];
        Operation::Start {
            instance: instance_id(self.dice.below(3) as u8),
            room,
            limit: 1 + self.dice.below(8) as u32,
            now: self.now,
            lease_until: self.now + Duration::from_secs(90),
        }
    }

    /// Ends some of what is at work; some of it twice, some for another attempt.
    fn finish(&mut self) -> Operation {
        let mut transitions = Vec::new();
        for _ in 0..self.dice.below(5) {
            let place = self.dice.below(self.claims.len());
            let Some(claim) = self.claims.get(place).cloned() else { break };
            if !self.dice.one_in(5) {
                self.claims.swap_remove(place);
            }
            let outcome = self.outcome();
            let Some(mut transition) = settle(&settling(&claim), outcome, self.now) else { continue };
            if self.dice.one_in(12) {
                transition.attempt += 1;
            }
            let printed = if self.dice.one_in(3) { "" } else { "done\n" };
            transitions.push(transition.with_output(printed));
        }
        Operation::Record { transitions, now: self.now }
    }

    fn outcome(&mut self) -> Outcome {
        let bad = if self.flavor == Flavor::Failing { 2 } else { 4 };
        if !self.dice.one_in(bad) {
            let result = self.dice.one_in(2).then(|| super::super::given::json(r#"{"rows":3,"ok":[true]}"#));
            return Outcome::Succeeded { result };
        }
        match self.dice.below(6) {
            5 => Outcome::ShutDown("its instance shut down".to_owned()),
            0 => Outcome::Canceled { by: "cy".to_owned() },
            1 => Outcome::Panicked("boom".to_owned()),
            2 => Outcome::TimedOut(Duration::from_mins(15)),
            _ => {
                let failure = Failure::new(FailureCode::HANDLER_ERROR, "no");
                let then = if self.dice.one_in(2) { Then::RETRY } else { Then::GiveUp };
                Outcome::Failed { failure, then }
            }
        }
    }

    /// Saves the output of some claims; sometimes for another attempt.
    fn keep(&mut self) -> Operation {
        let mut outputs = Vec::new();
        for _ in 0..=self.dice.below(3) {
            let Some(claim) = self.dice.pick(&self.claims) else { break };
            let (run, attempt) = (claim.run.id, claim.run.attempt + u32::from(self.dice.one_in(8)));
            // Once each: of two about the same run in one call no store says which it keeps.
            if outputs.iter().all(|output: &OutputSoFar| output.run_id != run) {
                outputs.extend(OutputSoFar::new(run, attempt, &format!("so far at {}\n", self.now)));
            }
        }
        Operation::Keep(outputs)
    }

    fn lease(&mut self) -> Operation {
        let (now, limit) = (self.now, 1 + self.dice.below(20) as u32);
        match self.dice.below(6) {
            0 => {
                let instance = instance_id(self.dice.below(3) as u8);
                Operation::Extend { instance, now, until: now + Duration::from_secs(90) }
            }
            1 => {
                let run = self.dice.pick(&self.runs).copied();
                let run = run.unwrap_or_else(|| by_hand(now, "unknown"));
                Operation::Cancel { run, now, entry: audit("run.cancel", &run.to_string(), now) }
            }
            2 => {
                let of_old: Vec<Transition> = self
                    .claims
                    .iter()
                    .filter(|claim| claim.lease_until < now)
                    .filter_map(|claim| settle(&settling(claim), Outcome::Lost(None), now))
                    .collect();
                Operation::Record { transitions: of_old, now }
            }
            3 => Operation::Expired { now, limit },
            _ => self.keep(),
        }
    }
}
