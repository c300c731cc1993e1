//! Operations beside the way of a run: access, reading, and cleaning up.

use std::time::Duration;

use everbell_core::settle::{Outcome, settle};
use everbell_core::store::{
    AuditEntry, Claim, JobFilter, JobSort, NewToken, RecentRuns, RequestKey, RunFilter, RunHistogram,
};
use everbell_core::{JobId, JobKey, JobStatus, RunId, RunStatus};
use jiff::{SignedDuration, Timestamp};

use super::super::given::{LOG, MAIL, at, audit, instance, instance_id, job_id, settling, target, trial};
use super::generate::Generator;
use super::operation::{Change, Operation};

impl Generator {
    pub(super) fn access(&mut self) -> Operation {
        let now = self.now;
        let number = self.number();
        let entry = |action| audit(action, "thing", now);
        match self.dice.below(10) {
            0 | 1 => {
                // Sometimes of a release without such leases.
                let lease_until = (!self.dice.one_in(4)).then(|| now + Duration::from_secs(90));
                // What it sees of the work may be more than there is.
                Operation::Heartbeat(Box::new(instance(self.dice.below(3) as u8, now)), lease_until, false)
            }
            2 => {
                let instance = instance_id(self.dice.below(4) as u8);
                Operation::Drain { instance, draining: self.dice.one_in(2), entry: entry("instance.drain") }
            }
            3 => Operation::RemoveInstances(now.checked_sub(SignedDuration::from_mins(10)).unwrap()),
            4 => {
                let name = format!("{}-{}", self.prefix, if self.dice.one_in(4) { 0 } else { number });
                // Tokens stay after the cleanup, so hashes of other sequences are taken.
                let mut hash = [number as u8; 32];
                hash[1..9].copy_from_slice(&self.seed.to_be_bytes());
                let expires_at = self.dice.one_in(2).then(|| now + Duration::from_mins(20));
                let token = NewToken { name, hash, role: "viewer".to_owned(), created_at: now, expires_at };
                Operation::CreateToken(token, entry("token.create"))
            }
            5 => {
                let name = self.dice.pick(&self.tokens).map_or("nobody".to_owned(), |(name, _)| name.clone());
                Operation::RevokeToken { name, now, entry: entry("token.revoke") }
            }
            6 => Operation::FindToken { hash: self.dice.pick(&self.tokens).map_or([0; 32], |(_, hash)| *hash), now },
            7 => Operation::FindRequest(self.request(), now),
            8 => Operation::RememberAnswer(self.request(), now),
            _ => Operation::Append(AuditEntry { request: Some(self.request()), ..entry("request.done") }),
        }
    }

    /// One of few, so that they meet.
    fn request(&mut self) -> RequestKey {
        let key = format!("{}-{}", self.prefix, self.dice.below(4));
        RequestKey { key, fingerprint: [self.dice.below(2) as u8; 32] }
    }

    pub(super) fn look(&mut self) -> Operation {
        let limit = *self.dice.pick(&[1, 2, 7, 100]).unwrap_or(&7);
        match self.dice.below(10) {
            0 => Operation::Get(self.key()),
            1 => self.dice.pick(&self.runs).map_or(Operation::ListInstances, |run| Operation::GetRun(*run)),
            2 => {
                let job = self.dice.pick(&self.jobs).map_or_else(|| job_id("unknown", 1), |(id, ..)| *id);
                let minutes = self.dice.below(120) as i64;
                let whole = self.now.as_second() / 60 * 60 - minutes * 60;
                Operation::SlotOutcome { job, slot: Timestamp::from_second(whole).unwrap() }
            }
            3 => {
                let run = trial(&self.fresh_name(), MAIL, self.now);
                Operation::InsertRun(Box::new(run), audit("target.try", "target:mail", self.now))
            }
            4 => {
                let status = RunStatus::ALL[self.dice.below(6)];
                let target = if self.dice.one_in(3) { vec![target(LOG)] } else { Vec::new() };
                let filter = RunFilter { status: vec![status], target, ..RunFilter::default() };
                if self.dice.one_in(3) {
                    Operation::CountRuns(filter, limit)
                } else {
                    Operation::ListRuns(filter, limit)
                }
            }
            5 => {
                let key = Some(JobKey::new(&self.key()).unwrap());
                let filter = RunFilter { job_key: key, ..RunFilter::default() };
                if self.dice.one_in(3) {
                    Operation::CountRuns(filter, limit)
                } else {
                    Operation::ListRuns(filter, limit)
                }
            }
            6 if self.dice.one_in(2) => Operation::CountHours(self.now),
            6 => Operation::Counts(self.now),
            7 => self.recent_runs(limit),
            8 => self.count_runs_by_time(),
            _ => {
                let filter = self.job_filter();
                if self.dice.one_in(3) {
                    Operation::CountJobs(filter, limit)
                } else {
                    Operation::ListJobs(filter, limit)
                }
            }
        }
    }

