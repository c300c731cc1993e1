//! [`Policies`]: what a job wants when slots are late, runs overlap, handlers fail.

use std::fmt::Display;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::calendar::{Calendar, CalendarRules};
use crate::ids::{Invalid, JobKey};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

/// How old a slot may be and still count as on time.
pub const DEFAULT_GRACE: Duration = MINUTE;
/// How long a run may take before it is stopped.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(15);
/// How many missed slots `catchUp: all` runs at the most.
pub const DEFAULT_CATCH_UP_LIMIT: u32 = 100;
/// The largest `catchUpLimit`, so that one plan can hold it.
pub const MAX_CATCH_UP_LIMIT: u32 = 1_000;
/// The highest `priority`; the lowest is its negative.
pub const MAX_PRIORITY: i32 = 100;

/// A word of the API, the configuration and the database for each choice of an enum.
macro_rules! words {
    ($name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $name {
            /// Every choice, in the order in which they are documented.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// The words of all choices.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word used in the API, the configuration and the database.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }

            /// The choice of this word.
            pub fn from_word(word: &str) -> Option<$name> {
                Self::ALL.iter().copied().find(|choice| choice.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;

/// How a slot is treated while earlier runs of the job are still active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Overlap {
    /// The slot is recorded as a `skipped` run that names the blocking one.
    #[default]
    Skip,
    /// The slot waits for its turn; at most one waits, the others are skipped.
    Queue,
    /// The active run is canceled and the slot takes its place when that has ended.
    Replace,
    /// Runs may overlap without limit.
    Allow,
}
words!(Overlap { Skip = "skip", Queue = "queue", Replace = "replace", Allow = "allow" });

/// How slots are treated that were missed because no scheduler was running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CatchUp {
    /// One run, for the latest slot; the others are folded into it. Then on from now.
    #[default]
    Once,
    /// No run.
    None,
    /// A run for each, oldest first, one after the other, within limit and window.
    All,
}
words!(CatchUp { Once = "once", None = "none", All = "all" });

/// How a handler is treated whose instance cannot renew the lease of its run. The instance still lives and decides
/// about its own handler; [`OnLost`] is about a run whose instance is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnLeaseLoss {
    /// The instance stops it before the lease ends, so that no other run of the job starts beside it.
    Stop,
    /// It goes on, and may run beside the next run of the job. If the lease was lost, its outcome is not recorded.
    Continue,
}
words!(OnLeaseLoss { Stop = "stop", Continue = "continue" });

/// The fate of a run whose instance was lost: it crashed, was killed, or did not reach the database until the lease
/// ended. Others decide this about the run, after the fact; [`OnLeaseLoss`] is about the handler on an instance that
/// lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnLost {
    /// The run fails with the code `lost` and is not retried, whatever `maxAttempts` says: everbell cannot know how far its
    /// handler came, or whether it is still at work.
    #[default]
    Fail,
    /// The run is retried within `maxAttempts`, after the backoff, with the same idempotency key and a higher fence.
    /// Its handler may have done all, some or none of its work before, so it has to be idempotent. A run that is
    /// stopped by a shutdown is taken over at once, and that stop uses up no attempt.
    Retry,
}
words!(OnLost { Fail = "fail", Retry = "retry" });

/// Waits between the attempts of a run: `initial`, then twice as long each time, up to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Backoff {
    /// Before the second attempt.
    pub initial: Duration,
    /// At the most.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff { initial: Duration::from_secs(10), max: Duration::from_hours(1) }
    }
}

impl Backoff {
    /// The wait after the attempt of this number (the first is 1).
    pub fn after(&self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        self.initial.saturating_mul(1 << doublings).min(self.max)
    }
}

/// "Only if that job succeeded within the last …".
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dependency {
    /// The job that must have succeeded.
    pub job_key: JobKey,
    /// How recently.
    pub within: Duration,
}

