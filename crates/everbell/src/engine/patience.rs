//! [`Patience`]: how long the planner leaves due timers alone that have no room here.
//!
//! Runs that are planned far ahead of their start cost a second write each, and no other instance can start them with
//! their plan. But a slot must not wait for its decision until it is older than the grace of its job, only because other
//! runs take long. So a target whose timers are behind waits for room, [`MAX_WAIT_FOR_ROOM`] in all, and longer only as far as its
//! runs do start: a second for every 20,000. Then its timers are planned as fast as the database can, until none is due.

use std::collections::BTreeMap;
use std::time::Duration;

use everbell_core::Target;

/// The time that a target waits for room in all, while more of its timers are due than were planned.
const MAX_WAIT_FOR_ROOM: Duration = Duration::from_secs(1);

/// The time that each run adds which starts meanwhile.
const EXTRA_WAIT_PER_START: Duration = Duration::from_micros(50);

/// The targets of which more timers may be due than were planned.
#[derive(Debug, Default)]
pub(super) struct Patience(BTreeMap<Target, Behind>);

#[derive(Debug)]
struct Behind {
    left: Duration,
    /// Since when it waits, by the monotonic clock.
    since: Option<Duration>,
}

impl Behind {
    /// Counts the wait until now.
    fn charge(&mut self, now: Duration) {
        let waited = self.since.take().map_or(Duration::ZERO, |since| now.saturating_sub(since));
        self.left = self.left.saturating_sub(waited);
    }
}

impl Patience {
    /// Timers of these targets were planned: as many as asked for, or all that were due.
    pub(super) fn planned(&mut self, targets: &[Target], full: bool) {
        for target in targets {
            if !full {
                self.0.remove(target);
            } else if !self.0.contains_key(target) {
                self.0.insert(target.clone(), Behind { left: MAX_WAIT_FOR_ROOM, since: None });
            }
        }
    }

    /// A run of each of these targets started.
    pub(super) fn started<'a>(&mut self, targets: impl Iterator<Item = &'a Target>) {
        for target in targets {
            if let Some(behind) = self.0.get_mut(target) {
                behind.left += EXTRA_WAIT_PER_START;
            }
        }
    }

    /// There is room for these targets at `now`, so they wait no longer.
    pub(super) fn has_room(&mut self, targets: &[Target], now: Duration) {
        for target in targets {
            if let Some(behind) = self.0.get_mut(target) {
                behind.charge(now);
            }
        }
    }

    /// There is no room for these targets at `now`: which are planned all the same, and how long the others wait.
    pub(super) fn has_no_room(&mut self, targets: Vec<Target>, now: Duration) -> (Vec<Target>, Option<Duration>) {
        let mut wait: Option<Duration> = None;
        let mut is_over = |target: &Target| {
            let Some(behind) = self.0.get_mut(target) else { return true };
            behind.charge(now);
            if behind.left.is_zero() {
                return true;
            }
            behind.since = Some(now);
            wait = Some(wait.map_or(behind.left, |wait| wait.min(behind.left)));
            false
        };
        let over = targets.into_iter().filter(|target| is_over(target)).collect();
        (over, wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    fn targets(names: &[&str]) -> Vec<Target> {
        names.iter().map(|name| Target::new(name).unwrap()).collect()
    }

    #[test]
    fn without_a_backlog_nothing_waits() {
        let mut patience = Patience::default();
        patience.planned(&targets(&["mail"]), false);
        assert_eq!(patience.has_no_room(targets(&["mail", "log"]), MILLI), (targets(&["mail", "log"]), None));
    }

    #[test]
    fn a_backlog_waits_a_second_in_all_and_then_no_more_until_it_is_planned() {
        let mut patience = Patience::default();
        patience.planned(&targets(&["mail"]), true);
        assert_eq!(patience.has_no_room(targets(&["mail"]), 100 * MILLI), (vec![], Some(1_000 * MILLI)));
        patience.has_room(&targets(&["mail"]), 700 * MILLI);
        patience.planned(&targets(&["mail"]), true);
        assert_eq!(
            patience.has_no_room(targets(&["mail"]), 2_000 * MILLI),
            (vec![], Some(400 * MILLI)),
            "worked meanwhile"
        );
        assert_eq!(patience.has_no_room(targets(&["mail"]), 2_100 * MILLI), (vec![], Some(300 * MILLI)));
        for now in [2_400, 2_500] {
            assert_eq!(patience.has_no_room(targets(&["mail"]), now * MILLI), (targets(&["mail"]), None));
            patience.planned(&targets(&["mail"]), true);
        }
        patience.planned(&targets(&["mail"]), false);
        patience.planned(&targets(&["mail"]), true);
        assert_eq!(patience.has_no_room(targets(&["mail"]), 9_000 * MILLI), (vec![], Some(1_000 * MILLI)), "a new one");
    }

    #[test]
    fn starts_earn_time_for_their_own_target_only() {
        let mut patience = Patience::default();
        patience.planned(&targets(&["mail", "log"]), true);
        for _ in 0..20_000 {
            patience.started(targets(&["mail"]).iter());
        }
        assert_eq!(patience.has_no_room(targets(&["mail"]), MILLI), (vec![], Some(2_000 * MILLI)));
        assert_eq!(patience.has_no_room(targets(&["log", "mail"]), 2 * MILLI), (vec![], Some(1_000 * MILLI)));
        assert_eq!(
            patience.has_no_room(targets(&["log", "mail"]), 1_002 * MILLI),
            (targets(&["log"]), Some(999 * MILLI))
        );
    }
}