    fn job_filter(&mut self) -> JobFilter {
        let sorts = [JobSort::Key, JobSort::NextRunAt, JobSort::CreatedAt, JobSort::Target, JobSort::LastRun];
        let sort = sorts[self.dice.below(5)];
        let last_status = (0..self.dice.below(3)).map(|_| RunStatus::ALL[self.dice.below(6)]).collect();
        let mut maybe = || self.dice.one_in(4).then(|| self.dice.one_in(2));
        JobFilter {
            failing: maybe(),
            one_time: maybe(),
            scheduled: maybe(),
            text: Some(self.prefix.clone()),
            last_status,
            sort,
            ..JobFilter::default()
        }
    }

    /// At some jobs, now and then at a part of their history.
    fn recent_runs(&mut self, each: u32) -> Operation {
        let keys = (0..self.dice.below(4)).map(|_| JobKey::new(&self.key()).unwrap()).collect();
        let mut recent_runs = RecentRuns::new(keys, each).unwrap();
        if self.dice.one_in(3) {
            recent_runs = recent_runs.from(self.some_time_ago());
        }
        if self.dice.one_in(3) {
            recent_runs = recent_runs.to(self.some_time_ago());
        }
        Operation::RecentRuns(recent_runs)
    }

    fn count_runs_by_time(&mut self) -> Operation {
        let mut bounds: Vec<Timestamp> = (0..2 + self.dice.below(6)).map(|_| self.some_time_ago()).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let Ok(mut histogram) = RunHistogram::new(bounds) else { return Operation::Counts(self.now) };
        if self.dice.one_in(2) {
            histogram = histogram.of_job(JobKey::new(&self.key()).unwrap());
        }
        if self.dice.one_in(3) {
            histogram = histogram.of_target(target(LOG));
        }
        Operation::RunHistogram(if self.dice.one_in(2) { histogram.with_times() } else { histogram })
    }

    /// Often on a whole minute, where slots are.
    fn some_time_ago(&mut self) -> Timestamp {
        let at = self.now.checked_sub(SignedDuration::from_secs(self.dice.below(10_000) as i64 - 200)).unwrap();
        if self.dice.one_in(3) { at } else { Timestamp::from_second(at.as_second() / 60 * 60).unwrap() }
    }

    /// Everything that can be looked at.
    pub(super) fn look_around(&self) -> Vec<Operation> {
        let text = Some(self.prefix.clone());
        let jobs = |sort| Operation::ListJobs(JobFilter { text: text.clone(), sort, ..JobFilter::default() }, 10);
        let keys = self.jobs.iter().map(|(_, key, _)| JobKey::new(key).unwrap()).collect();
        let ever = RunHistogram::new(vec![Timestamp::UNIX_EPOCH, self.now, Timestamp::MAX]).unwrap();
        let mut operations = vec![
            jobs(JobSort::Key),
            jobs(JobSort::NextRunAt),
            jobs(JobSort::CreatedAt),
            jobs(JobSort::Target),
            Operation::CountRuns(RunFilter::default(), 10_000),
            Operation::ListRuns(RunFilter::default(), 25),
            Operation::RecentRuns(RecentRuns::new(keys, 7).unwrap()),
            Operation::RunHistogram(ever.clone()),
            Operation::RunHistogram(ever.with_times()),
            Operation::CountHours(self.now),
            Operation::ListGaps(25),
            Operation::ListAudit(100),
            Operation::Counts(self.now),
            Operation::CountTargets,
            Operation::ListInstances,
            Operation::ListTokens,
        ];
        operations.extend(self.runs.iter().step_by(9).map(|run| Operation::GetRun(*run)));
        operations
    }

    /// Ends everything and deletes what has ended, so that the next sequence begins with little.
    pub(super) fn clear(&mut self) -> Vec<Operation> {
        self.pruned += 1;
        self.now = self.now.checked_add(SignedDuration::from_hours(2)).unwrap();
        let now = self.now;
        match self.pruned {
            1 => {
                let living = self.jobs.iter().filter(|(_, _, status)| *status != JobStatus::Retired);
                let retire = |(_, key, _): &(JobId, String, JobStatus)| Operation::Change {
                    key: key.clone(),
                    revision: None,
                    change: Change::Retire,
                    now,
                    entry: audit("job.retire", key, now),
                };
                living.map(retire).collect()
            }
            2 => {
                let cancel = |run: &RunId| Operation::Cancel { run: *run, now, entry: audit("run.cancel", "run", now) };
                self.alive.iter().map(cancel).collect()
            }
            3 => {
                let end = |claim: &Claim| settle(&settling(claim), Outcome::Lost(None), now);
                let transitions = self.claims.iter().filter_map(end).collect();
                vec![Operation::Record { transitions, now }]
            }
            4 => vec![Operation::Expired { now, limit: 1_000 }],
            5 => (0..3)
                .map(|_| Operation::Prune { before: at("2190-01-01T00:00:00Z"), limit: 500 })
                .chain([Operation::RemoveInstances(at("2190-01-01T00:00:00Z"))])
                .chain([Operation::ListRuns(RunFilter::default(), 100), Operation::ListGaps(100)])
                .collect(),
            _ => Vec::new(),
        }
    }
}
