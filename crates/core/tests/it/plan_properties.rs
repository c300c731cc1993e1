//! Properties of every plan: each slot has one outcome, the mark never goes back, equal input gives equal output.

use std::collections::BTreeMap;

use everbell_core::plan::{self, Missed, Plan, PlanContext};
use everbell_core::{ActiveRun, CatchUp, Definition, GapReason, Overlap, RunId, Spec, Timer};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::given;

const SCHEDULES: [&str; 12] = [
    "* * * * *",
    "*/5 * * * *",
    "* * * * * *",
    "*/10 * * * * *",
    "0 * * * *",
    "30 2 * * * in America/New_York",
    "*/20 1,2 * * * in Europe/London",
    "15 2 * * 0 in Australia/Lord_Howe",
    "0 0 1 * * in Africa/Cairo",
    "@every 90s",
    "@every 7h",
    "once 2027-03-14T07:00:00Z",
];

prop_compose! {
    fn policies()(
        overlap in prop::sample::select(Overlap::ALL),
        catch_up in prop::sample::select(CatchUp::ALL),
        limit in 1..=20_u32,
        window in prop::option::of(1..=100_000_u32),
        grace in 0..=300_u32,
        jitter in prop_oneof![Just(0), 1..=90_u32],
        max in 1..=3_u32,
        skip in any::<bool>(),
    ) -> String {
        let window = window.map_or(String::new(), |window| format!("window={window}"));
        let gap = if skip { "skip" } else { "shift" };
        format!("overlap={overlap} catchUp={catch_up} limit={limit} {window} grace={grace} jitter={jitter} max={max} dstGap={gap}")
    }
}

/// A schedule, policies, a mark near a DST change, how far from it now is, and the number of active runs.
fn case() -> impl Strategy<Value = (&'static str, String, Timestamp, SignedDuration, u8)> {
    let mark = prop_oneof![Just("2027-03-14T06:00:00Z"), Just("2026-11-01T04:30:00Z"), Just("2026-07-01T00:00:00Z")];
    let ahead = prop_oneof![0..=400_i64, 0..=20_000_i64, 0..=40_000_000_i64];
    (prop::sample::select(&SCHEDULES[..]), policies(), mark, -3_600..3_600_i64, ahead, 0..=4_u8).prop_map(
        |(schedule, policies, mark, shift, ahead, active)| {
            let mark = mark.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(shift);
            (schedule, policies, mark, SignedDuration::from_millis(ahead * 1_000 + 137), active)
        },
    )
}

fn armed(job: &Definition, mark: Timestamp) -> Timer {
    let blank = Timer::new(job.id, mark);
    plan::arm(job, &blank, &PlanContext::default())
}

fn active(count: u8) -> Vec<ActiveRun> {
    let run = |n| ActiveRun {
        id: RunId::by_hand(Timestamp::UNIX_EPOCH, [n; 10]),
        held: n > 2,
        cancel_requested: n == 2,
        backfill: n > 3,
    };
    (0..count).map(run).collect()
}