/// The wishes of a job, before they are checked. The defaults are those of every job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PolicyValues {
    /// Default [`Overlap::Skip`].
    pub overlap: Overlap,
    /// How many runs may be active before `overlap` is asked: default 1, at most 1,000.
    pub max_concurrent_runs: u32,
    /// Default [`CatchUp::Once`].
    pub catch_up: CatchUp,
    /// For [`CatchUp::All`]: default 100, at most 1,000. The newest are kept.
    pub catch_up_limit: u32,
    /// Slots older than this are not caught up: default none, at least 1 s.
    pub catch_up_window: Option<Duration>,
    /// A slot younger than this is on time: default 60 s, at most 1 day.
    pub grace: Duration,
    /// A run that takes longer is stopped: default 15 min, 1 s to 30 days.
    pub timeout: Duration,
    /// Each slot is delayed by a share of this: default 0, at most 1 day.
    pub jitter: Duration,
    /// How often a run is tried: default 1, at most 100.
    pub max_attempts: u32,
    /// The waits between attempts: from 1 s to 1 day.
    pub backoff: Backoff,
    /// The number of consecutive failures that pauses the job: default never, 1 to 1,000.
    pub pause_after_failures: Option<u32>,
    /// Another job that must have succeeded: default none, within 1 s to 366 days.
    pub depends_on: Option<Dependency>,
    /// Default [`OnLeaseLoss::Stop`] where `overlap` forbids two runs at once or `on_lost` is [`OnLost::Retry`], else
    /// [`OnLeaseLoss::Continue`].
    pub on_lease_loss: Option<OnLeaseLoss>,
    /// Default [`OnLost::Fail`]. [`OnLost::Retry`] needs a `max_attempts` of at least 2.
    pub on_lost: OnLost,
    /// Waiting runs of a higher priority start first: default 0, from -100 to 100.
    pub priority: i32,
    /// The calendars that limit its days: default none.
    pub calendars: CalendarRules,
}

impl Default for PolicyValues {
    fn default() -> Self {
        PolicyValues {
            overlap: Overlap::default(),
            max_concurrent_runs: 1,
            catch_up: CatchUp::default(),
            catch_up_limit: DEFAULT_CATCH_UP_LIMIT,
            catch_up_window: None,
            grace: DEFAULT_GRACE,
            timeout: DEFAULT_TIMEOUT,
            jitter: Duration::ZERO,
            max_attempts: 1,
            backoff: Backoff::default(),
            pause_after_failures: None,
            depends_on: None,
            on_lease_loss: None,
            on_lost: OnLost::default(),
            priority: 0,
            calendars: CalendarRules::default(),
        }
    }
}

/// Checked policies. Read them like [`PolicyValues`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Policies(PolicyValues);

impl Policies {
    /// The values, if all of them are possible; else every problem at once.
    pub fn new(values: PolicyValues) -> Result<Policies, Vec<Invalid>> {
        let mut problems = Problems(Vec::new());
        problems.count("policies.maxConcurrentRuns", Some(values.max_concurrent_runs), 1, 1_000);
        problems.count("policies.catchUpLimit", Some(values.catch_up_limit), 1, MAX_CATCH_UP_LIMIT);
        problems.count("policies.retry.maxAttempts", Some(values.max_attempts), 1, 100);
        problems.count("policies.pauseAfterFailures", values.pause_after_failures, 1, 1_000);
        problems.time("policies.catchUpWindow", values.catch_up_window, SECOND, 3_660 * DAY);
        problems.time("policies.grace", Some(values.grace), Duration::ZERO, DAY);
        problems.time("policies.timeout", Some(values.timeout), SECOND, 30 * DAY);
        problems.time("policies.jitter", Some(values.jitter), Duration::ZERO, DAY);
        problems.time("policies.retry.initial", Some(values.backoff.initial), SECOND, DAY);
        problems.time("policies.retry.max", Some(values.backoff.max), SECOND, DAY);
        let within = values.depends_on.as_ref().map(|dependency| dependency.within);
        problems.time("policies.dependsOn.within", within, SECOND, 366 * DAY);
        problems.count("policies.priority", Some(values.priority), -MAX_PRIORITY, MAX_PRIORITY);
        problems.lost(values.on_lost, values.max_attempts);
        if problems.0.is_empty() { Ok(Policies(values)) } else { Err(problems.0) }
    }

