//! Rows of `problems` and `deliveries`.

use everbell_core::alert::{
    Change, Delivery, DeliveryEnd, DeliveryStatus, Kind, Mute, NewDelivery, Note, NotifiedRule, Problem, Subject,
};
use everbell_core::store::StoreResult;
use everbell_core::{InstanceId, Invalid, JobKey, Json, OrgId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::from_row::by_name;
use super::{corrupt, count, word};
use crate::micros::Micros;

/// A row of `problems`.
#[derive(Clone, Debug)]
pub(crate) struct ProblemColumns {
    pub(crate) id: Uuid,
    pub(crate) kind: String,
    /// Of an instance its id.
    pub(crate) job_key: String,
    /// Empty for all orgs.
    pub(crate) org_id: String,
    pub(crate) opened_at: Micros,
    pub(crate) closed_at: Option<Micros>,
    pub(crate) state: String,
}

by_name!(ProblemColumns { id, kind, job_key, org_id, opened_at, closed_at, state });

/// The content of the column `state`. Times are microseconds since 1970.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProblemState {
    since: i64,
    mark_at: i64,
    count: u64,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// Of an instance. Its id is in the column `job_key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    closed_because: Option<String>,
    told: Vec<(String, i64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledged: Option<NoteState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    muted: Option<MuteState>,
}

#[derive(Serialize, Deserialize)]
struct NoteState {
    by: String,
    at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct MuteState {
    note: NoteState,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<i64>,
}

fn number(at: Timestamp) -> i64 {
    Micros::from(at).0
}

fn time(micros: i64) -> Timestamp {
    Micros(micros).into()
}

impl NoteState {
    fn new(note: &Note) -> NoteState {
        NoteState { by: note.by.clone(), at: number(note.at), reason: note.reason.clone() }
    }

    fn read(self) -> Note {
        Note { by: self.by, at: time(self.at), reason: self.reason }
    }
}

impl ProblemColumns {
    pub(crate) fn new(problem: &Problem) -> ProblemColumns {
        let mute = |mute: &Mute| MuteState { note: NoteState::new(&mute.note), until: mute.until.map(number) };
        let state = ProblemState {
            since: number(problem.since),
            mark_at: number(problem.mark_at),
            count: problem.count,
            reason: problem.reason.clone(),
            run: problem.run.map(|run| run.to_string()),
            host: problem.subject.instance().map(|(_, host)| host.to_owned()),
            closed_because: problem.closed_because.clone(),
            told: problem.told.iter().map(|told| (told.rule.clone(), number(told.at))).collect(),
            acknowledged: problem.acknowledged.as_ref().map(NoteState::new),
            muted: problem.muted.as_ref().map(mute),
        };
        ProblemColumns {
            id: problem.id,
            kind: problem.kind.as_str().to_owned(),
            job_key: match &problem.subject {
                Subject::Job(key) | Subject::JobOfOrg(key, _) => key.to_string(),
                Subject::Instance(id, _) => id.to_string(),
            },
            org_id: problem.subject.org().map(ToString::to_string).unwrap_or_default(),
            opened_at: problem.opened_at.into(),
            closed_at: problem.closed_at.map(Into::into),
            // Texts, numbers and lists of them always have a form in JSON.
            state: serde_json::to_string(&state).unwrap_or_default(),
        }
    }

    pub(crate) fn read(self) -> StoreResult<Problem> {
        let id = self.id;
        let state: ProblemState = serde_json::from_str(&self.state).map_err(|why| corrupt("problems", id, why))?;
        let read = || -> Result<Problem, Invalid> {
            Ok(Problem {
                id,
                kind: word(Kind::ALL, Kind::as_str, &self.kind)?,
                subject: match state.host {
                    Some(host) => Subject::Instance(self.job_key.parse::<InstanceId>()?, host),
                    None if self.org_id.is_empty() => Subject::Job(JobKey::new(&self.job_key)?),
                    None => Subject::JobOfOrg(JobKey::new(&self.job_key)?, OrgId::new(&self.org_id)?),
                },
                opened_at: self.opened_at.into(),
                closed_at: self.closed_at.map(Into::into),
                closed_because: state.closed_because,
                since: time(state.since),
                mark_at: time(state.mark_at),
                count: state.count,
                reason: state.reason,
                run: state.run.map(|run| run.parse()).transpose()?,
                told: state.told.into_iter().map(|(rule, at)| NotifiedRule { rule, at: time(at) }).collect(),
                acknowledged: state.acknowledged.map(NoteState::read),
                muted: state.muted.map(|mute| Mute { note: mute.note.read(), until: mute.until.map(time) }),
            })
        };
        read().map_err(|why| corrupt("problems", id, why))
    }
}

/// A row of `deliveries`, without its lease.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryColumns {
    pub(crate) id: Uuid,
    pub(crate) problem_id: Option<Uuid>,
    pub(crate) rule: Option<String>,
    pub(crate) channel: String,
    pub(crate) change: String,
    pub(crate) message: String,
    pub(crate) created_at: Micros,
    pub(crate) available_at: Micros,
    pub(crate) status: String,
    pub(crate) attempt: i64,
    pub(crate) next_attempt_at: Micros,
    pub(crate) error: Option<String>,
    pub(crate) ended_at: Option<Micros>,
}

by_name!(DeliveryColumns {
    id,
    problem_id,
    rule,
    channel,
    change,
    message,
    created_at,
    available_at,
    status,
    attempt,
    next_attempt_at,
    error,
    ended_at,
});

impl DeliveryColumns {
    pub(crate) fn read(self) -> StoreResult<Delivery> {
        let id = self.id;
        let read = || -> Result<Delivery, Invalid> {
            let new = NewDelivery {
                id,
                problem: self.problem_id,
                rule: self.rule,
                channel: self.channel,
                change: word(Change::ALL, Change::as_str, &self.change)?,
                message: Json::parse("message", &self.message)?,
                created_at: self.created_at.into(),
                available_at: self.available_at.into(),
            };
            Ok(Delivery {
                new,
                status: word(DeliveryStatus::ALL, DeliveryStatus::as_str, &self.status)?,
                attempt: u32::try_from(count(self.attempt)).unwrap_or(u32::MAX),
                next_attempt_at: self.next_attempt_at.into(),
                error: self.error,
                ended_at: self.ended_at.map(Into::into),
            })
        };
        read().map_err(|why| corrupt("deliveries", id, why))
    }
}

/// A job, and when its newest success ended.
#[derive(Clone, Debug)]
pub(crate) struct SuccessColumns {
    pub(crate) job_key: String,
    pub(crate) finished_at: Option<Micros>,
}

by_name!(SuccessColumns { job_key, finished_at });

impl SuccessColumns {
    /// Returns nothing for a job that never succeeded.
    pub(crate) fn read(self) -> Option<StoreResult<(JobKey, Timestamp)>> {
        let at = self.finished_at?.into();
        Some(JobKey::new(&self.job_key).map(|key| (key, at)).map_err(|why| corrupt("jobs", &self.job_key, why)))
    }
}

/// Columns that the end of an attempt sets.
pub(crate) struct EndValues {
    pub(crate) status: DeliveryStatus,
    /// `None` keeps it.
    pub(crate) next_attempt_at: Option<Micros>,
    pub(crate) error: Option<String>,
    pub(crate) ended_at: Option<Micros>,
}

impl EndValues {
    pub(crate) fn new(end: &DeliveryEnd, now: Timestamp) -> EndValues {
        let (status, next_attempt_at, error) = match end {
            DeliveryEnd::Delivered => (DeliveryStatus::Delivered, None, None),
            DeliveryEnd::Retry(at, error) => (DeliveryStatus::Pending, Some(Micros::from(*at)), Some(error.clone())),
            DeliveryEnd::Dead(error) => (DeliveryStatus::Dead, None, Some(error.clone())),
        };
        let ended_at = (status != DeliveryStatus::Pending).then(|| Micros::from(now));
        EndValues { status, next_attempt_at, error, ended_at }
    }
}
