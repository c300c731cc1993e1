//! Every policy of a job, with everything that forms, the command line and snippets write about it.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::PolicyValues;
use everbell_core::calendar::Calendar;
use everbell_core::cron::Dst;

use super::{Flag, FlagValue, Policy, PolicyKind, Summary};

const OVERLAPS: &str = "While an earlier run is active";
const MISSED: &str = "When slots were missed";
const LIMITS: &str = "Timeout and retries";
const DEPENDENCY: &str = "Only after another job";
const CLOCKS: &str = "When clocks change";
const CALENDARS: &str = "On which days";

/// The titles of the groups of policies, in the order of a form.
pub const GROUPS: [&str; 6] = [OVERLAPS, MISSED, LIMITS, DEPENDENCY, CLOCKS, CALENDARS];

/// Every policy, in the order of the command line.
pub const POLICIES: &[Policy] = &[
    Policy {
        path: "policies.timeout",
        kind: PolicyKind::Duration,
        usual: "15m",
        group: LIMITS,
        label: "Timeout",
        note: "An attempt that takes longer is stopped and fails.",
        flag: Some(flag("timeout", "Stop an attempt that takes longer")),
        summary: Summary::Always("timeout {}"),
        rust: |policies, _| Some(format!(".timeout({})", duration(policies.timeout))),
    },
    Policy {
        path: "policies.overlap",
        kind: PolicyKind::Words(&[
            ("skip", "Skip the slot"),
            ("queue", "Let it wait for its turn"),
            ("replace", "Cancel the active run and take its place"),
            ("allow", "Let both run"),
        ]),
        usual: "skip",
        group: OVERLAPS,
        label: "A slot is due while a run is active",
        note: "A skipped slot is recorded, with the run that blocked it.",
        flag: Some(flag("overlap", "How to handle a slot while an earlier run is active")),
        summary: Summary::Always("overlap {}"),
        rust: |policies, _| Some(format!(".overlap(Overlap::{:?})", policies.overlap)),
    },
    Policy {
        path: "policies.maxConcurrentRuns",
        kind: PolicyKind::Number { min: 1, max: 1_000 },
        usual: "1",
        group: OVERLAPS,
        label: "Concurrent runs",
        note: "This many runs may be active before the rule above applies. Runs of a backfill are counted separately.",
        flag: Some(flag("max-concurrent-runs", "How many runs may be active before `--overlap` applies")),
        summary: Summary::Changed("up to {} runs at once"),
        rust: |policies, _| Some(format!(".max_concurrent_runs({})", policies.max_concurrent_runs)),
    },
    Policy {
        path: "policies.catchUp",
        kind: PolicyKind::Words(&[
            ("once", "Run once, for the latest"),
            ("none", "Run none of them"),
            ("all", "Run each, the oldest first"),
        ]),
        usual: "once",
        group: MISSED,
        label: "No instance was running when slots were due",
        note: "Missed slots that get no run are recorded as gaps.",
        flag: Some(flag("catch-up", "How to handle slots that were missed because no instance was running")),
        summary: Summary::Always("catch-up {}"),
        rust: |policies, _| Some(format!(".catch_up(CatchUp::{:?})", policies.catch_up)),
    },
    Policy {
        path: "policies.catchUpLimit",
        kind: PolicyKind::Number { min: 1, max: 1_000 },
        usual: "100",
        group: MISSED,
        label: "At most this many runs",
        note: "For “run each”: the newest are kept.",
        flag: Some(flag("catch-up-limit", "How many missed slots `--catch-up all` runs at most")),
        summary: Summary::Changed("catch-up limit {}"),
        rust: |policies, _| Some(format!(".catch_up_limit({})", policies.catch_up_limit)),
    },
    Policy {
        path: "policies.catchUpWindow",
        kind: PolicyKind::Duration,
        usual: "any age",
        group: MISSED,
        label: "Only slots younger than",
        note: "Older slots are not run.",
        flag: Some(flag("catch-up-window", "Do not run missed slots that are older than this")),
        summary: Summary::Changed("catch-up window {}"),
        rust: |policies, _| policies.catch_up_window.map(|window| format!(".catch_up_window({})", duration(window))),
    },
    Policy {
        path: "policies.grace",
        kind: PolicyKind::Duration,
        usual: "1m",
        group: MISSED,
        label: "On time within",
        note: "A slot younger than this is late, not missed.",
        flag: Some(flag("grace", "How late a slot may start before it counts as missed")),
        summary: Summary::Changed("grace {}"),
        rust: |policies, _| Some(format!(".grace({})", duration(policies.grace))),
    },
    Policy {
        path: "policies.retry.maxAttempts",
        kind: PolicyKind::Number { min: 1, max: 100 },
        usual: "1",
        group: LIMITS,
        label: "Attempts",
        note: "How many attempts a run has, the first included.",
        flag: Some(Flag { value: FlagValue::Retries, ..flag("retries", "Retry a failed run up to this many times") }),
        summary: Summary::Always("retries {}"),
        rust: |policies, _| Some(retry(policies)),
    },
    Policy {
        path: "policies.retry.initial",
        kind: PolicyKind::Duration,
        usual: "10s",
        group: LIMITS,
        label: "Wait before the second attempt",
        note: "The wait doubles before each further attempt.",
        flag: Some(flag("retry-initial", "Wait this long before the second attempt, then twice as long each time")),
        summary: Summary::Changed("first retry after {}"),
        rust: |policies, _| Some(retry(policies)),
    },
    Policy {
        path: "policies.retry.max",
        kind: PolicyKind::Duration,
        usual: "1h",
        group: LIMITS,
        label: "Longest wait",
        note: "Waits between attempts grow no longer than this.",
        flag: Some(flag("retry-max", "The longest wait between attempts")),
        summary: Summary::Changed("at most {} between attempts"),
        rust: |policies, _| Some(retry(policies)),
    },
    Policy {
        path: "policies.jitter",
        kind: PolicyKind::Duration,
        usual: "none",
        group: LIMITS,
        label: "Jitter",
        note: "Each start is delayed by up to this long, to spread the load.",
        flag: Some(flag("jitter", "Delay each start by up to this duration, always the same for the same slot")),
        summary: Summary::Changed("jitter {}"),
        rust: |policies, _| Some(format!(".jitter({})", duration(policies.jitter))),
    },
    Policy {
        path: "policies.onLeaseLoss",
        kind: PolicyKind::Words(&[
            ("", "Stop it, unless both may run"),
            ("stop", "Stop it before the next run may start"),
            ("continue", "Let it continue, even alongside the next run"),
        ]),
        usual: "",
        group: OVERLAPS,
        label: "An instance cannot reach the database",
        note: "After 45 s by default. Its runs are retried if attempts are left. With SQLite nothing is stopped. A called service that ignores a closed connection, or a Rust handler that blocks its thread, cannot be stopped.",
        flag: Some(flag(
            "on-lease-loss",
            "Stop a run whose instance cannot renew its lease, or let it continue alongside the next one",
        )),
        summary: Summary::Changed("on lease loss {}"),
        rust: |policies, _| policies.on_lease_loss.map(|choice| format!(".on_lease_loss(OnLeaseLoss::{choice:?})")),
    },
    Policy {
        path: "policies.onLost",
        kind: PolicyKind::Words(&[("fail", "Fail the run"), ("retry", "Retry it, if attempts are left")]),
        usual: "fail",
        group: LIMITS,
        label: "A run is lost in a crash",
        note: "By default a run that was lost in a crash is not retried: everbell cannot know how far it got. Retry it only if it may run twice; that needs at least 2 attempts. A run that a shutdown stops is then taken over, which uses up no attempt.",
        flag: Some(flag("on-lost", "Fail a run whose instance crashed or was killed, or retry it within its attempts")),
        summary: Summary::Changed("on loss {}"),
        rust: |policies, _| Some(format!(".on_lost(OnLost::{:?})", policies.on_lost)),
    },
    Policy {
        path: "policies.pauseAfterFailures",
        kind: PolicyKind::Number { min: 1, max: 1_000 },
        usual: "never",
        group: LIMITS,
        label: "Pause after consecutive failures",
        note: "Pause the job after this many consecutive failures.",
        flag: Some(flag("pause-after-failures", "Pause the job after this many consecutive failures")),
        summary: Summary::Changed("pauses after {} failures"),
        rust: |policies, _| policies.pause_after_failures.map(|count| format!(".pause_after_failures({count})")),
    },
    Policy {
        path: "policies.priority",
        kind: PolicyKind::Number { min: -100, max: 100 },
        usual: "0",
        group: LIMITS,
        label: "Priority",
        note: "Waiting runs of a higher priority start first.",
        flag: Some(flag("priority", "Start waiting runs of a higher priority first, from -100 to 100")),
        summary: Summary::Changed("priority {}"),
        rust: |policies, _| Some(format!(".priority({})", policies.priority)),
    },
    Policy {
        path: "policies.dependsOn.jobKey",
        kind: PolicyKind::JobKey,
        usual: "no job",
        group: DEPENDENCY,
        label: "That job must have succeeded",
        note: "Otherwise the slot is skipped.",
        flag: Some(Flag {
            value: FlagValue::JobAndDuration,
            ..flag("depends-on", "Skip a slot unless that job succeeded within this duration")
        }),
        summary: Summary::Changed("depends on {}"),
        rust: depends_on,
    },
    Policy {
        path: "policies.dependsOn.within",
        kind: PolicyKind::Duration,
        usual: "",
        group: DEPENDENCY,
        label: "Within the last",
        note: "Such as 24h.",
        flag: None,
        summary: Summary::Changed("dependency window {}"),
        rust: depends_on,
    },
    Policy {
        path: "policies.dst.gap",
        kind: PolicyKind::Words(&[("shift", "Fire right after the gap"), ("skip", "Do not fire")]),
        usual: "shift",
        group: CLOCKS,
        label: "A local time does not exist",
        note: "When clocks go forward.",
        flag: Some(Flag {
            heading: "When it fires",
            ..flag("dst-gap", "How to handle local times that do not exist when clocks go forward")
        }),
        summary: Summary::Changed("missing local times: {}"),
        rust: |_, dst| Some(format!(".dst_gap(DstGap::{:?})", dst.gap)),
    },
    Policy {
        path: "policies.dst.fold",
        kind: PolicyKind::Words(&[
            ("first", "Fire the first time"),
            ("last", "Fire the second time"),
            ("both", "Fire both times"),
        ]),
        usual: "first",
        group: CLOCKS,
        label: "A local time happens twice",
        note: "When clocks go back.",
        flag: Some(Flag {
            heading: "When it fires",
            ..flag("dst-fold", "Which of two equal local times fires when clocks go back")
        }),
        summary: Summary::Changed("repeated local times: {}"),
        rust: |_, dst| Some(format!(".dst_fold(DstFold::{:?})", dst.fold)),
    },
    Policy {
        path: "policies.calendar.exclude",
        kind: PolicyKind::Names,
        usual: "no calendar",
        group: CALENDARS,
        label: "Not on days of these calendars",
        note: "Names, separated by commas. Excluded slots become gaps and are not caught up.",
        flag: Some(Flag {
            heading: "When it fires",
            ..flag("exclude", "Do not fire on days of these calendars, separated by commas")
        }),
        summary: Summary::Changed("not on {}"),
        rust: |policies, _| Some(calls("exclude", &policies.calendars.exclude)),
    },
    Policy {
        path: "policies.calendar.only",
        kind: PolicyKind::Names,
        usual: "any day",
        group: CALENDARS,
        label: "Only on days of these calendars",
        note: "Names, separated by commas. Excluded days win.",
        flag: Some(Flag {
            heading: "When it fires",
            ..flag("only", "Fire only on days of these calendars, separated by commas")
        }),
        summary: Summary::Changed("only on {}"),
        rust: |policies, _| Some(calls("only", &policies.calendars.only)),
    },
    Policy {
        path: "policies.calendar.roll",
        kind: PolicyKind::Words(&[
            ("skip", "Does not fire"),
            ("next", "Fires on the next allowed day"),
            ("previous", "Fires on the previous allowed day"),
        ]),
        usual: "skip",
        group: CALENDARS,
        label: "A slot on another day",
        note: "It moves to the same local time of an allowed day, at most 31 days away.",
        flag: Some(Flag {
            heading: "When it fires",
            ..flag(
                "roll",
                "How to handle slots on days that calendars exclude: skip them, or move them to an allowed day",
            )
        }),
        summary: Summary::Changed("moved to the {} allowed day"),
        rust: |policies, _| Some(format!(".roll(Roll::{:?})", policies.calendars.roll)),
    },
];

const fn flag(name: &'static str, help: &'static str) -> Flag {
    Flag { name, help, heading: "Policies", value: FlagValue::Plain }
}

fn retry(policies: &PolicyValues) -> String {
    let (initial, max) = (duration(policies.backoff.initial), duration(policies.backoff.max));
    format!(".retry({}, Backoff {{ initial: {initial}, max: {max} }})", policies.max_attempts)
}

fn depends_on(policies: &PolicyValues, _: Dst) -> Option<String> {
    let on = policies.depends_on.as_ref()?;
    Some(format!(".depends_on({:?}, {})", on.job_key.as_str(), duration(on.within)))
}

/// A call for each calendar.
fn calls(method: &str, calendars: &[Arc<Calendar>]) -> String {
    let call = |calendar: &Arc<Calendar>| format!(".{method}({:?})", calendar.name().as_str());
    calendars.iter().map(call).collect::<Vec<_>>().concat()
}

fn duration(span: Duration) -> String {
    match span.subsec_millis() {
        0 => format!("Duration::from_secs({})", span.as_secs()),
        _ => format!("Duration::from_millis({})", span.as_millis()),
    }
}

#[cfg(test)]
mod tests;
