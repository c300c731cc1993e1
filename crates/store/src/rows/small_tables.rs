//! Rows of the smaller tables.

use everbell_core::store::{AuditEntry, Instance, NewToken, Origin, StoreResult, Token};
use everbell_core::{Gap, GapReason, InstanceId, Invalid, JobId, Json, OrgId, Target, Timer};
use uuid::Uuid;

use super::from_row::{by_name, by_position};
use super::{corrupt, count, json, org, word};
use crate::micros::Micros;

/// A row of `timers`.
#[derive(Clone, Debug)]
pub(crate) struct TimerColumns {
    pub(crate) job_id: Uuid,
    pub(crate) org_id: String,
    pub(crate) next_run_at: Option<Micros>,
    pub(crate) last_slot_at: Micros,
    pub(crate) rescheduled_from: Option<Micros>,
    pub(crate) last_local_date: Option<String>,
}
by_position!(TimerColumns { job_id, org_id, next_run_at, last_slot_at, rescheduled_from, last_local_date });

impl TimerColumns {
    pub(crate) fn read(self) -> StoreResult<Timer> {
        let id = self.job_id;
        let date = self.last_local_date.map(|text| text.parse()).transpose();
        Ok(everbell_core::with!(Timer {
            org: org(&self.org_id).map_err(|why| corrupt("timers", id, why))?,
            next_run_at: self.next_run_at.map(Into::into),
            rescheduled_from: self.rescheduled_from.map(Into::into),
            last_local_date: date.map_err(|why| corrupt("timers", id, why))?,
            ..Timer::new(JobId::from_uuid(id), self.last_slot_at.into())
        }))
    }
}

/// A row of `gaps`.
#[derive(Clone, Debug)]
pub(crate) struct GapColumns {
    pub(crate) id: Uuid,
    pub(crate) job_id: Uuid,
    pub(crate) org_id: String,
    pub(crate) first_slot_at: Micros,
    pub(crate) last_slot_at: Micros,
    pub(crate) slots: i64,
    pub(crate) reason: String,
    pub(crate) actor: Option<String>,
}

by_name!(GapColumns { id, job_id, org_id, first_slot_at, last_slot_at, slots, reason, actor });

impl GapColumns {
    pub(crate) fn read(self) -> StoreResult<(JobId, Option<OrgId>, Gap)> {
        let id = self.id;
        let read = || -> Result<_, Invalid> {
            let gap = everbell_core::with!(Gap {
                actor: self.actor,
                ..Gap::new(
                    self.first_slot_at.into(),
                    self.last_slot_at.into(),
                    count(self.slots),
                    word(GapReason::ALL, GapReason::as_str, &self.reason)?
                )
            });
            Ok((JobId::from_uuid(self.job_id), org(&self.org_id)?, gap))
        };
        read().map_err(|why| corrupt("gaps", id, why))
    }
}

/// A row of `audit`.
#[derive(Clone, Debug)]
pub(crate) struct AuditColumns {
    pub(crate) id: Uuid,
    pub(crate) at: Micros,
    pub(crate) actor: String,
    pub(crate) action: String,
    pub(crate) object: String,
    pub(crate) reason: Option<String>,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
    pub(crate) address: Option<String>,
    pub(crate) request_id: Option<String>,
    pub(crate) role: Option<String>,
}

by_name!(AuditColumns { id, at, actor, action, object, reason, before, after, address, request_id, role });

impl AuditColumns {
    pub(crate) fn read(self) -> StoreResult<AuditEntry> {
        let bad = |why: Invalid| corrupt("audit", self.id, why);
        Ok(AuditEntry {
            id: self.id,
            at: self.at.into(),
            before: json("before", self.before.as_deref()).map_err(bad)?,
            after: json("after", self.after.as_deref()).map_err(bad)?,
            actor: self.actor,
            action: self.action,
            object: self.object,
            reason: self.reason,
            request: None,
            origin: Origin { address: self.address, request_id: self.request_id, role: self.role },
        })
    }
}

/// A JSON value of an audit entry as text.
pub(crate) fn audit_json(value: Option<&Json>) -> Option<String> {
    value.map(ToString::to_string)
}

/// A row of `tokens`, without the hash.
#[derive(Clone, Debug)]
pub(crate) struct TokenColumns {
    pub(crate) name: String,
    pub(crate) role: String,
    pub(crate) created_at: Micros,
    pub(crate) expires_at: Option<Micros>,
    pub(crate) revoked_at: Option<Micros>,
    pub(crate) last_used_at: Option<Micros>,
}

by_name!(TokenColumns { name, role, created_at, expires_at, revoked_at, last_used_at });

impl TokenColumns {
    pub(crate) fn read(self) -> Token {
        Token {
            name: self.name,
            role: self.role,
            created_at: self.created_at.into(),
            expires_at: self.expires_at.map(Into::into),
            revoked_at: self.revoked_at.map(Into::into),
            last_used_at: self.last_used_at.map(Into::into),
        }
    }
}

/// A new token as it is stored.
pub(crate) fn token_from(new: &NewToken) -> Token {
    let columns = TokenColumns {
        name: new.name.clone(),
        role: new.role.clone(),
        created_at: new.created_at.into(),
        expires_at: new.expires_at.map(Into::into),
        revoked_at: None,
        last_used_at: None,
    };
    columns.read()
}

/// A row of `instances`.
#[derive(Clone, Debug)]
pub(crate) struct InstanceColumns {
    pub(crate) id: Uuid,
    pub(crate) host: String,
    pub(crate) pid: i64,
    pub(crate) version: String,
    pub(crate) roles: String,
    pub(crate) targets: String,
    pub(crate) started_at: Micros,
    pub(crate) heartbeat_at: Micros,
    pub(crate) draining: bool,
    pub(crate) clock_skew_ms: i64,
    pub(crate) process: Option<String>,
}

by_name!(InstanceColumns {
    id,
    host,
    pid,
    version,
    roles,
    targets,
    started_at,
    heartbeat_at,
    draining,
    clock_skew_ms,
    process,
});

impl InstanceColumns {
    pub(crate) fn read(self) -> StoreResult<Instance> {
        let id = self.id;
        let list = |text: &str| -> Result<Vec<String>, Invalid> {
            serde_json::from_str(text).map_err(|error| Invalid::new("list", error.to_string()))
        };
        let targets = list(&self.targets).and_then(|names| names.iter().map(|name| Target::new(name)).collect());
        Ok(everbell_core::with!(Instance {
            roles: list(&self.roles).map_err(|why| corrupt("instances", id, why))?,
            targets: targets.map_err(|why| corrupt("instances", id, why))?,
            heartbeat_at: self.heartbeat_at.into(),
            draining: self.draining,
            clock_skew_ms: self.clock_skew_ms,
            process: self.process,
            ..Instance::new(
                InstanceId::from_uuid(id),
                self.host,
                u32::try_from(self.pid).unwrap_or(0),
                self.version,
                self.started_at.into()
            )
        }))
    }
}

/// A list of words as the JSON text of a column.
pub(crate) fn words_of<T: AsRef<str>>(words: impl Iterator<Item = T>) -> String {
    let words: Vec<String> = words.map(|word| word.as_ref().to_owned()).collect();
    serde_json::to_string(&words).unwrap_or_else(|_| "[]".to_owned())
}
