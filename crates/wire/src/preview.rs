//! Previews of schedules: the meaning of an expression, and its next times.

mod notes;

use everbell_core::org::OrgSlot;
use everbell_core::{Spec, cron};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::words::words;

pub use notes::note;

/// The meaning of a cron expression.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// Whether it is valid: always true, because errors are returned as problems.
    pub valid: bool,
    /// The expression.
    pub expression: String,
    /// The expression in its shortest form.
    pub normalized: String,
    /// The expression in words.
    pub description: String,
    /// The IANA time zone.
    pub timezone: String,
    /// The next times at which it fires.
    pub next: Vec<Fire>,
    /// Warnings about the schedule.
    pub warnings: Vec<Warning>,
}

/// A time at which a schedule fires.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fire {
    /// The time.
    pub at: Timestamp,
    /// The time in the zone of the schedule.
    pub local: String,
    /// The effect of daylight saving, if there is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub note: Option<String>,
    /// The reason of the freeze that keeps the job from firing at this time. A one-time job waits until its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub frozen: Option<String>,
    /// When that freeze ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub frozen_until: Option<Timestamp>,
    /// How many orgs it fires for, for a job with scope `per_org` without `orgId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub orgs: Option<u64>,
    /// How many runs it has, if that is neither 1 nor the number of orgs: each slot runs that calendars move to this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub runs: Option<u64>,
    /// In how many time zones these orgs are, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub zones: Option<u64>,
    /// The first of these orgs, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub org_id: Option<String>,
    /// Jitter spreads the fires of these orgs over this many milliseconds from `at` on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub spread_ms: Option<u64>,
}

/// The next times at which a job fires.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Fires {
    /// The times, earliest first.
    pub items: Vec<Fire>,
}

words!(
    /// The kind of a warning.
    WarningCode from cron::WarningCode {
        /// Both day fields are restricted, so either is enough.
        EitherDay = "either_day",
        /// A step does not divide its range: the last interval is shorter.
        UnevenStep = "uneven_step",
        /// Some months lack the day.
        MissingDay = "missing_day",
        /// The local time does not exist on a date.
        DstGap = "dst_gap",
        /// The local time happens twice on a date.
        DstFold = "dst_fold",
        /// A freeze keeps the job from firing.
        Frozen = "frozen",
        /// No live instance serves the target.
        UnservedTarget = "unserved_target",
        /// A program or a configuration file declares the job.
        DeclaredElsewhere = "declared_elsewhere",
        /// The job that this one waits for does not exist.
        UnknownDependency = "unknown_dependency",
    }
);

/// A warning about a schedule.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    /// A stable word for programs.
    pub code: WarningCode,
    /// The explanation.
    pub detail: String,
    /// The local date on which it happens next.
    #[schema(format = Date)]
    pub local_date: Option<String>,
    /// When it happens next.
    pub at: Option<Timestamp>,
}

impl Fire {
    /// The fire of a schedule at this instant.
    pub fn new(spec: &Spec, at: Timestamp) -> Fire {
        let local = at.to_zoned(spec.zone().as_jiff().clone()).to_string();
        let runs = Some(spec.runs_at(at)).filter(|runs| *runs > 1);
        Fire { note: note(spec, at), runs, ..Fire::at(at, local) }
    }

    /// A fire of which only the time is known.
    pub fn at(at: Timestamp, local: String) -> Fire {
        let (note, frozen, frozen_until) = (None, None, None);
        Fire {
            at,
            local,
            note,
            frozen,
            frozen_until,
            orgs: None,
            runs: None,
            zones: None,
            org_id: None,
            spread_ms: None,
        }
    }

    /// The fire of a per-org job. `spec` is the schedule in the zone of the job.
    pub fn of_orgs(spec: &Spec, slot: &OrgSlot) -> Fire {
        Fire {
            orgs: Some(slot.orgs),
            runs: Some(slot.runs).filter(|runs| *runs != slot.orgs),
            zones: Some(slot.zones).filter(|zones| *zones > 0),
            org_id: slot.first_org.as_ref().map(ToString::to_string),
            spread_ms: spread_ms(slot),
            note: None,
            ..Fire::new(spec, slot.at)
        }
    }

    /// The next fires, fewer if the schedule ends.
    pub fn after(spec: &Spec, from: Timestamp, count: u16) -> Vec<Fire> {
        spec.slots_after(from).take(usize::from(count)).map(|at| Fire::new(spec, at)).collect()
    }
}

/// How long jitter spreads the fires of a slot; `None` without jitter.
pub fn spread_ms(slot: &OrgSlot) -> Option<u64> {
    u64::try_from(slot.within.as_millis()).ok().filter(|millis| *millis > 0)
}

impl Preview {
    /// The meaning of a schedule and its next times after `from`; `None` for one that fires once.
    pub fn new(spec: &Spec, from: Timestamp, count: u16) -> Option<Preview> {
        let expression = spec.expression()?;
        Some(Preview {
            valid: true,
            expression: expression.as_str().to_owned(),
            normalized: expression.normalized().to_owned(),
            description: expression.describe(),
            timezone: spec.zone().name().to_owned(),
            next: Fire::after(spec, from, count),
            warnings: spec.warnings(from).iter().map(Warning::from).collect(),
        })
    }
}

impl From<&cron::Warning> for Warning {
    fn from(warning: &cron::Warning) -> Warning {
        Warning {
            code: warning.code.into(),
            detail: warning.detail.clone(),
            local_date: warning.local_date.map(|date| date.to_string()),
            at: warning.at,
        }
    }
}
