//! Properties of every schedule.

use everbell_core::cron::{Dst, DstFold, DstGap, Expression};
use everbell_core::{Spec, Zone};
use jiff::{SignedDuration, Timestamp};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// 1900-01-01 and 2200-01-01: slots lie in between.
const FIRST: i64 = -2_208_988_800;
const END: i64 = 7_258_118_400;

fn zone() -> impl Strategy<Value = Zone> {
    let names = [
        "UTC",
        "America/New_York",
        "Australia/Lord_Howe",
        "Africa/Casablanca",
        "Pacific/Apia",
        "America/Havana",
        "Europe/Dublin",
    ];
    select(names.to_vec()).prop_map(|name| Zone::get(name).unwrap())
}

fn dst() -> impl Strategy<Value = Dst> {
    (select(DstGap::ALL.to_vec()), select(DstFold::ALL.to_vec())).prop_map(|(gap, fold)| Dst { gap, fold })
}

/// Any instant of the supported range, most of them in our lifetime, many with a part of a second.
fn instant() -> impl Strategy<Value = Timestamp> {
    let second = prop_oneof![8 => 0_i64..2_200_000_000, 1 => FIRST..END, 1 => select(vec![FIRST, -1, 0, END - 1])];
    let nano = prop_oneof![Just(0_i64), Just(500_000_000), 0_i64..1_000_000_000];
    (second, nano).prop_map(|(second, nano)| Timestamp::from_second(second).unwrap() + SignedDuration::from_nanos(nano))
}

fn number(min: u32, max: u32) -> impl Strategy<Value = String> {
    let value = min..=max;
    prop_oneof![
        5 => value.clone().prop_map(|v| v.to_string()),
        2 => (value.clone(), value.clone()).prop_map(|(a, b)| format!("{a}-{b}")),
        1 => (value.clone(), value.clone(), 1..=max + 2).prop_map(|(a, b, step)| format!("{a}-{b}/{step}")),
        1 => (value, 1..=max + 2).prop_map(|(a, step)| format!("{a}/{step}")),
        1 => (1..=max + 2).prop_map(|step| format!("*/{step}")),
    ]
}

fn field(min: u32, max: u32) -> impl Strategy<Value = String> {
    prop_oneof![2 => Just("*".to_owned()), 3 => vec(number(min, max), 1..4).prop_map(|items| items.join(","))]
}

fn day_of_month() -> impl Strategy<Value = String> {
    let special = prop_oneof![Just("L".to_owned()), Just("lw".to_owned()), (1..=31).prop_map(|day| format!("{day}W"))];
    prop_oneof![6 => field(1, 31), 1 => Just("?".to_owned()), 2 => special]
}

fn day_of_week() -> impl Strategy<Value = String> {
    let names = ["sun", "Mon", "TUE", "wed", "thu", "fri", "sat"];
    let special = prop_oneof![
        (0..=7, 1..=5).prop_map(|(day, count)| format!("{day}#{count}")),
        select(names.to_vec()).prop_map(|name| format!("{name}L")),
        (select(names.to_vec()), select(names.to_vec())).prop_map(|(a, b)| format!("{a}-{b}")),
    ];
    prop_oneof![6 => field(0, 7), 1 => Just("?".to_owned()), 2 => special]
}

/// Five or six fields; the few that never fire are left out.
fn expression() -> impl Strategy<Value = Expression> {
    let times = (option::weighted(0.3, field(0, 59)), field(0, 59), field(0, 23));
    (times, day_of_month(), field(1, 12), day_of_week()).prop_filter_map(
        "never fires",
        |((second, minute, hour), dom, month, dow)| {
            let second = second.map_or_else(String::new, |second| second + " ");
            Expression::parse(&format!("{second}{minute} {hour} {dom} {month} {dow}")).ok()
        },
    )
}

fn spec() -> impl Strategy<Value = Spec> {
    (expression(), zone(), dst())
        .prop_map(|(expression, zone, dst)| Spec::recurring(expression, zone, Timestamp::UNIX_EPOCH).with_dst(dst))
}

