//! The calendars of a draft, and the fate of slots on days that they exclude.

use super::{Draft, Timing};
use crate::calendar::{CalendarRules, Roll};
use crate::cron::Expression;
use crate::spec::MAX_ROLLED_TIMES;
use crate::{Invalid, Spec, Zone};

impl Draft {
    /// Refuses calendars of a job without days, and slots that cannot move.
    pub(super) fn check_calendars(&self, rules: &CalendarRules) -> Result<(), Vec<Invalid>> {
        let mut problems = Vec::new();
        if !rules.is_empty() && self.timing.is_following() {
            let reason = "a job that starts after another cannot have a calendar: give it to that job";
            problems.push(Invalid::new("policies.calendar", reason));
        }
        if !rules.is_empty() && matches!(self.timing, Timing::Once(_)) {
            let reason = "a one-time job names its time, so no calendar can exclude it";
            problems.push(Invalid::new("policies.calendar", reason));
        }
        if rules.roll != Roll::Skip {
            if rules.is_empty() {
                let reason = "the job has no calendar, so no slot can move: name one in `exclude` or `only`";
                problems.push(Invalid::new("policies.calendar.roll", reason));
            } else if !self.can_roll() {
                let reason = format!(
                    "only slots of schedules with at most {MAX_ROLLED_TIMES} fixed times of day can move to another day: use `skip`"
                );
                problems.push(Invalid::new("policies.calendar.roll", reason));
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Whether slots could move. An expression that cannot be read is refused elsewhere.
    fn can_roll(&self) -> bool {
        match &self.timing {
            Timing::Cron(text) => Expression::parse(text).map_or(true, |expression| {
                Spec::recurring(expression, Zone::utc(), jiff::Timestamp::UNIX_EPOCH).can_roll()
            }),
            // Refused for another reason.
            Timing::Once(_) | Timing::After { .. } | Timing::AfterAll { .. } => true,
            Timing::Every(_) => false,
        }
    }
}
