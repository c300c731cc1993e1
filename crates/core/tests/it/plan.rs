//! Golden decisions of `plan`: `tests/golden/plan.txt`.
//!
//! Each case is a block of `word value` lines, and the plan as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use everbell_core::plan::{self, Missed, Plan, PlanContext, RunNow};
use everbell_core::{ActiveRun, GapReason, OrgId, Overlap, RunId, Timer};
use jiff::Timestamp;

use crate::{given, golden};

#[test]
fn decisions_are_those_on_file() {
    golden::compare("plan.txt", decide);
}

#[test]
fn a_fire_moves_to_this_moment_but_not_before_it() {
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let now = at("2026-11-15T12:10:00Z");
    let job = given::job("0 * * * *", "", now);
    let seen = PlanContext::default();
    let slot = Some(at("2026-11-15T13:00:00Z"));
    let (job_id, last_slot_at) = (job.id, now);
    let timer = everbell_core::with!(Timer { next_run_at: slot, ..Timer::new(job_id, last_slot_at) });
    let moved = plan::reschedule(&job, &timer, &seen, now, now).unwrap();
    assert_eq!((moved.next_run_at, moved.rescheduled_from), (Some(now), slot));
    let refused = plan::reschedule(&job, &timer, &seen, at("2026-11-15T12:09:59Z"), now).unwrap_err();
    assert_eq!(refused.to_string(), "nextRunAt: must not be in the past");
}

/// Reads the case, asks the core, and writes the answer down.
fn decide(input: &str) -> String {
    let lines: Vec<&str> = input.lines().filter(|line| !line.starts_with('#')).collect();
    let word = |name: &str| -> Option<&str> {
        lines.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::trim))
    };
    let time = |name: &str| word(name).map(|text| text.parse::<Timestamp>().unwrap());
    let mark = time("mark").unwrap();
    let job = given::job(word("job").unwrap(), word("policies").unwrap_or(""), mark);
    let active = active(word("active").unwrap_or(""));
    let seen = PlanContext { active: &active, upstream_succeeded_at: time("upstream"), org_spec: None, frozen: &[] };
    let org = word("org").map(|org| OrgId::new(org).unwrap());
    let last_local_date = word("last-date").map(|date| date.parse().unwrap());
    let blank = everbell_core::with!(Timer { org, last_local_date, ..Timer::new(job.id, mark) });
    let mut timer = plan::arm(&job, &blank, &seen);
    timer.next_run_at = time("armed").or(timer.next_run_at);
    if let Some(to) = time("moved-to") {
        timer = plan::reschedule(&job, &timer, &seen, to, time("moved-at").unwrap_or(mark)).unwrap();
    }
    let now = time("now").unwrap();
    let (action, argument) = word("do").unwrap_or("plan").split_once(' ').unwrap_or((word("do").unwrap_or("plan"), ""));
    let answer = match action {
        "plan" => Ok(plan::plan(&job, &timer, &seen, now)),
        "resume" => {
            let missed = if argument == "once" { Missed::RunOnce } else { Missed::Skip };
            plan::resume(&job, &plan::disarm(&timer), &seen, missed, GapReason::Paused, now)
        }
        "close" => Ok(plan::close(&job, &timer, &seen, GapReason::Missed, now)),
        "skip" => plan::skip_next(&job, &timer, &seen, argument.parse().unwrap(), "ana", now),
        "run-now" => {
            let id = RunId::by_hand(now, [9; 10]);
            let request =
                RunNow { id, actor: "ana", payload: None, overlap: Overlap::from_word(argument), trace_context: None };
            Ok(plan::run_now(&job, &timer, &seen, &request, now))
        }
        other => panic!("`{other}` is not an action"),
    };
    match answer {
        Ok(plan) => written(&plan, &active),
        Err(invalid) => format!("refused {invalid}\n"),
    }
}

/// `a b* c! d~`: four active runs, the second held, the third asked to stop, the last of a backfill.
fn active(text: &str) -> Vec<ActiveRun> {
    text.split_whitespace()
        .enumerate()
        .map(|(n, word)| ActiveRun {
            id: RunId::by_hand(Timestamp::UNIX_EPOCH, [n as u8; 10]),
            held: word.ends_with('*'),
            cancel_requested: word.ends_with('!'),
            backfill: word.ends_with('~'),
        })
        .collect()
}

fn written(plan: &Plan, active: &[ActiveRun]) -> String {
    let mut names: BTreeMap<RunId, String> = BTreeMap::new();
    for (n, run) in active.iter().enumerate() {
        names.insert(run.id, ["a", "b", "c", "d"][n].to_owned());
    }
    for run in &plan.runs {
        names.insert(run.id, run.slot_at.map_or("by-hand".to_owned(), |slot| slot.to_string()));
    }
    let mut out = String::new();
    let shown = |t: Option<Timestamp>| t.map_or("-".to_owned(), |t| t.to_string());
    for run in &plan.runs {
        write!(out, "run {}", run.slot_at.map_or("by-hand".to_owned(), |slot| slot.to_string())).unwrap();
        match &run.skip {
            None if run.held => out.push_str(" waits"),
            None => out.push_str(" starts"),
            Some(everbell_core::SkipReason::Overlap { blocking }) => {
                write!(out, " skipped: {} is active", names[blocking]).unwrap();
            }
            Some(reason) => write!(out, " skipped: {reason}").unwrap(),
        }
        if run.slot_at.is_some_and(|slot| slot != run.scheduled_at) {
            write!(out, ", moved to {}", run.scheduled_at).unwrap();
        }
        if run.catch_up {
            out.push_str(", late");
        }
        if run.folded > 0 {
            write!(out, ", folds {}", run.folded).unwrap();
        }
        if let Some(date) = run.local_date {
            write!(out, ", local date {date}").unwrap();
        }
        out.push('\n');
    }
    for gap in &plan.gaps {
        writeln!(out, "gap {} .. {} slots={} {}", gap.first_slot_at, gap.last_slot_at, gap.slots, gap.reason).unwrap();
    }
    for id in &plan.cancel {
        writeln!(out, "cancel {}", names[id]).unwrap();
    }
    writeln!(out, "mark {} next {}", plan.timer.last_slot_at, shown(plan.timer.next_run_at)).unwrap();
    if plan.retire {
        out.push_str("retire\n");
    }
    if let Some(error) = &plan.error {
        writeln!(out, "error {error}").unwrap();
    }
    out
}
