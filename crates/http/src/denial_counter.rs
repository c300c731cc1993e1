//! Many denials of one address become few entries of the audit trail: the first is written at once, and those of the minute
//! that follows are written as one entry with their number.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use everbell_core::Json;
use everbell_core::store::AuditEntry;
use serde_json::json;

/// How long denials are counted before their number is written.
const COUNT_WINDOW: Duration = Duration::from_mins(1);
/// The most callers that are remembered; what others do meanwhile is only logged.
const MAX_CALLERS: usize = 1_000;

/// Denials that belong together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DenialKey {
    pub network: IpAddr,
    pub action: &'static str,
    pub actor: String,
}

/// A denial, as an entry without its number.
#[derive(Clone, Debug)]
pub(crate) struct Denial {
    pub entry: AuditEntry,
    pub status: u16,
}

impl Denial {
    /// The entry of this many denials, of which this is the last.
    pub(crate) fn counted(self, count: u64) -> AuditEntry {
        let after = json!({ "status": self.status, "count": count });
        AuditEntry { after: Json::parse("after", &after.to_string()).ok(), ..self.entry }
    }
}

/// The next step for a denial.
#[derive(Debug)]
pub(crate) enum Added {
    /// It is the first of its minute: write it.
    First(Box<Denial>),
    /// It was counted. If a wait is given, the caller has to [`DenialCounter::take`] the entry after it.
    Counted { write_after: Option<Duration> },
    /// Too many callers are remembered.
    Full,
}

#[derive(Debug)]
struct Window {
    /// By the monotonic clock.
    until: Duration,
    /// How many came after the first, and the last of them.
    counted: Option<(u64, Denial)>,
}

/// The denials of the last minute.
#[derive(Debug, Default)]
pub(crate) struct DenialCounter {
    windows: Mutex<HashMap<DenialKey, Window>>,
}

impl DenialCounter {
    /// Adds a denial at this time of the monotonic clock.
    pub(crate) fn add(&self, key: &DenialKey, denial: Denial, now: Duration) -> Added {
        let mut windows = self.lock();
        // One that is over and has counted something still waits to be taken.
        windows.retain(|_, window| window.until > now || window.counted.is_some());
        let Some(window) = windows.get_mut(key) else {
            if windows.len() >= MAX_CALLERS {
                return Added::Full;
            }
            windows.insert(key.clone(), Window { until: now.saturating_add(COUNT_WINDOW), counted: None });
            return Added::First(Box::new(denial));
        };
        let before = window.counted.as_ref().map_or(0, |(count, _)| *count);
        window.counted = Some((before + 1, denial));
        Added::Counted { write_after: (before == 0).then(|| window.until.saturating_sub(now)) }
    }

    /// The entry of what was counted since the first denial; the next one is a first one again.
    pub(crate) fn take(&self, key: &DenialKey) -> Option<AuditEntry> {
        let (count, last) = self.lock().remove(key)?.counted?;
        Some(last.counted(count))
    }

    /// The entries of everything that was counted and not taken yet.
    pub(crate) fn take_all(&self) -> Vec<AuditEntry> {
        let counted = std::mem::take(&mut *self.lock()).into_values().filter_map(|window| window.counted);
        counted.map(|(count, last)| last.counted(count)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<DenialKey, Window>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::audit_entry;

    fn key(last: u8, actor: &str) -> DenialKey {
        DenialKey { network: IpAddr::from([192, 0, 2, last]), action: "auth.denied", actor: actor.to_owned() }
    }

    fn denial(object: &str) -> Denial {
        Denial {
            entry: audit_entry::new_entry("nobody", "auth.denied", object.to_owned(), Timestamp::UNIX_EPOCH),
            status: 403,
        }
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn denials_of_a_minute_become_two_entries() {
        let counter = DenialCounter::default();
        assert!(matches!(counter.add(&key(1, "a"), denial("one"), secs(10)), Added::First(_)));
        let waits: Vec<_> = (20..25).map(|at| counter.add(&key(1, "a"), denial(&at.to_string()), secs(at))).collect();
        assert!(matches!(waits[0], Added::Counted { write_after: Some(wait) } if wait == secs(50)), "{waits:?}");
        assert!(waits[1..].iter().all(|one| matches!(one, Added::Counted { write_after: None })), "{waits:?}");
        // Somebody else, and another address, are counted by themselves.
        assert!(matches!(counter.add(&key(1, "b"), denial("x"), secs(30)), Added::First(_)));
        assert!(matches!(counter.add(&key(2, "a"), denial("x"), secs(30)), Added::First(_)));
        // One more after the end of the window, before the entry was taken.
        assert!(matches!(counter.add(&key(1, "a"), denial("late"), secs(71)), Added::Counted { write_after: None }));
        let entry = counter.take(&key(1, "a")).unwrap();
        assert_eq!(entry.after.unwrap().as_str(), r#"{"count":6,"status":403}"#);
        assert_eq!(entry.object, "late");
        assert!(counter.take(&key(1, "a")).is_none());
        assert!(matches!(counter.add(&key(1, "a"), denial("new"), secs(72)), Added::First(_)));
    }

    #[test]
    fn a_quiet_minute_is_forgotten() {
        let counter = DenialCounter::default();
        for at in [0, 60, 120] {
            assert!(matches!(counter.add(&key(1, "a"), denial("x"), secs(at)), Added::First(_)), "{at}");
        }
        counter.add(&key(1, "a"), denial("y"), secs(121));
        assert_eq!(counter.take_all().len(), 1);
        assert!(counter.take_all().is_empty());
    }

    #[test]
    fn the_number_of_callers_is_bounded() {
        let counter = DenialCounter::default();
        for caller in 0..MAX_CALLERS {
            assert!(matches!(counter.add(&key(1, &caller.to_string()), denial("x"), secs(1)), Added::First(_)));
        }
        assert!(matches!(counter.add(&key(2, "one more"), denial("x"), secs(2)), Added::Full));
        assert!(matches!(counter.add(&key(2, "one more"), denial("x"), secs(62)), Added::First(_)));
    }
}
