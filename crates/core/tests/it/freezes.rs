//! Freezes: a slot of a freeze has one outcome, also if its fire was moved, and a one-time job is never lost.

use std::time::Duration;

use everbell_core::FrozenSpan;
use everbell_core::alert::{Deadline, JobFacts, Kind, Rule, decide};
use everbell_core::change::{self, Edit, JobView};
use everbell_core::plan::{self, Plan, PlanContext};
use everbell_core::{Definition, GapReason, Job, JobId, Timer};
use jiff::Timestamp;

use crate::alert::{facts, rule};
use crate::given;

fn at(text: &str) -> Timestamp {
    format!("2026-11-{text}:00Z").parse().unwrap()
}

fn armed(job: &Definition, mark: &str) -> Timer {
    let blank = Timer::new(job.id, at(mark));
    plan::arm(job, &blank, &PlanContext::default())
}

fn planned(job: &Definition, timer: &Timer, frozen: &[FrozenSpan], now: &str) -> Plan {
    plan::plan(job, timer, &PlanContext { frozen, ..PlanContext::default() }, at(now))
}

/// Slots with their outcome, in order.
fn outcomes(plan: &Plan) -> Vec<(Timestamp, &'static str)> {
    let runs = plan.runs.iter().filter_map(|run| Some((run.slot_at?, "run")));
    let gaps = plan.gaps.iter().map(|gap| {
        assert_eq!((gap.slots, gap.first_slot_at), (1, gap.last_slot_at), "these slots are days apart");
        (gap.first_slot_at, gap.reason.as_str())
    });
    let mut all: Vec<_> = runs.chain(gaps).collect();
    all.sort_unstable();
    all
}

#[test]
fn a_slot_that_was_moved_out_of_a_freeze_has_one_outcome() {
    let job = given::job("0 2 * * *", "catchUp=once", at("01T00:00"));
    // One night, with one slot.
    let frozen = [FrozenSpan { from: at("13T18:00"), until: at("14T08:00") }];
    let timer = armed(&job, "13T02:00");
    let moved = plan::reschedule(&job, &timer, &PlanContext::default(), at("14T09:00"), at("13T12:00")).unwrap();
    let plan = planned(&job, &moved, &frozen, "14T09:00");
    assert_eq!(outcomes(&plan), [(at("14T02:00"), "run")]);
    assert_eq!(plan.timer.next_run_at, Some(at("15T02:00")));
    // Moved into the freeze it is a gap, once.
    let moved = plan::reschedule(&job, &timer, &PlanContext::default(), at("14T07:00"), at("13T12:00")).unwrap();
    let plan = planned(&job, &moved, &frozen, "14T07:00");
    assert_eq!(outcomes(&plan), [(at("14T02:00"), GapReason::Frozen.as_str())]);
}

#[test]
fn a_frozen_gap_continues_the_one_of_the_same_freeze() {
    let job = given::job("*/10 * * * *", "", at("01T00:00"));
    let frozen = |from: &str, until: &str| FrozenSpan { from: at(from), until: at(until) };
    let earlier = |job: &Definition, spans: &[FrozenSpan], mark: &str, now: &str| {
        let plan = planned(job, &armed(job, mark), spans, now);
        let (frozen, others): (Vec<_>, Vec<_>) =
            plan.gaps_to_write().partition(|(gap, _)| gap.reason == GapReason::Frozen);
        assert!(others.iter().chain(&frozen[1..]).all(|(_, earlier)| earlier.is_none()), "{:?}", plan.gaps);
        frozen[0].1.map(|earlier| (earlier.first_slot_at, earlier.last_slot_at))
    };
    let one = [frozen("14T01:00", "14T02:00")];
    assert_eq!(earlier(&job, &one, "14T00:50", "14T01:00"), None, "its first slot");
    assert_eq!(earlier(&job, &one, "14T01:00", "14T01:10"), Some((at("14T01:00"), at("14T01:00"))));
    assert_eq!(earlier(&job, &one, "14T01:20", "14T02:30"), Some((at("14T01:00"), at("14T01:20"))), "found later");
    let two = [one[0], frozen("14T02:20", "14T03:00")];
    assert_eq!(earlier(&job, &two, "14T01:50", "14T02:40"), None, "slots between them fire");
    assert_eq!(earlier(&job, &two, "14T02:20", "14T02:30"), Some((at("14T02:20"), at("14T02:20"))));
    let new = everbell_core::with!(Definition { created_at: at("14T01:12"), ..job.clone() });
    assert_eq!(earlier(&new, &one, "14T01:12", "14T01:20"), None, "its first slot is not that of the freeze");
    assert_eq!(earlier(&new, &one, "14T01:20", "14T01:30"), Some((at("14T01:20"), at("14T01:20"))));
}

#[test]
fn a_one_time_job_that_waits_survives_an_edit() {
    let job = given::job("once 2026-11-14T01:00:00Z", "", at("13T00:00"));
    let frozen = [FrozenSpan { from: at("14T00:30"), until: at("14T03:00") }];
    let timer = armed(&job, "13T00:00");
    let waits = planned(&job, &timer, &frozen, "14T01:00");
    assert_eq!((outcomes(&waits), waits.timer.next_run_at), (vec![], Some(at("14T03:00"))));
    let new = change::create(job.clone());
    let view = JobView {
        job: Job::new(new.definition, new.state),
        timer: waits.timer,
        org: None,
        active: Vec::new(),
        upstream_succeeded_at: None,
    };
    let edit = Edit { description: Some("edited".to_owned()), ..Edit::default() };
    let id = JobId::new(at("14T02:00"), [9; 10]);
    let changed = change::new_version(&view, edit, id, true, "ana", at("14T02:00")).unwrap();
    assert!(changed.plan.gaps.is_empty(), "{:?}", changed.plan.gaps);
    let heir = changed.successor.unwrap();
    let plan = planned(&heir.definition, &heir.timer.unwrap(), &frozen, "14T03:00");
    assert_eq!(outcomes(&plan), [(at("14T01:00"), "run")]);
}

#[test]
fn no_success_is_expected_of_frozen_slots() {
    let deadline = Some(Deadline::Within(Duration::from_hours(1)));
    let rules = [Rule { deadline, ..rule(&[Kind::NoSuccess]) }];
    let mut late = facts(0);
    late.last_success_at = Some(at("15T01:00"));
    let told = |facts: &JobFacts| decide(&rules, std::slice::from_ref(facts), &[], &[], at("15T04:00")).problems.len();
    assert_eq!(told(&late), 1);
    late.frozen = vec![FrozenSpan { from: at("15T01:00"), until: at("15T06:00") }];
    assert_eq!(told(&late), 0);
}
