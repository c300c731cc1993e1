//! Everbell and the cron crates it is measured against, each used as its documentation says and with its own types for
//! time, made before the clock runs.

use std::hint::black_box;
use std::str::FromStr;

use chrono::TimeZone;
use everbell_core::cron::Expression;
use everbell_core::{Spec, Zone};
use jiff::Timestamp;

use crate::measure::Workload;

/// How many times are asked for when walking on from a start.
pub(crate) const STEPS: usize = 10;

/// An expression in the two dialects there are.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) expression: &'static str,
    /// For the crate `cron`: seconds first, and Sunday is 1.
    pub(crate) cron_dialect: &'static str,
    pub(crate) zone: &'static str,
}

/// One crate with one case.
pub(crate) struct Rival {
    pub(crate) name: &'static str,
    /// The next time from each start, to see which answers differ.
    pub(crate) answers: Vec<Option<i64>>,
    /// The next time from each start.
    pub(crate) next: Workload<'static>,
    /// The next [`STEPS`] times from some starts.
    pub(crate) walk: Workload<'static>,
    pub(crate) parse: Workload<'static>,
}

/// Everbell comes first.
pub(crate) fn all(case: Case, starts: &[i64]) -> Vec<Rival> {
    let cron = if case.zone == "UTC" {
        cron(case, starts, &chrono::Utc)
    } else {
        cron(case, starts, &chrono_tz::Tz::from_str(case.zone).expect("a known zone"))
    };
    vec![everbell(case, starts), cron, croner(case, starts), cronexpr(case, starts)]
}

/// Makes the passes out of two questions: the next time, and the last of the next few.
fn rival<S: Clone + 'static>(
    name: &'static str,
    starts: Vec<S>,
    next: impl Fn(&S) -> Option<i64> + 'static,
    walk: impl Fn(&S) -> Option<i64> + 'static,
    parse: impl Fn() + 'static,
) -> Rival {
    let answers = starts.iter().map(&next).collect();
    let some: Vec<S> = starts.iter().step_by(STEPS).cloned().collect();
    Rival {
        name,
        answers,
        walk: Workload {
            items: (some.len() * STEPS) as u32,
            pass: Box::new(move || some.iter().map(|start| walk(start).unwrap_or(0)).fold(0, i64::wrapping_add)),
        },
        next: Workload {
            items: starts.len() as u32,
            pass: Box::new(move || starts.iter().map(|start| next(start).unwrap_or(0)).fold(0, i64::wrapping_add)),
        },
        parse: Workload {
            items: 1,
            pass: Box::new(move || {
                parse();
                0
            }),
        },
    }
}

pub(crate) fn everbell_spec(expression: &str, zone: &str) -> Spec {
    let expression = Expression::parse(expression).expect("a valid expression");
    Spec::recurring(expression, Zone::get(zone).expect("a known zone"), Timestamp::UNIX_EPOCH)
}

fn everbell(case: Case, starts: &[i64]) -> Rival {
    let spec = everbell_spec(case.expression, case.zone);
    let same = spec.clone();
    rival(
        "everbell",
        starts.iter().map(|start| instant(*start)).collect(),
        move |start| spec.next_after(*start).map(Timestamp::as_second),
        move |start| same.slots_after(*start).nth(STEPS - 1).map(Timestamp::as_second),
        move || drop(black_box(Expression::parse(black_box(case.expression)))),
    )
}

fn cron<Z: TimeZone + 'static>(case: Case, starts: &[i64], zone: &Z) -> Rival {
    let schedule = ::cron::Schedule::from_str(case.cron_dialect).expect("a valid expression");
    let same = schedule.clone();
    rival(
        "cron",
        starts.iter().map(|start| zone.timestamp_opt(*start, 0).unwrap()).collect(),
        move |start| schedule.after(start).next().map(|found| found.timestamp()),
        move |start| same.after(start).nth(STEPS - 1).map(|found| found.timestamp()),
        move || drop(black_box(::cron::Schedule::from_str(black_box(case.cron_dialect)))),
    )
}

/// With jiff's types, which it is a little faster with than with chrono's.
fn croner(case: Case, starts: &[i64]) -> Rival {
    let pattern = ::croner::Cron::from_str(case.expression).expect("a valid expression");
    let same = pattern.clone();
    let zone = Zone::get(case.zone).expect("a known zone");
    rival(
        "croner",
        starts.iter().map(|start| instant(*start).to_zoned(zone.as_jiff().clone())).collect(),
        move |start| pattern.find_next_occurrence(start, false).ok().map(|found| found.timestamp().as_second()),
        move |start| same.iter_after(start.clone()).nth(STEPS - 1).map(|found| found.timestamp().as_second()),
        move || drop(black_box(::croner::Cron::from_str(black_box(case.expression)))),
    )
}

fn cronexpr(case: Case, starts: &[i64]) -> Rival {
    let text = format!("{} {}", case.expression, case.zone);
    let crontab = ::cronexpr::parse_crontab(&text).expect("a valid expression");
    let same = crontab.clone();
    rival(
        "cronexpr",
        starts.iter().map(|start| instant(*start)).collect(),
        move |start| crontab.find_next(*start).ok().map(|found| found.timestamp().as_second()),
        move |start| {
            let mut found = same.iter_after(*start).ok()?.filter_map(Result::ok);
            found.nth(STEPS - 1).map(|found| found.timestamp().as_second())
        },
        move || drop(black_box(::cronexpr::parse_crontab(black_box(&text)))),
    )
}

fn instant(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a second of our century")
}