    /// The values that differ from the defaults, as text in a fixed order. A policy that a later release adds does not
    /// change what is said about jobs that do not use it.
    pub fn changed(&self) -> Vec<(&'static str, String)> {
        let millis = |time: Duration| time.as_millis().to_string();
        let text = |values: &PolicyValues| {
            [
                ("overlap", values.overlap.to_string()),
                ("maxConcurrentRuns", values.max_concurrent_runs.to_string()),
                ("catchUp", values.catch_up.to_string()),
                ("catchUpLimit", values.catch_up_limit.to_string()),
                ("catchUpWindow", values.catch_up_window.map_or(String::new(), millis)),
                ("grace", millis(values.grace)),
                ("timeout", millis(values.timeout)),
                ("jitter", millis(values.jitter)),
                ("maxAttempts", values.max_attempts.to_string()),
                ("retry.initial", millis(values.backoff.initial)),
                ("retry.max", millis(values.backoff.max)),
                ("pauseAfterFailures", values.pause_after_failures.map_or(String::new(), |n| n.to_string())),
                (
                    "dependsOn",
                    values
                        .depends_on
                        .as_ref()
                        .map_or(String::new(), |on| format!("{} {}", millis(on.within), on.job_key)),
                ),
                ("onLeaseLoss", values.on_lease_loss.map_or(String::new(), |choice| choice.to_string())),
                ("onLost", values.on_lost.to_string()),
                ("priority", values.priority.to_string()),
                ("calendar", values.calendars.describe()),
            ]
        };
        let defaults = text(&PolicyValues::default());
        text(&self.0).into_iter().zip(defaults).filter(|(own, default)| own != default).map(|(own, _)| own).collect()
    }

    /// The same policies with the days of the current calendars. A calendar that is not there is refused.
    pub fn with_calendars(&self, current: &[Arc<Calendar>]) -> Result<Policies, Invalid> {
        let calendars = self.calendars.resolved(current)?;
        Ok(Policies(PolicyValues { calendars, ..self.0.clone() }))
    }

    /// Returns how to treat a handler whose instance cannot renew its lease: the job's own choice, or what its
    /// `overlap` and `on_lost` imply.
    pub fn lease_loss(&self) -> OnLeaseLoss {
        self.on_lease_loss.unwrap_or(match (self.overlap, self.on_lost) {
            // Only other runs of the job may work beside it, and they may anyway.
            (Overlap::Allow, OnLost::Fail) => OnLeaseLoss::Continue,
            (Overlap::Allow, OnLost::Retry) | (Overlap::Skip | Overlap::Queue | Overlap::Replace, _) => {
                OnLeaseLoss::Stop
            }
        })
    }

    /// Returns the reason to pause the job after this many consecutive failures, if the policy says so.
    pub fn pause_reason(&self, consecutive_failures: u32) -> Option<String> {
        let limit = self.pause_after_failures?;
        (consecutive_failures >= limit).then(|| format!("paused after {consecutive_failures} failures in a row"))
    }
}

impl Deref for Policies {
    type Target = PolicyValues;

    fn deref(&self) -> &PolicyValues {
        &self.0
    }
}

struct Problems(Vec<Invalid>);

impl Problems {
    fn count<N: Copy + PartialOrd + Display>(&mut self, field: &'static str, value: Option<N>, min: N, max: N) {
        if let Some(value) = value.filter(|value| !(min..=max).contains(value)) {
            self.0.push(Invalid::new(field, format!("must be from {min} to {max}, not {value}")));
        }
    }

    /// A single attempt leaves none for a run that was lost, so the choice would silently do nothing.
    fn lost(&mut self, on_lost: OnLost, max_attempts: u32) {
        if on_lost == OnLost::Retry && max_attempts == 1 {
            let reason = "`retry` needs at least 2 attempts, and `policies.retry.maxAttempts` is 1: allow more, or choose `fail`";
            self.0.push(Invalid::new("policies.onLost", reason));
        }
    }

    fn time(&mut self, field: &'static str, value: Option<Duration>, min: Duration, max: Duration) {
        let Some(value) = value else { return };
        if !(min..=max).contains(&value) {
            self.0.push(Invalid::new(
                field,
                format!("must be from {} s to {} s, not {value:?}", min.as_secs(), max.as_secs()),
            ));
        } else if value.subsec_nanos() % 1_000_000 != 0 {
            self.0.push(Invalid::new(field, "must be whole milliseconds"));
        }
    }
}

#[cfg(test)]
mod tests;