const NANO: SignedDuration = SignedDuration::from_nanos(1);

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_next_slot_is_later_and_matches_and_is_the_next(spec in spec(), after in instant()) {
        if let Some(next) = spec.next_after(after) {
            prop_assert!(next > after);
            prop_assert_eq!(next.subsec_nanosecond(), 0);
            prop_assert!(spec.matches(next));
            prop_assert!(!spec.matches(next + NANO));
            prop_assert_eq!(spec.count_between(after, next), 1);
            prop_assert_eq!(spec.count_between(after, next - NANO), 0);
        } else {
            prop_assert_eq!(spec.count_between(after, Timestamp::from_second(END).unwrap()), 0);
        }
    }

    #[test]
    fn previous_undoes_next(spec in spec(), t in instant()) {
        if let Some(next) = spec.next_after(t) {
            prop_assert_eq!(spec.prev_at_or_before(next), Some(next));
            prop_assert_eq!(spec.prev_at_or_before(next - NANO), spec.prev_at_or_before(t));
        }
        if let Some(previous) = spec.prev_at_or_before(t) {
            prop_assert!(previous <= t);
            prop_assert_eq!(spec.next_after(previous - NANO), Some(previous));
            prop_assert_eq!(spec.next_after(previous), spec.next_after(t));
        }
    }

    #[test]
    fn counting_is_iterating(spec in spec(), after in instant(), steps in 1_usize..300) {
        let slots: Vec<Timestamp> = spec.slots_after(after).take(steps).collect();
        prop_assert!(slots.is_sorted_by(|a, b| a < b));
        if let Some(last) = slots.last() {
            prop_assert_eq!(spec.count_between(after, *last), slots.len() as u64);
            let half = slots[slots.len() / 2];
            prop_assert_eq!(spec.count_between(after, half) + spec.count_between(half, *last), slots.len() as u64);
        }
        prop_assert_eq!(spec.count_between(after, after), 0);
    }

    #[test]
    fn slots_begin_and_end_in_the_supported_range(spec in spec(), before_end in 0_i64..86_400) {
        let near_end = Timestamp::from_second(END - before_end).unwrap();
        let last = spec.slots_after(near_end).last().or_else(|| spec.prev_at_or_before(near_end)).unwrap();
        prop_assert_eq!(spec.next_after(last), None);
        prop_assert_eq!(spec.prev_at_or_before(Timestamp::MAX), Some(last));
        let first = spec.next_after(Timestamp::MIN).unwrap();
        prop_assert_eq!(spec.prev_at_or_before(first - NANO), None);
        prop_assert!(first.as_second() >= FIRST && last.as_second() < END);
        prop_assert!(spec.count_between(Timestamp::MIN, Timestamp::MAX) >= 2);
    }

    #[test]
    fn normalized_means_the_same(spec in spec(), after in instant()) {
        let expression = spec.expression().unwrap();
        let again = Expression::parse(expression.normalized()).unwrap();
        prop_assert_eq!(again.normalized(), expression.normalized());
        let same = Spec::recurring(again, spec.zone().clone(), Timestamp::UNIX_EPOCH).with_dst(spec.dst());
        prop_assert!(same.slots_after(after).take(50).eq(spec.slots_after(after).take(50)));
    }

    #[test]
    fn a_part_of_a_second_changes_nothing(spec in spec(), after in instant()) {
        let whole = Timestamp::from_second(after.as_second() - i64::from(after.subsec_nanosecond() < 0)).unwrap();
        let part = whole + SignedDuration::from_millis(500);
        prop_assert_eq!(spec.next_after(part), spec.next_after(whole));
        prop_assert_eq!(spec.prev_at_or_before(part), spec.prev_at_or_before(whole));
        prop_assert!(!spec.matches(part));
    }

    #[test]
    fn bounds_are_kept(spec in spec(), start in instant(), length in 1_i64..40_000_000, t in instant()) {
        let end = Timestamp::from_second((start.as_second() + length).min(END - 1)).unwrap();
        prop_assume!(end > start);
        let bounded = spec.clone().with_bounds(Some(start), Some(end)).unwrap();
        let inside = |slot: &Timestamp| *slot >= start && *slot <= end;
        prop_assert!(bounded.next_after(t).iter().all(inside));
        prop_assert!(bounded.prev_at_or_before(t).iter().all(inside));
        prop_assert_eq!(bounded.next_after(t), spec.next_after(t.max(start - NANO)).filter(inside));
        prop_assert_eq!(bounded.prev_at_or_before(t), spec.prev_at_or_before(t.min(end)).filter(inside));
        let all = bounded.count_between(Timestamp::MIN, Timestamp::MAX);
        prop_assert_eq!(all, spec.count_between(start - NANO, end));
        prop_assert_eq!(bounded.count_between(Timestamp::MIN, t) + bounded.count_between(t, Timestamp::MAX), all);
    }

    #[test]
    fn a_fixed_rate_counts_from_its_anchor(
        seconds in 1_u64..31_622_400,
        anchor in instant(),
        t in instant(),
        start in option::of(instant()),
    ) {
        let every = Expression::every(seconds).unwrap();
        let spec = Spec::recurring(every, Zone::utc(), anchor).with_bounds(start, None).unwrap();
        let from = start.unwrap_or(anchor);
        // A start with a part of a second has its first slot at the next whole one; an anchor is cut.
        let Some(first) = spec.next_after(Timestamp::MIN) else {
            prop_assert!(from.as_second() >= END - 1, "no slot from {from} on");
            return Ok(());
        };
        prop_assert!((first.as_second() - from.as_second()).abs() <= 1, "{first} {from}");
        prop_assert!(spec.matches(first));
        for slot in spec.next_after(t).into_iter().chain(spec.prev_at_or_before(t)) {
            prop_assert_eq!((slot.as_second() - first.as_second()) % seconds as i64, 0);
            prop_assert!(slot >= first && spec.matches(slot));
        }
        if let Some(next) = spec.next_after(t) {
            prop_assert!(next > t);
            prop_assert_eq!(spec.count_between(t, next), 1);
            prop_assert_eq!(spec.prev_at_or_before(next - NANO), spec.prev_at_or_before(t));
        }
        let many: Vec<Timestamp> = spec.slots_after(t).take(20).collect();
        prop_assert_eq!(many.last().map_or(0, |last| spec.count_between(t, *last)), many.len() as u64);
    }

    #[test]
    fn skipped_gaps_are_no_slots(spec in spec(), after in instant()) {
        let until = Timestamp::from_second((after.as_second() + 800 * 86_400).min(END)).unwrap();
        let skipped = spec.dst_skipped_between(after, until);
        prop_assert!(spec.dst().gap == DstGap::Skip || skipped.is_empty());
        let shifting = spec.clone().with_dst(Dst { gap: DstGap::Shift, ..spec.dst() });
        prop_assert!(skipped.iter().all(|at| *at > after && *at <= until));
        prop_assert!(skipped.iter().all(|at| !spec.matches(*at) && shifting.matches(*at)));
        let count = |spec: &Spec| spec.count_between(after, until);
        prop_assert_eq!(count(&shifting), count(&spec) + skipped.len() as u64);
    }
}
