//! Simulations: cases computed by hand, and properties of all of them.

use std::collections::BTreeMap;
use std::time::Duration;

use everbell_core::simulate::{JobSimulation, Outage, Scenario, SimulatedJob, Simulation, SlotStatus, simulate};
use everbell_core::{CatchUp, JobId, JobKey, Overlap, Target, fire_at};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::given;

const MINUTE: u64 = 60;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// `02:30` on the first day of July 2026.
fn july(clock: &str) -> Timestamp {
    at(&format!("2026-07-01T{clock}:00Z"))
}

fn job(key: &str, schedule: &str, policies: &str, seconds: u64) -> SimulatedJob {
    let mut definition = given::job(schedule, policies, july("00:00"));
    definition.key = JobKey::new(key).unwrap();
    let mut random = [7; 10];
    random[..key.len().min(10)].copy_from_slice(&key.as_bytes()[..key.len().min(10)]);
    definition.id = JobId::new(july("00:00"), random);
    SimulatedJob { definition, duration: Duration::from_secs(seconds) }
}

fn day(to: &str, outages: &[(&str, &str)], places: u32) -> Scenario {
    let outages = outages.iter().map(|(from, to)| Outage { from: july(from), to: july(to) }).collect();
    Scenario { from: july("00:00"), to: july(to), outages, places, target_places: BTreeMap::new() }
}

/// A job with another target.
fn on(target: &str, job: SimulatedJob) -> SimulatedJob {
    let mut job = job;
    job.definition.target = Target::new(target).unwrap();
    job
}

fn limits(given: &[(&str, u32)]) -> BTreeMap<Target, u32> {
    given.iter().map(|(target, places)| (Target::new(target).unwrap(), *places)).collect()
}

fn only(simulated: Simulation) -> JobSimulation {
    let [one] = <[JobSimulation; 1]>::try_from(simulated.jobs).unwrap();
    one
}

