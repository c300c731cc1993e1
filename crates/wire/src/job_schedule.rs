//! [`Schedule`]: when a job fires, as documents say it.

use std::time::Duration;

use everbell_core::{Definition, Spec, When};
use jiff::Timestamp;

use crate::after::{After, GroupBy, Parents, capitalized};
use crate::words::words;

words!(
    /// Whether a job fires more than once.
    ScheduleType {
        /// It fires by a cron expression or at a fixed rate.
        Recurring = "recurring",
        /// It fires once.
        OneTime = "one_time",
        /// It starts when runs of another job end.
        After = "after",
    }
);

/// The schedule of a definition, also of one that can no longer be read.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Whether it fires more than once.
    pub kind: ScheduleType,
    /// The cron expression of a recurring one.
    pub expression: Option<String>,
    /// The time of a one-time one.
    pub run_at: Option<Timestamp>,
    /// The job or jobs that it starts after.
    pub after: Option<Parents>,
    /// The grouping of runs of several jobs, and the longest wait for them.
    pub fan_in: Option<(GroupBy, Duration)>,
    /// The IANA time zone.
    pub timezone: String,
    /// The schedule in words.
    pub text: String,
}

impl From<&Definition> for Schedule {
    fn from(definition: &Definition) -> Schedule {
        match &definition.spec {
            Ok(spec) => {
                let timezone = spec.zone().name().to_owned();
                match spec.when() {
                    When::Cron(expression) | When::Every { expression, .. } => Schedule {
                        kind: ScheduleType::Recurring,
                        expression: Some(expression.as_str().to_owned()),
                        run_at: None,
                        after: None,
                        fan_in: None,
                        timezone,
                        text: expression.describe(),
                    },
                    When::After(after) => Schedule {
                        kind: ScheduleType::After,
                        expression: None,
                        run_at: None,
                        after: Some(Parents::One(After::from(after))),
                        fan_in: None,
                        timezone,
                        text: capitalized(&after.describe()),
                    },
                    When::AfterAll(fan_in) => Schedule {
                        kind: ScheduleType::After,
                        expression: None,
                        run_at: None,
                        after: Some(Parents::All(fan_in.parents.iter().map(After::from).collect())),
                        fan_in: Some((fan_in.group.into(), fan_in.within)),
                        timezone,
                        text: capitalized(&fan_in.describe()),
                    },
                    When::Once(at) => Schedule {
                        kind: ScheduleType::OneTime,
                        expression: None,
                        run_at: Some(*at),
                        after: None,
                        fan_in: None,
                        text: format!("Once, at {}", local(*at, spec)),
                        timezone,
                    },
                }
            }
            Err(broken) => Schedule {
                kind: if broken.expression.is_some() { ScheduleType::Recurring } else { ScheduleType::OneTime },
                expression: broken.expression.clone(),
                run_at: broken.run_at,
                after: None,
                fan_in: None,
                timezone: broken.timezone.clone(),
                text: format!("Cannot be read: {}", broken.reason),
            },
        }
    }
}

/// RFC 9557: `2026-11-16T08:00:00+01:00[Europe/Paris]`.
pub(crate) fn local(at: Timestamp, spec: &Spec) -> String {
    at.to_zoned(spec.zone().as_jiff().clone()).to_string()
}