/// Every slot between the old and the new mark is in exactly one run or gap, and nothing else is.
fn account(spec: &Spec, from: Timestamp, plan: &Plan) {
    let to = plan.timer.last_slot_at;
    let mut in_runs: BTreeMap<Timestamp, usize> = BTreeMap::new();
    for slot in plan.runs.iter().filter_map(|run| run.slot_at) {
        *in_runs.entry(slot).or_default() += 1;
    }
    let gaps: Vec<_> = plan.gaps.iter().filter(|gap| gap.reason != GapReason::DstGap).collect();
    let total = in_runs.len() as u64 + gaps.iter().map(|gap| gap.slots).sum::<u64>();
    assert_eq!(total, spec.count_between(from, to), "every slot is counted once");
    for gap in &gaps {
        assert!(spec.matches(gap.first_slot_at) && spec.matches(gap.last_slot_at), "a gap begins and ends with a slot");
        let before = gap.first_slot_at - SignedDuration::from_micros(1);
        assert_eq!(spec.count_between(before, gap.last_slot_at), gap.slots);
    }
    for slot in spec.slots_after(from).take_while(|slot| *slot <= to).take(3_000) {
        let gaps = gaps.iter().filter(|gap| (gap.first_slot_at..=gap.last_slot_at).contains(&slot)).count();
        assert_eq!(in_runs.get(&slot).copied().unwrap_or(0) + gaps, 1, "{slot} has one outcome");
    }
    let skipped: Vec<_> =
        plan.gaps.iter().filter(|gap| gap.reason == GapReason::DstGap).map(|gap| gap.first_slot_at).collect();
    assert_eq!(skipped, spec.dst_skipped_between(from, to), "every skipped DST gap is told once");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn every_slot_has_exactly_one_outcome((schedule, policies, mark, ahead, others) in case()) {
        let job = given::job(schedule, &policies, mark);
        let spec = job.spec.as_ref().unwrap();
        let active = active(others);
        let seen = PlanContext { active: &active, ..PlanContext::default() };
        let now = mark + ahead;
        let mut timer = armed(&job, mark);
        // A plan that had to stop at its limit leaves the timer due; a few rounds finish any case.
        for _ in 0..5 {
            let plan = plan::plan(&job, &timer, &seen, now);
            prop_assert_eq!(&plan, &plan::plan(&job, &timer, &seen, now), "the same question has one answer");
            account(spec, timer.last_slot_at, &plan);
            prop_assert!(plan.timer.last_slot_at >= timer.last_slot_at, "the mark never goes back");
            prop_assert!(plan.timer.next_run_at.is_none_or(|next| next > plan.timer.last_slot_at));
            prop_assert!(plan.runs.len() <= plan::MAX_RUNS_PER_PLAN);
            prop_assert!(plan.runs.iter().all(|run| run.scheduled_at <= now));
            timer = plan.timer;
            if timer.next_run_at.is_none_or(|next| next > now) {
                break;
            }
        }
        prop_assert!(timer.next_run_at.is_none_or(|next| next > now), "nothing that is due is left behind");
        let again = plan::plan(&job, &timer, &seen, now);
        prop_assert_eq!(again, Plan::nothing(&timer), "a plan that was carried out leaves nothing to do");
    }

    #[test]
    fn catch_up_stays_within_its_bounds((schedule, policies, mark, ahead, _) in case()) {
        let job = given::job(schedule, &policies, mark);
        let now = mark + ahead;
        let plan = plan::plan(&job, &armed(&job, mark), &PlanContext::default(), now);
        let late = plan.runs.iter().filter(|run| run.catch_up).count();
        match job.policies.catch_up {
            CatchUp::None => prop_assert_eq!(late, 0),
            CatchUp::Once => prop_assert!(late <= 1 && (late == 0 || plan.runs.len() == 1)),
            CatchUp::All => prop_assert!(late as u32 <= job.policies.catch_up_limit),
        }
        if let Some(window) = job.policies.catch_up_window {
            let window = SignedDuration::try_from(window).unwrap();
            prop_assert!(plan.runs.iter().filter(|run| run.catch_up).all(|run| run.scheduled_at > now - window));
        }
    }

    #[test]
    fn no_more_runs_start_than_the_overlap_policy_allows((schedule, policies, mark, ahead, others) in case()) {
        let job = given::job(schedule, &policies, mark);
        let active = active(others);
        let seen = PlanContext { active: &active, ..PlanContext::default() };
        let plan = plan::plan(&job, &armed(&job, mark), &seen, mark + ahead);
        let starts = plan.runs.iter().filter(|run| run.skip.is_none() && !run.held).count();
        let waits = plan.runs.iter().filter(|run| run.skip.is_none() && run.held).count();
        if job.policies.overlap != Overlap::Allow {
            let room = (job.policies.max_concurrent_runs as usize).saturating_sub(active.iter().filter(|run| !run.backfill).count());
            prop_assert!(starts <= room, "{starts} start, {room} may");
        }
        if job.policies.catch_up != CatchUp::All && job.policies.overlap == Overlap::Queue {
            prop_assert!(waits <= 1);
        }
        prop_assert!(plan.cancel.iter().all(|id| active.iter().any(|run| run.id == *id && !run.cancel_requested && !run.backfill)));
        prop_assert!(plan.cancel.is_empty() || job.policies.overlap == Overlap::Replace);
    }

    #[test]
    fn resume_and_close_leave_nothing_unaccounted((schedule, policies, mark, ahead, _) in case(), once in any::<bool>()) {
        let job = given::job(schedule, &policies, mark);
        let spec = job.spec.as_ref().unwrap();
        let (timer, now) = (armed(&job, mark), mark + ahead);
        let missed = if once { Missed::RunOnce } else { Missed::Skip };
        let resumed = plan::resume(&job, &plan::disarm(&timer), &PlanContext::default(), missed, GapReason::Paused, now).unwrap();
        account(spec, mark, &resumed);
        prop_assert!(resumed.runs.len() <= usize::from(once));
        prop_assert!(resumed.timer.last_slot_at >= now && resumed.timer.next_run_at.is_none_or(|next| next > now));

        let closed = plan::close(&job, &timer, &PlanContext::default(), GapReason::Missed, now);
        prop_assert_eq!(closed.timer.next_run_at, None);
        if closed.runs.len() < plan::MAX_RUNS_PER_PLAN {
            account(spec, mark, &closed);
            prop_assert_eq!(spec.count_between(closed.timer.last_slot_at, now), 0);
        }
        prop_assert!(closed.runs.iter().all(|run| !run.catch_up), "the end of a version never fires late slots");
    }
}
