//! Absences and outages: from heartbeats and outcomes of slots to what people read.

use std::collections::BTreeMap;
use std::time::Duration;

use everbell_core::outage::{
    Absence, AbsenceGroup, LateOutcome, LateRange, LateSlots, MIN_ABSENCE, Outage, merge_absences,
};
use everbell_core::{JobKey, LATEST};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn absence(from: i64, until: i64) -> Absence {
    Absence { from: at(from), until: at(until) }
}

fn slots(key: &str, outcome: LateOutcome, slots: u64) -> LateSlots {
    let job_key = JobKey::new(key).unwrap();
    LateSlots { job_key, outcome, slots, first_slot_at: at(10), last_slot_at: at(90) }
}

#[test]
fn an_absence_is_long_enough_to_be_none_of_a_restart() {
    let beat = Duration::from_secs(5);
    let since = |last: Option<i64>, now| Absence::since(last.map(at), at(now), beat);
    assert_eq!(since(None, 100), None, "the first instance of a database ends none");
    assert_eq!(since(Some(0), 19), None);
    assert_eq!(since(Some(0), 20), Some(absence(0, 20)));
    assert_eq!(since(Some(100), 100), None);
    assert_eq!(since(Some(200), 100), None, "a clock went back");
    let slow = Duration::from_secs(30);
    assert_eq!(Absence::since(Some(at(0)), at(119), slow), None, "heartbeats are rare here");
    assert_eq!(Absence::since(Some(at(0)), at(120), slow), Some(absence(0, 120)));
}

#[test]
fn slots_belong_to_an_absence_by_their_time_and_the_time_of_their_outcome() {
    assert_eq!(absence(100, 200).length(), SignedDuration::from_secs(100));
    let ranges = |absences: &[Absence]| match &AbsenceGroup::from_absences(absences.to_vec())[..] {
        [group] => group.ranges.clone(),
        groups => panic!("{groups:?}"),
    };
    let range = |until, decided_from, decided_until| LateRange {
        gaps_from: at(-20),
        slots_from: at(95),
        until: at(until),
        decided_from: at(decided_from),
        decided_until,
    };
    assert_eq!(ranges(&[absence(100, 200)]), [range(200, 190, LATEST)]);
    // What was written between two of them belongs to the first.
    let two = [absence(100, 200), absence(200, 230)];
    assert_eq!(ranges(&two), [range(200, 190, at(220)), range(230, 220, LATEST)]);
    // Two instances noticed the same.
    assert_eq!(ranges(&[absence(100, 200), absence(150, 200)]), [range(200, 190, LATEST)]);
}

#[test]
fn an_outage_adds_up_what_became_of_slots() {
    use LateOutcome::{Backfilled, Coalesced, Expired, Missed, Ran, Skipped};
    let late = [
        slots("once", Coalesced, 11),
        slots("once", Ran, 1),
        slots("none", Missed, 12),
        slots("all", Ran, 10),
        slots("all", Skipped, 2),
        slots("window", Expired, 3),
        slots("window", Ran, 1),
        slots("mended", Missed, 4),
        slots("mended", Backfilled, 4),
        slots("before", Backfilled, 9),
        slots("skipped", Coalesced, 2),
        slots("skipped", Skipped, 1),
        slots("folded", Coalesced, 2),
        slots("half", Missed, 2),
        slots("half", Coalesced, 2),
        slots("half", Ran, 1),
        slots("half", Backfilled, 2),
        slots("late", Ran, 5),
    ];
    let outage = Outage::new(absence(0, 100), &late);
    let keys: Vec<&str> = outage.jobs.iter().map(|job| job.job_key.as_str()).collect();
    let expected = ["none", "mended", "window", "half", "all", "once", "late", "skipped", "folded"];
    assert_eq!(keys, expected, "those that missed most first");
    assert_eq!((outage.slots(), outage.caught_up()), (59, 3));
    let state = |key: &str| {
        let job = outage.jobs.iter().find(|job| job.job_key.as_str() == key).unwrap();
        (job.slots(), job.missed(), job.is_caught_up(), job.can_backfill())
    };
    assert_eq!(state("once"), (12, 0, true, true));
    assert_eq!(state("none"), (12, 12, false, true));
    assert_eq!(state("all"), (12, 0, false, false), "two slots ran nothing");
    assert_eq!(state("late"), (5, 0, true, false));
    assert_eq!(state("skipped"), (3, 0, false, true), "the run of all of them was skipped");
    assert_eq!(state("folded"), (2, 0, false, true), "there is no run that covers them");
    assert_eq!(state("half"), (5, 2, false, true), "perhaps the coalesced slots were backfilled");
    assert_eq!(state("window"), (4, 3, false, true));
    assert_eq!(state("mended"), (4, 4, true, false), "the gap stays, and its slots ran since");
    assert_eq!((outage.count(Backfilled), outage.count(Missed)), (6, 18));
}

#[test]
fn an_outage_without_slots_has_no_jobs() {
    let outage = Outage::new(absence(0, 100), &[]);
    assert_eq!((outage.jobs.len(), outage.slots(), outage.caught_up()), (0, 0, 0));
}

