//! Reports of the remote side of a run: signs of life, progress, output, and its end.

use everbell_core::handover::{Handover, Progress, Remote};
use everbell_core::remote::{self, Refusal};
use everbell_core::settle::{Outcome, Settling, Then, settle};
use everbell_core::store::{AddedOutput, JobRef, RemoteUpdate, StoreError, StoreResult};
use everbell_core::{Failure, Json, Run as RunRecord, RunId};
use serde_json::json;

use super::runs::Runs;
use super::{Facts, MAX_ATTEMPTS};
use crate::engine::end_remote_run;
use crate::events::Event;
use crate::run::info_of;

/// The one that reports about a run.
#[derive(Clone, Copy, Debug)]
pub enum Reporter {
    /// The remote side, which showed its run token: see [`Runs::verify_token`].
    Token(Handover),
    /// An operator, about this attempt, or else the current one.
    Operator {
        /// The run.
        run: RunId,
        /// The attempt.
        attempt: Option<u32>,
    },
}

/// A report about a run that goes on. Every report is a sign of life.
#[derive(Clone, Debug, Default)]
pub struct RemoteReport {
    /// How far it has come.
    pub progress: Option<Progress>,
    /// A text that is added to its output, with a line end if it has none.
    pub log: String,
}

/// The answer to a report.
#[derive(Clone, Debug)]
pub enum RemoteAnswer {
    /// It is written: the run as it is now.
    Accepted(Box<RunRecord>),
    /// It changes nothing: why, and the run as it is.
    Refused(Refusal, Box<RunRecord>),
}

/// A run whose remote side may report about it, and the attempt.
struct AtWork {
    run: RunRecord,
    remote: Remote,
    attempt: u32,
}

impl Reporter {
    fn run(&self) -> RunId {
        match self {
            Reporter::Token(handover) => handover.run,
            Reporter::Operator { run, .. } => *run,
        }
    }

    fn attempt(&self, run: &RunRecord) -> u32 {
        match self {
            Reporter::Token(handover) => handover.attempt,
            Reporter::Operator { attempt, .. } => attempt.unwrap_or(run.attempt),
        }
    }
}

impl Runs {
    /// Returns what a run token allows; `None` if it is none of this database. Whether its attempt is still at work is another
    /// question.
    pub async fn verify_token(&self, token: &str) -> StoreResult<Option<Handover>> {
        let parts = &self.context.parts;
        parts.run_tokens.verify(&*parts.store, token).await
    }

    /// Reports that the remote side of a run is at work, which extends its lease, and how far it has come. A run that is to
    /// be canceled is not extended: [`RunRecord::cancel_by`](everbell_core::Run::cancel_by) says so.
    pub async fn report(&self, by: &Reporter, report: &RemoteReport) -> StoreResult<RemoteAnswer> {
        let parts = &self.context.parts;
        for _ in 0..MAX_ATTEMPTS {
            let AtWork { run, remote, attempt } = match self.at_work(by).await? {
                Ok(at_work) => at_work,
                Err(refused) => return Ok(refused),
            };
            let update = RemoteUpdate {
                run: run.id,
                attempt,
                lease_until: remote::renewed(&run, &remote, self.context.now()),
                progress: report.progress.clone(),
                output: AddedOutput::new(run.output.as_deref(), &report.log),
            };
            // Somebody else may have ended it, or added to its output.
            if parts.store.update_remote(&update).await? {
                if let Some(progress) = &report.progress {
                    parts.events.publish(Event::Progress {
                        run: info_of(&run),
                        done: progress.done().unwrap_or_default(),
                        message: progress.message.clone().unwrap_or_default(),
                    });
                }
                return Ok(RemoteAnswer::Accepted(Box::new(parts.store.get_run(run.id).await?)));
            }
        }
        Err(busy(by.run()))
    }

    /// Ends a run with success. Repeated with the same result, it is accepted again.
    pub async fn complete(&self, by: &Reporter, result: Option<&Json>, log: &str) -> StoreResult<RemoteAnswer> {
        let outcome = |_: &RunRecord| Outcome::Succeeded { result: result.cloned() };
        let is_done = |run: &RunRecord, attempt| remote::has_succeeded(run, attempt, result);
        self.end(by, "run.complete", &outcome, &is_done, log).await
    }

