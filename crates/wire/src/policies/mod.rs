//! The policies of a job: the document that shows them, the fields that set them, and a table of everything that is written
//! about each.

pub(crate) mod fields;
mod policy;
mod table;

use std::sync::Arc;
use std::time::Duration;

use everbell_core::calendar::{Calendar, CalendarRules};
use everbell_core::cron::Dst;
use everbell_core::{self as core, Definition, Dependency, PolicyValues};
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::fields::{CALENDAR, DST};
pub use self::policy::{Flag, FlagValue, Policy, PolicyKind, Summary};
pub use self::table::{GROUPS, POLICIES};
use crate::words::words;

words!(
    /// How a slot is handled while earlier runs of the job are active.
    Overlap from core::Overlap {
        /// Record the slot as a skipped run.
        Skip = "skip",
        /// Let the slot wait for its turn; at most one waits, the others are skipped.
        Queue = "queue",
        /// Cancel the active run and take its place.
        Replace = "replace",
        /// Let runs overlap without limit.
        Allow = "allow",
    }
);

words!(
    /// How slots on days that calendars exclude are handled.
    Roll from core::calendar::Roll {
        /// They do not fire.
        Skip = "skip",
        /// They fire at the same local time on the next allowed day.
        Next = "next",
        /// They fire at the same local time on the previous allowed day.
        Previous = "previous",
    }
);

words!(
    /// How missed slots are handled.
    CatchUp from core::CatchUp {
        /// Run the latest missed slot once.
        Once = "once",
        /// Run none of them.
        None = "none",
        /// Run each of them, within `catchUpLimit` and `catchUpWindow`.
        All = "all",
    }
);

words!(
    /// Whether to stop a handler when the lease of its run cannot be renewed.
    OnLeaseLoss from core::OnLeaseLoss {
        /// Stop it before another instance may start the next run.
        Stop = "stop",
        /// Let it go on, even if it then overlaps with the next run.
        Continue = "continue",
    }
);

words!(
    /// How to treat a run whose instance was lost.
    OnLost from core::OnLost {
        /// Fail it with the code `lost`, because everbell cannot know how far it got.
        Fail = "fail",
        /// Retry it within `retry.maxAttempts`; a stop by a shutdown then uses up no attempt.
        Retry = "retry",
    }
);

words!(
    /// How local times are handled that daylight saving skips.
    DstGap from core::cron::DstGap {
        /// Fire right after the gap.
        Shift = "shift",
        /// Do not fire.
        Skip = "skip",
    }
);

words!(
    /// How local times are handled that occur twice when daylight saving ends.
    DstFold from core::cron::DstFold {
        /// Fire the first time.
        First = "first",
        /// Fire the second time.
        Last = "last",
        /// Fire both times.
        Both = "both",
    }
);

/// The rules by which a job fires and its runs are executed. Durations are ISO 8601, such as `PT15M`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Policies {
    /// How a slot is handled while earlier runs are active.
    pub overlap: Overlap,
    /// How many runs of the job may be active at once. Runs of a backfill are counted separately.
    pub max_concurrent_runs: u32,
    /// How missed slots are handled.
    pub catch_up: CatchUp,
    /// How many missed slots are run at most.
    pub catch_up_limit: u32,
    /// Older missed slots are not run; null for no bound.
    pub catch_up_window: Option<String>,
    /// How late a slot may be before it counts as missed.
    pub grace: String,
    /// How long an attempt may take.
    pub timeout: String,
    /// The longest delay of a start; delays are spread over jobs.
    pub jitter: String,
    /// How failed runs are retried.
    pub retry: Retry,
    /// Whether to stop a run whose lease cannot be renewed; null for `stop`, or `continue` where runs may overlap.
    pub on_lease_loss: Option<OnLeaseLoss>,
    /// How to treat a run whose instance crashed or was killed. `onLeaseLoss` is about a running instance.
    #[serde(default = "fail")]
    #[schema(required = true)]
    pub on_lost: OnLost,
    /// Waiting runs of a higher priority start first.
    #[serde(default)]
    #[schema(required = true)]
    pub priority: i32,
    /// Pause the job after this many consecutive failures; null for never.
    pub pause_after_failures: Option<u32>,
    /// Fire only after another job succeeded; null for always.
    pub depends_on: Option<DependsOn>,
    /// How daylight saving is treated.
    pub dst: DstPolicy,
    /// The calendars that limit the days on which it fires.
    #[serde(default)]
    #[schema(required = true)]
    pub calendar: CalendarPolicy,
}