#[test]
fn a_short_absence_inside_of_a_longer_one_hides_none_of_its_slots() {
    let groups = AbsenceGroup::from_absences(vec![absence(496, 525), absence(515, 520)]);
    let [group] = groups.as_slice() else { panic!("{groups:?}") };
    let (slot, written) = (at(520), at(525));
    let has = |range: &&LateRange| {
        (range.slots_from..range.until).contains(&slot) && (range.decided_from..range.decided_until).contains(&written)
    };
    assert_eq!(group.ranges.iter().filter(has).count(), 1, "{group:?}");
}

fn some_absences() -> impl Strategy<Value = Vec<Absence>> {
    prop::collection::vec((0..1_000_i64, 1..100_i64), 0..20)
        .prop_map(|all| all.into_iter().map(|(from, length)| absence(from, from + length)).collect())
}

fn some_slots() -> impl Strategy<Value = Vec<LateSlots>> {
    let one = (0..5_usize, 0..LateOutcome::ALL.len(), 1..1_000_u64, 0..50_i64, 0..50_i64);
    let one = one.prop_map(|(key, outcome, count, first, more)| LateSlots {
        first_slot_at: at(first),
        last_slot_at: at(first + more),
        ..slots(["a", "b", "c", "d", "e"][key], LateOutcome::ALL[outcome], count)
    });
    prop::collection::vec(one, 0..30)
}

proptest! {
    #[test]
    fn merged_absences_cover_the_same_time_without_touching(all in some_absences()) {
        let merged = merge_absences(all.clone());
        prop_assert!(merged.windows(2).all(|pair| pair[0].until < pair[1].from), "{merged:?}");
        let holds = |list: &[Absence], at: Timestamp| list.iter().any(|one| one.from <= at && at <= one.until);
        for second in 0..1_200 {
            prop_assert_eq!(holds(&all, at(second)), holds(&merged, at(second)));
        }
        prop_assert_eq!(merge_absences(merged.clone()), merged);
    }

    #[test]
    fn an_outcome_belongs_to_one_range_of_a_group(all in some_absences(), slot in 0..1_100_i64, late in 0..1_100_i64) {
        let (slot, written) = (at(slot), at(slot + late));
        for group in AbsenceGroup::from_absences(all) {
            let has = |range: &&LateRange| {
                (range.slots_from..range.until).contains(&slot)
                    && (range.decided_from..range.decided_until).contains(&written)
            };
            let found = group.ranges.iter().filter(has).count();
            prop_assert!(found <= 1, "{group:?}");
            // What was written after the last one belongs to the group, whenever its slot was.
            let is_inside = group.ranges[0].slots_from <= slot && slot < group.absence.until;
            prop_assert!(found == 1 || !is_inside || written < group.absence.until, "{group:?}");
        }
    }

    #[test]
    fn an_absence_has_at_least_the_shortest_length(last in -500..500_i64, now in -500..500_i64, beat in 1..60_u64) {
        let found = Absence::since(Some(at(last)), at(now), Duration::from_secs(beat));
        let long_enough = now - last >= i64::try_from(MIN_ABSENCE.as_secs().max(4 * beat)).unwrap();
        prop_assert_eq!(found.is_some(), long_enough);
        if let Some(found) = found {
            let range = AbsenceGroup::from_absences(vec![found])[0].ranges[0];
            prop_assert!(range.slots_from < found.from && found.from < range.decided_from);
            prop_assert!(range.decided_from < found.until);
            // The last instance lives on for less than the time after which outcomes count.
            let alive = found.from + SignedDuration::from_secs(i64::try_from(beat).unwrap());
            prop_assert!(alive < range.decided_from);
        }
    }

    #[test]
    fn no_slot_is_lost_or_counted_twice(late in some_slots()) {
        let outage = Outage::new(absence(0, 100), &late);
        let mut by_job: BTreeMap<&str, BTreeMap<LateOutcome, u64>> = BTreeMap::new();
        for one in &late {
            *by_job.entry(one.job_key.as_str()).or_default().entry(one.outcome).or_default() += one.slots;
        }
        let own = |counts: &BTreeMap<LateOutcome, u64>| -> u64 {
            counts.iter().filter(|(outcome, _)| **outcome != LateOutcome::Backfilled).map(|(_, slots)| slots).sum()
        };
        by_job.retain(|_, counts| own(counts) > 0);
        prop_assert_eq!(outage.jobs.len(), by_job.len());
        for job in &outage.jobs {
            let counts = &by_job[job.job_key.as_str()];
            prop_assert_eq!(job.slots(), own(counts));
            for outcome in LateOutcome::ALL {
                prop_assert_eq!(job.count(*outcome), counts.get(outcome).copied().unwrap_or(0));
            }
            prop_assert!(job.first_slot_at <= job.last_slot_at);
            let is_open = job.can_backfill() || job.count(LateOutcome::Skipped) > 0;
            prop_assert!(job.is_caught_up() || is_open, "what is open can be backfilled, or was skipped");
        }
        prop_assert_eq!(outage.slots(), by_job.values().map(own).sum::<u64>());
        prop_assert!(outage.jobs.is_sorted_by_key(|job| std::cmp::Reverse(job.missed())));
        let reversed: Vec<LateSlots> = late.iter().rev().cloned().collect();
        prop_assert_eq!(Outage::new(absence(0, 100), &reversed), outage, "in any order");
    }
}