fn counts(expected: &[(&'static str, u64)]) -> BTreeMap<&'static str, u64> {
    expected.iter().copied().collect()
}

/// The clock times at which runs started, by slot.
fn starts(job: &JobSimulation) -> Vec<(String, String)> {
    let clock = |at: Timestamp| at.strftime("%H:%M").to_string();
    let started =
        |record: &everbell_core::simulate::SlotRecord| record.run.as_ref().and_then(|run| run.started_at).map(clock);
    job.records.iter().filter_map(|record| Some((clock(record.first_slot_at), started(record)?))).collect()
}

fn hourly_with_outage(policies: &str, seconds: u64) -> JobSimulation {
    let scenario = day("08:00", &[("02:30", "05:30")], 10);
    let policies = format!("timeout=7200 {policies}");
    only(simulate(&[job("hourly", "0 * * * *", &policies, seconds)], &scenario).unwrap())
}

#[test]
fn outage_with_catch_up_once_folds_slots_into_one_late_run() {
    let found = hourly_with_outage("catchUp=once", 10 * MINUTE);
    assert_eq!(found.counts(), counts(&[("ran", 6), ("coalesced", 2)]));
    let late: Vec<_> = found.records.iter().filter(|record| record.is_notable()).collect();
    assert_eq!((late[0].first_slot_at, late[0].last_slot_at), (july("03:00"), july("04:00")));
    let run = late[1].run.as_ref().unwrap();
    assert_eq!((run.started_at, run.catch_up, run.folded), (Some(july("05:30")), true, 2));
    assert_eq!((late.len(), found.longest_wait), (2, Duration::from_mins(30)));
}

#[test]
fn outage_with_catch_up_none_misses_its_slots() {
    let found = hourly_with_outage("catchUp=none", 10 * MINUTE);
    assert_eq!(found.counts(), counts(&[("ran", 5), ("missed", 3)]));
    assert_eq!(found.longest_wait, Duration::ZERO);
}

#[test]
fn outage_with_catch_up_all_runs_every_slot_one_after_the_other() {
    let found = hourly_with_outage("catchUp=all", 10 * MINUTE);
    assert_eq!(found.counts(), counts(&[("ran", 8)]));
    let started: Vec<_> = starts(&found).into_iter().map(|(_, start)| start).collect();
    assert_eq!(started, ["00:00", "01:00", "02:00", "05:30", "05:40", "05:50", "06:00", "07:00"]);
    assert_eq!((found.longest_wait, found.peak), (Duration::from_mins(150), 1));
}

#[test]
fn run_that_an_outage_interrupts_is_lost_and_blocks_until_that_is_noticed() {
    let found = hourly_with_outage("catchUp=once", 45 * MINUTE);
    assert_eq!(found.counts(), counts(&[("ran", 5), ("coalesced", 2), ("skipped", 1)]));
    let lost = &found.records[2];
    assert_eq!(lost.status, SlotStatus::Failed("lost".to_owned()));
    let run = lost.run.as_ref().unwrap();
    assert_eq!(run.attempts, [(july("02:00"), Some(july("02:30")))]);
    assert_eq!(run.finished_at, Some(july("05:30") + SignedDuration::from_secs(10)));

    let found = hourly_with_outage("catchUp=once onLost=retry attempts=2", 45 * MINUTE);
    assert_eq!(found.records[2].status, SlotStatus::Succeeded, "its second attempt");
    assert_eq!(found.records[2].run.as_ref().unwrap().attempts.len(), 2);
}

#[test]
fn local_time_that_does_not_exist_is_shifted_or_left_out() {
    let (from, to) = (at("2027-03-13T00:00:00Z"), at("2027-03-16T00:00:00Z"));
    let scenario = Scenario { from, to, ..day("00:00", &[], 1) };
    let found = |rule: &str| {
        let nightly = job("nightly", "30 2 * * * in America/New_York", rule, 60);
        only(simulate(&[nightly], &scenario).unwrap())
    };
    let slots = |job: &JobSimulation| job.records.iter().map(|record| record.first_slot_at).collect::<Vec<_>>();
    let (first, last) = (at("2027-03-13T07:30:00Z"), at("2027-03-15T06:30:00Z"));
    let shifted = found("dstGap=shift");
    assert_eq!(slots(&shifted), [first, at("2027-03-14T07:00:00Z"), last]);
    assert_eq!((shifted.counts(), shifted.dst_gaps.len()), (counts(&[("ran", 3)]), 0));
    let skipped = found("dstGap=skip");
    assert_eq!(slots(&skipped), [first, last]);
    assert_eq!((skipped.slots, skipped.dst_gaps.len()), (2, 1));
    // The window may end before the next slot, which accounts for the gap in production.
    let scenario = Scenario { to: at("2027-03-15T00:00:00Z"), ..scenario.clone() };
    let nightly = job("nightly", "30 2 * * * in America/New_York", "dstGap=skip", 60);
    assert_eq!(only(simulate(&[nightly], &scenario).unwrap()).dst_gaps, skipped.dst_gaps);
}

#[test]
fn overlap_policies_decide_as_in_production() {
    let found = |policies: &str| {
        let slow = job("slow", "*/10 * * * *", &format!("timeout=7200 {policies}"), 25 * MINUTE);
        only(simulate(&[slow], &day("01:00", &[], 10)).unwrap())
    };
    let skip = found("overlap=skip");
    assert_eq!(skip.counts(), counts(&[("ran", 2), ("skipped", 4)]));
    let queue = found("overlap=queue");
    assert_eq!(queue.counts(), counts(&[("ran", 3), ("skipped", 2), ("waiting", 1)]));
    let pairs: Vec<(&str, &str)> = vec![("00:00", "00:00"), ("00:10", "00:25"), ("00:30", "00:50")];
    assert_eq!(starts(&queue), pairs.into_iter().map(|(a, b)| (a.to_owned(), b.to_owned())).collect::<Vec<_>>());
    let replace = found("overlap=replace");
    let canceled = replace.records.iter().filter(|record| record.status == SlotStatus::Canceled).count();
    assert_eq!((replace.counts(), canceled, replace.peak), (counts(&[("ran", 6)]), 5, 1));
    let allow = found("overlap=allow");
    assert_eq!((allow.counts(), allow.peak), (counts(&[("ran", 6)]), 3));
    assert_eq!(found("overlap=skip max=2").counts(), counts(&[("ran", 4), ("skipped", 2)]));
}

#[test]
fn attempts_that_take_too_long_are_retried_and_pause_the_job() {
    let slow = job("slow", "0 * * * *", "timeout=900 attempts=2 pauseAfter=3", 20 * MINUTE);
    let found = only(simulate(&[slow], &day("08:00", &[], 1)).unwrap());
    assert_eq!(found.counts(), counts(&[("ran", 3), ("paused", 5)]));
    assert_eq!(found.failed(), 3);
    assert_eq!(found.records[0].status, SlotStatus::Failed("timeout".to_owned()));
    let attempts = &found.records[0].run.as_ref().unwrap().attempts;
    assert_eq!(attempts[1].0, july("00:15") + SignedDuration::from_secs(10), "after the backoff");
    assert_eq!(found.paused_at, Some(july("02:30") + SignedDuration::from_secs(10)));
}

#[test]
fn jobs_share_the_places_of_the_instances() {
    let jobs = [
        job("low", "0 * * * *", "timeout=7200 priority=-1", 20 * MINUTE),
        job("high", "0 * * * *", "timeout=7200 priority=1", 30 * MINUTE),
    ];
    let found = simulate(&jobs, &day("02:00", &[], 1)).unwrap();
    assert_eq!((found.peak, found.peak_at), (1, Some(july("00:00"))));
    assert_eq!(found.jobs[0].longest_wait, Duration::from_mins(30));
    assert_eq!(found.jobs[1].longest_wait, Duration::ZERO);
    assert_eq!(simulate(&jobs, &day("02:00", &[], 2)).unwrap().peak, 2);
}

#[test]
fn target_with_a_limit_holds_back_its_own_runs_only() {
    let hourly = |key, target| on(target, job(key, "0 * * * *", "timeout=7200", 20 * MINUTE));
    let jobs = [hourly("a", "disk"), hourly("b", "disk"), hourly("c", "mail")];
    let limited = |given: &[(&str, u32)], outages: &[(&str, &str)]| {
        let scenario = Scenario { target_places: limits(given), ..day("02:00", outages, 10) };
        let found = simulate(&jobs, &scenario).unwrap();
        let mut waits: Vec<u64> = found.jobs.iter().map(|job| job.longest_wait.as_secs() / MINUTE).collect();
        // Which of two runs of the same slot is first, their ids decide.
        waits[..2].sort_unstable();
        (waits, found.peak)
    };
    assert_eq!(limited(&[], &[]), (vec![0, 0, 0], 3));
    assert_eq!(limited(&[("disk", 1), ("unused", 1)], &[]), (vec![0, 20, 0], 2));
    assert_eq!(limited(&[("disk", 2)], &[]), (vec![0, 0, 0], 3));
    // A lost run has no place any more: the other one starts at 00:50, before the loss is noticed, and ends at 01:10.
    assert_eq!(limited(&[("disk", 1)], &[("00:10", "00:50")]), (vec![10, 50, 0], 2));
    let none = Scenario { target_places: limits(&[("disk", 0)]), ..day("02:00", &[], 10) };
    assert_eq!(simulate(&jobs, &none).unwrap_err().field, "targetPlaces");
}

#[test]
fn dependency_is_met_by_a_simulated_success() {
    let after = job("after", "30 * * * *", "dependsOn=first", 60);
    let first = |policies: &str, seconds| job("first", "0 2 * * *", policies, seconds);
    let found = simulate(&[first("", 60), after.clone()], &day("05:00", &[], 5)).unwrap();
    // The success at `from` counts for an hour, the one at 02:01 for another.
    assert_eq!(starts(&found.jobs[1]).into_iter().map(|(slot, _)| slot).collect::<Vec<_>>(), ["00:30", "02:30"]);
    assert_eq!(only(simulate(&[after], &day("05:00", &[], 5)).unwrap()).counts(), counts(&[("ran", 5)]));
}

#[test]
fn window_that_cannot_be_simulated_is_refused() {
    let every_second = job("fast", "* * * * * *", "", 1);
    let refused = |scenario: Scenario| simulate(std::slice::from_ref(&every_second), &scenario).unwrap_err();
    let week = Scenario { to: july("00:00") + SignedDuration::from_hours(168), ..day("01:00", &[], 1) };
    assert!(refused(week).reason.starts_with("the window has 604800 slots, and at most 500000 are simulated"));
    assert_eq!(refused(day("00:00", &[], 1)).field, "to");
    assert_eq!(refused(day("01:00", &[("00:30", "00:30")], 1)).field, "outage");
    assert_eq!(refused(day("01:00", &[], 0)).field, "places");
}

/// The most attempts of these jobs that overlap.
fn most_at_once<'j>(jobs: impl Iterator<Item = &'j JobSimulation>, to: Timestamp) -> u32 {
    let runs = jobs.flat_map(|job| &job.records).filter_map(|record| record.run.as_ref());
    let attempts: Vec<_> = runs.flat_map(|run| &run.attempts).map(|(from, end)| (*from, end.unwrap_or(to))).collect();
    let active = |at: Timestamp| attempts.iter().filter(|(from, end)| *from <= at && at < *end).count();
    attempts.iter().map(|(from, _)| active(*from) as u32).max().unwrap_or(0)
}

const SCHEDULES: [&str; 8] = [
    "* * * * *",
    "*/7 * * * *",
    "*/20 * * * * *",
    "0 * * * *",
    "*/20 1,2 * * * in Europe/London",
    "30 2 * * * in America/New_York",
    "@every 90s",
    "once 2026-07-01T03:00:00Z",
];

prop_compose! {
    fn policies()(
        overlap in prop::sample::select(Overlap::ALL),
        catch_up in prop::sample::select(CatchUp::ALL),
        limit in 1..=20_u32,
        grace in 0..=300_u32,
        jitter in prop_oneof![Just(0), 1..=90_u32],
        max in 1..=3_u32,
        timeout in prop_oneof![Just(900), 1..=600_u32],
        attempts in 2..=3_u32,
        lost in prop::sample::select(&["fail", "retry"][..]),
        pause in prop::option::weighted(0.2, 1..=4_u32),
    ) -> String {
        let pause = pause.map_or(String::new(), |pause| format!("pauseAfter={pause}"));
        format!("overlap={overlap} catchUp={catch_up} limit={limit} grace={grace} jitter={jitter} max={max} \
                 timeout={timeout} attempts={attempts} onLost={lost} {pause}")
    }
}

/// Outages within six hours, which may touch each other and the ends of the window.
fn outages() -> impl Strategy<Value = Vec<Outage>> {
    let one = (-20..360_i64, 1..120_i64).prop_map(|(from, length)| {
        let from = july("00:00") + SignedDuration::from_mins(from);
        Outage { from, to: from + SignedDuration::from_mins(length) }
    });
    prop::collection::vec(one, 0..3)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_slot_of_the_window_has_one_status(
        given in prop::collection::vec((prop::sample::select(&SCHEDULES[..]), policies(), 0..2_000_u64), 1..4),
        outages in outages(),
        places in 1..5_u32,
        limit in prop::option::of(1..3_u32),
    ) {
        let jobs: Vec<SimulatedJob> = given.iter().zip([("a", "disk"), ("b", "mail"), ("c", "disk")])
            .map(|((schedule, policies, seconds), (key, target))| on(target, job(key, schedule, policies, *seconds)))
            .collect();
        let target_places = limit.map(|limit| (Target::new("disk").unwrap(), limit)).into_iter().collect();
        let scenario = Scenario { outages, target_places, ..day("06:00", &[], places) };
        let found = simulate(&jobs, &scenario).unwrap();
        prop_assert_eq!(&found, &simulate(&jobs, &scenario).unwrap(), "the same question has one answer");
        prop_assert!(found.peak <= places);
        let on_disk = jobs.iter().zip(&found.jobs).filter(|(job, _)| job.definition.target.as_str() == "disk");
        prop_assert!(limit.is_none_or(|limit| most_at_once(on_disk.map(|(_, result)| result), scenario.to) <= limit));
        let down = scenario.merged_outages();
        for (job, result) in jobs.iter().zip(&found.jobs) {
            let spec = job.definition.spec.as_ref().unwrap();
            let before = scenario.from - SignedDuration::from_micros(1);
            prop_assert_eq!(result.counts().values().sum::<u64>(), result.slots);
            for slot in spec.slots_after(before).take_while(|slot| *slot < scenario.to) {
                let holding = result.records.iter()
                    .filter(|record| (record.first_slot_at..=record.last_slot_at).contains(&slot)).count();
                prop_assert_eq!(holding, 1, "{} of {}", slot, job.definition.key);
            }
            if job.definition.policies.overlap != Overlap::Allow {
                prop_assert!(result.peak <= job.definition.policies.max_concurrent_runs);
            }
            for (from, to) in result.records.iter().filter_map(|record| record.run.as_ref()).flat_map(|run| &run.attempts) {
                let to = to.unwrap_or(scenario.to);
                prop_assert!(down.iter().all(|outage| to <= outage.from || *from >= outage.to), "{from} to {to}");
            }
        }
    }

    #[test]
    fn without_an_outage_runs_start_when_the_schedule_fires(
        schedule in prop::sample::select(&SCHEDULES[..]), jitter in 0..60_u32, catch_up in prop::sample::select(CatchUp::ALL),
    ) {
        let fast = job("fast", schedule, &format!("overlap=allow jitter={jitter} catchUp={catch_up}"), 1);
        let found = only(simulate(std::slice::from_ref(&fast), &day("06:00", &[], 100)).unwrap());
        let (spec, id) = (fast.definition.spec.as_ref().unwrap(), fast.definition.id);
        let fires = spec.slots_after(july("00:00") - SignedDuration::from_micros(1))
            .map(|slot| (slot, fire_at(spec, id, None, slot, Duration::from_secs(jitter.into()))))
            .take_while(|(slot, _)| *slot < july("06:00"))
            .filter(|(_, fires)| *fires < july("06:00"));
        let started = found.records.iter().filter_map(|record| Some((record.first_slot_at, record.run.as_ref()?.started_at?)));
        prop_assert_eq!(started.collect::<Vec<_>>(), fires.collect::<Vec<_>>());
        prop_assert_eq!(found.longest_wait, Duration::ZERO);
    }
}