/// The behaviour of a server that does not know the policy yet.
const fn fail() -> OnLost {
    OnLost::Fail
}

/// How failed runs are retried.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    /// How many attempts a run has, the first included.
    pub max_attempts: u32,
    /// The wait before the second attempt; it doubles from there.
    pub initial: String,
    /// The longest wait.
    pub max: String,
}

/// A job fires only if another one succeeded not long ago.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependsOn {
    /// The other job.
    pub job_key: String,
    /// How long ago its last success may be.
    pub within: String,
}

/// How daylight saving is treated.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DstPolicy {
    /// Local times that are skipped.
    pub gap: DstGap,
    /// Local times that occur twice.
    pub fold: DstFold,
}

/// The calendars that limit the days on which a job fires.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct CalendarPolicy {
    /// The job does not fire on days of these calendars. They take precedence over `only`.
    pub exclude: Vec<String>,
    /// Fires only on days of these calendars; on all days if there is none.
    pub only: Vec<String>,
    /// How slots on other days are handled.
    #[serde(default)]
    pub roll: Roll,
}

#[expect(clippy::derivable_impls, reason = "the macro that makes the type takes no attributes of its variants")]
impl Default for Roll {
    fn default() -> Roll {
        Roll::Skip
    }
}

impl From<&CalendarRules> for CalendarPolicy {
    fn from(rules: &CalendarRules) -> CalendarPolicy {
        let names =
            |calendars: &[Arc<Calendar>]| calendars.iter().map(|calendar| calendar.name().to_string()).collect();
        CalendarPolicy { exclude: names(&rules.exclude), only: names(&rules.only), roll: rules.roll.into() }
    }
}

impl From<&Definition> for Policies {
    fn from(job: &Definition) -> Policies {
        Policies::new(&job.policies, job.dst())
    }
}

/// The policies of a job that sets none.
impl Default for Policies {
    fn default() -> Policies {
        Policies::new(&PolicyValues::default(), Dst::default())
    }
}

impl Policies {
    fn new(policies: &PolicyValues, dst: Dst) -> Policies {
        Policies {
            overlap: policies.overlap.into(),
            max_concurrent_runs: policies.max_concurrent_runs,
            catch_up: policies.catch_up.into(),
            catch_up_limit: policies.catch_up_limit,
            catch_up_window: policies.catch_up_window.map(iso_duration),
            grace: iso_duration(policies.grace),
            timeout: iso_duration(policies.timeout),
            jitter: iso_duration(policies.jitter),
            retry: Retry {
                max_attempts: policies.max_attempts,
                initial: iso_duration(policies.backoff.initial),
                max: iso_duration(policies.backoff.max),
            },
            on_lease_loss: policies.on_lease_loss.map(OnLeaseLoss::from),
            on_lost: policies.on_lost.into(),
            priority: policies.priority,
            pause_after_failures: policies.pause_after_failures,
            depends_on: policies.depends_on.as_ref().map(|Dependency { job_key, within }| DependsOn {
                job_key: job_key.to_string(),
                within: iso_duration(*within),
            }),
            dst: DstPolicy { gap: dst.gap.into(), fold: dst.fold.into() },
            calendar: CalendarPolicy::from(&policies.calendars),
        }
    }
}

/// ISO 8601, as the API writes durations: `PT15M`.
pub fn iso_duration(time: Duration) -> String {
    SignedDuration::try_from(time).map_or_else(|_| format!("PT{}S", time.as_secs()), |signed| signed.to_string())
}