    /// Ends the attempt of a run with a failure. Repeated with the same failure code, it is accepted again.
    pub async fn fail(&self, by: &Reporter, failure: &Failure, then: &Then, log: &str) -> StoreResult<RemoteAnswer> {
        let outcome = |run: &RunRecord| remote::failed(run, failure.clone(), then.clone());
        let is_done = |run: &RunRecord, attempt| remote::has_failed(run, attempt, &failure.code);
        self.end(by, "run.fail", &outcome, &is_done, log).await
    }

    async fn end(
        &self,
        by: &Reporter,
        action: &str,
        outcome: &(dyn Fn(&RunRecord) -> Outcome + Send + Sync),
        is_done: &(dyn Fn(&RunRecord, u32) -> bool + Send + Sync),
        log: &str,
    ) -> StoreResult<RemoteAnswer> {
        let parts = &self.context.parts;
        for _ in 0..MAX_ATTEMPTS {
            let AtWork { run, attempt, .. } = match self.at_work(by).await? {
                Ok(at_work) => at_work,
                Err(RemoteAnswer::Refused(_, run)) if is_done(&run, by.attempt(&run)) => {
                    return Ok(RemoteAnswer::Accepted(run));
                }
                Err(refused) => return Ok(refused),
            };
            let now = self.context.now();
            let settling = self.settling(&run, attempt).await?;
            let Some(transition) = settle(&settling, outcome(&run), now) else { continue };
            let output = AddedOutput::new(run.output.as_deref(), log).map(|added| added.after);
            let transition = transition.with_output(output.as_deref().unwrap_or_default());
            if !end_remote_run(&*parts.store, &parts.events, transition, &run, now).await? {
                continue;
            }
            let ended = parts.store.get_run(run.id).await?;
            if matches!(by, Reporter::Operator { .. }) {
                let status = |run: &RunRecord| Facts::from_iter([("status".to_owned(), json!(run.status.as_str()))]);
                let (before, after) = (status(&run), status(&ended));
                let object = format!("run:{}", run.id);
                let entry = self.context.entry(action, object, now, Some(&before), Some(&after));
                parts.store.append_audit(&entry).await?;
            }
            return Ok(RemoteAnswer::Accepted(Box::new(ended)));
        }
        Err(busy(by.run()))
    }

    /// Returns the run if its remote side may report about it. A remote side that reports before its answer to the call was
    /// handled takes the run over by that.
    async fn at_work(&self, by: &Reporter) -> StoreResult<Result<AtWork, RemoteAnswer>> {
        let store = &self.context.parts.store;
        let mut run = store.get_run(by.run()).await?;
        let attempt = by.attempt(&run);
        if let Err(refusal) = remote::expect_at_work(&run, attempt) {
            return Ok(Err(RemoteAnswer::Refused(refusal, Box::new(run))));
        }
        if run.remote.is_none()
            && let Reporter::Token(handover) = by
        {
            store.hand_over(handover, handover.lease_until(self.context.now()), None).await?;
            run = store.get_run(by.run()).await?;
        }
        if let Err(refusal) = remote::expect_at_work(&run, attempt) {
            return Ok(Err(RemoteAnswer::Refused(refusal, Box::new(run))));
        }
        Ok(match run.remote.take() {
            Some(remote) => Ok(AtWork { run, remote, attempt }),
            None => Err(RemoteAnswer::Refused(Refusal::NotHandedOver, Box::new(run))),
        })
    }

    /// Returns the facts that `settle` needs, with the policies of the version that the run is of.
    async fn settling(&self, run: &RunRecord, attempt: u32) -> StoreResult<Settling> {
        let row = match run.job_id {
            Some(job) => match self.context.parts.store.get_job(&JobRef::Id(job)).await {
                Err(StoreError::NotFound { .. }) => None,
                row => Some(row?),
            },
            None => None,
        };
        let policies = row.as_ref().map(|row| &row.job.definition.policies);
        Ok(Settling::new(run.id, run.status, attempt, policies).after(run.earlier_attempts.clone()))
    }
}

fn busy(run: RunId) -> StoreError {
    StoreError::Conflict { what: format!("run `{run}` keeps changing") }
}
