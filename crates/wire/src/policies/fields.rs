//! The policies of a job as the API and the configuration file take them.

use everbell_core::calendar::{CalendarNames, Roll};
use everbell_core::cron::{Dst, DstFold, DstGap};
use everbell_core::{Backoff, CatchUp, Draft, OnLeaseLoss, OnLost, Overlap, PolicyValues};

use crate::form::{Field, Form, Kind, TEXT, optional, required};

const RETRY: &[Field] = &[
    optional("maxAttempts", Kind::Integer { min: 1, max: 100 }, "How many attempts a run has. Default: 1."),
    optional(
        "initial",
        Kind::Span,
        "The wait before the second attempt, which doubles with each further attempt. Default: PT10S.",
    ),
    optional("max", Kind::Span, "The longest wait between attempts. Default: PT1H."),
];

const DEPENDS_ON: &[Field] = &[
    required("jobKey", TEXT, "The key of the job that must have succeeded."),
    required("within", Kind::Span, "How long ago its last success may be."),
];

/// How changes to and from daylight saving time are treated.
pub const DST: &[Field] = &[
    optional(
        "gap",
        Kind::Word(&["shift", "skip"]),
        "How local times are handled that are skipped when clocks go forward.",
    ),
    optional(
        "fold",
        Kind::Word(&["first", "last", "both"]),
        "Which of two equal local times fires when clocks go back.",
    ),
];

const NAMES: Kind = Kind::List { of: &TEXT, max: 16 };

/// The calendars of a job or a preview.
pub const CALENDAR: &[Field] = &[
    optional(
        "exclude",
        NAMES,
        "Names of calendars on whose days the job does not fire. They take precedence over `only`.",
    ),
    optional("only", NAMES, "Names of calendars: the job fires only on their days. Default: on all days."),
    optional(
        "roll",
        Kind::Word(&["skip", "next", "previous"]),
        "How slots on other days are handled: they do not fire, or they fire at the same local time on the next or the previous allowed day, at most 31 days away. Only for schedules with at most 24 fixed times of day. Default: `skip`.",
    ),
];

/// The members of `policies`.
pub(crate) const FIELDS: &[Field] = &[
    optional(
        "overlap",
        Kind::Word(&["skip", "queue", "replace", "allow"]),
        "How a slot is handled while an earlier run is active.",
    ),
    optional(
        "maxConcurrentRuns",
        Kind::Integer { min: 1, max: 1_000 },
        "How many runs may be active before `overlap` applies.",
    ),
    optional(
        "catchUp",
        Kind::Word(&["once", "none", "all"]),
        "How slots are handled that were missed because no instance was running.",
    ),
    optional(
        "catchUpLimit",
        Kind::Integer { min: 1, max: 1_000 },
        "How many missed slots are run at most, with `catchUp` `all`.",
    ),
    optional("catchUpWindow", Kind::Span, "Missed slots older than this are not run."),
    optional("grace", Kind::Span, "How late a slot may start before it counts as missed."),
    optional("timeout", Kind::Span, "How long an attempt may take before it is stopped."),
    optional("jitter", Kind::Span, "Delay each start by up to this duration, spread over jobs."),
    optional("retry", Kind::Component("RetryInput", RETRY), "How failed runs are retried."),
    optional(
        "onLeaseLoss",
        Kind::Word(&["stop", "continue"]),
        "Whether to stop a run whose instance cannot reach the database for so long that another instance may start the next run. Default: `stop`, or `continue` if `overlap` is `allow` and `onLost` is `fail`.",
    ),
    optional(
        "onLost",
        Kind::Word(&["fail", "retry"]),
        "Whether to `fail` or `retry` a run whose instance crashed, was killed or lost the database. Default: `fail`, because everbell cannot know how far it got. `retry` retries it within `maxAttempts`, which must be at least 2, with the same idempotency key and a higher attempt number; a stop by a shutdown then uses up no attempt, 20 times at most. `onLeaseLoss` is about something else: whether a running instance stops its own run.",
    ),
    optional(
        "priority",
        Kind::Integer { min: -100, max: 100 },
        "Waiting runs of a higher priority start first, equal ones in the order of their time. Default: 0.",
    ),
    optional(
        "pauseAfterFailures",
        Kind::Integer { min: 1, max: 1_000 },
        "Pause the job after this many consecutive failures.",
    ),
    optional(
        "dependsOn",
        Kind::Component("DependsOnInput", DEPENDS_ON),
        "Skip slots unless another job succeeded recently.",
    ),
    optional("dst", Kind::Component("DstInput", DST), "How changes to and from daylight saving time are treated."),
    optional(
        "calendar",
        Kind::Component("CalendarRulesInput", CALENDAR),
        "Calendars that limit the days on which the job fires. Slots on other days are recorded as gaps, and are neither missed nor caught up, unless `roll` moves them.",
    ),
];

/// Reads `policies` into a draft. Members that are absent or could not be read get their defaults.
pub(crate) fn read(form: &Form<'_>, draft: &mut Draft) {
    let defaults = PolicyValues::default();
    let count = |name: &str, default: u32| form.count(&format!("policies.{name}")).unwrap_or(default);
    let span = |name: &str| form.span(&format!("policies.{name}"));
    draft.policies = PolicyValues {
        overlap: form.word("policies.overlap", Overlap::from_word).unwrap_or_default(),
        max_concurrent_runs: count("maxConcurrentRuns", defaults.max_concurrent_runs),
        catch_up: form.word("policies.catchUp", CatchUp::from_word).unwrap_or_default(),
        catch_up_limit: count("catchUpLimit", defaults.catch_up_limit),
        catch_up_window: span("catchUpWindow"),
        grace: span("grace").unwrap_or(defaults.grace),
        timeout: span("timeout").unwrap_or(defaults.timeout),
        jitter: span("jitter").unwrap_or(defaults.jitter),
        max_attempts: count("retry.maxAttempts", defaults.max_attempts),
        backoff: Backoff {
            initial: span("retry.initial").unwrap_or(defaults.backoff.initial),
            max: span("retry.max").unwrap_or(defaults.backoff.max),
        },
        on_lease_loss: form.word("policies.onLeaseLoss", OnLeaseLoss::from_word),
        on_lost: form.word("policies.onLost", OnLost::from_word).unwrap_or_default(),
        priority: form.integer("policies.priority").and_then(|n| i32::try_from(n).ok()).unwrap_or(defaults.priority),
        pause_after_failures: form.count("policies.pauseAfterFailures"),
        // Its key is checked with the draft, as are the names of calendars.
        depends_on: None,
        calendars: defaults.calendars,
    };
    let names = |path: &str| form.list(path).into_iter().map(str::to_owned).collect::<Vec<_>>();
    draft.calendars = Some(CalendarNames {
        exclude: names("policies.calendar.exclude"),
        only: names("policies.calendar.only"),
        roll: form.word("policies.calendar.roll", Roll::from_word).unwrap_or_default(),
    });
    draft.depends_on = form
        .text("policies.dependsOn.jobKey")
        .zip(span("dependsOn.within"))
        .map(|(key, within)| (key.to_owned(), within));
    draft.dst = Dst {
        gap: form.word("policies.dst.gap", DstGap::from_word).unwrap_or_default(),
        fold: form.word("policies.dst.fold", DstFold::from_word).unwrap_or_default(),
    };
}
