//! The slots of a job for all its orgs, against the slots of each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use everbell_core::calendar::{Calendar, CalendarContent, CalendarName, CalendarRules, Roll};
use everbell_core::org::{GroupOverride, OrgGroup, OrgGroups, OrgSchedule, OrgSlot, past_slots};
use everbell_core::{Definition, JobKey, JobState, JobStatus, OrgId, Pause, Scope, Spec, Zone, change};
use jiff::{SignedDuration, Timestamp};

use crate::given;
use crate::random::Random;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn org(name: &str) -> OrgId {
    OrgId::new(name).unwrap()
}

fn job(schedule: &str, policies: &str) -> Definition {
    let definition = given::job(schedule, policies, at("2026-01-01T00:00:00Z"));
    everbell_core::with!(Definition { scope: Scope::PerOrg, ..definition })
}

fn state(job: &Definition) -> JobState {
    change::create(job.clone()).state
}

fn zone(timezone: &str, orgs: u64, first: &str) -> OrgGroup {
    OrgGroup { timezone: timezone.to_owned(), override_: None, orgs, first_org: org(first) }
}

fn own(timezone: &str, orgs: u64, first: &str, expression: Option<&str>, enabled: bool) -> OrgGroup {
    let expression = expression.map(str::to_owned);
    let override_ = GroupOverride { job_key: JobKey::new("job").unwrap(), enabled, expression };
    OrgGroup { override_: Some(override_), ..zone(timezone, orgs, first) }
}

fn schedule(job: &Definition, groups: Vec<OrgGroup>, now: &str) -> OrgSchedule {
    OrgSchedule::new(job, &state(job), &OrgGroups::new(groups), at(now)).unwrap()
}

fn slots(schedule: &OrgSchedule, from: &str, to: &str) -> Vec<OrgSlot> {
    schedule.slots(at(from), at(to)).collect()
}

/// `08:00 for 3 in 2 zones, first a`.
fn words(slots: &[OrgSlot]) -> Vec<String> {
    let word = |slot: &OrgSlot| {
        let first = slot.first_org.as_ref().map_or("unknown", OrgId::as_str);
        format!("{} for {} in {}, first {first}", slot.at.strftime("%d %H:%M"), slot.orgs, slot.zones)
    };
    slots.iter().map(word).collect()
}

#[test]
fn orgs_with_the_same_slot_are_one() {
    let groups = vec![zone("Asia/Tokyo", 5, "t"), zone("Europe/Berlin", 3, "b"), zone("Europe/Paris", 4, "p")];
    let schedule = schedule(&job("0 8 * * *", ""), groups, "2026-11-15T12:00:00Z");
    let expected = ["15 23:00 for 5 in 1, first t", "16 07:00 for 7 in 2, first b", "16 23:00 for 5 in 1, first t"];
    let (from, to) = ("2026-11-15T12:00:00Z", "2026-11-17T07:00:00Z");
    assert_eq!(words(&slots(&schedule, from, to)), expected);
    assert_eq!((schedule.count(at(from), at(to)), schedule.effort(at(from), at(to)), schedule.orgs()), (17, 4, 12));
    let later = ["16 07:00 for 7 in 2, first b", "16 23:00 for 5 in 1, first t"];
    assert_eq!(words(&slots(&schedule, "2026-11-16T07:00:00Z", to)), later, "from the very slot on");
    assert_eq!(schedule.most_slots(at(from), at("2026-11-20T00:00:00Z")), 5);
}

#[test]
fn an_override_takes_its_orgs_out_of_their_zone() {
    let groups = vec![
        zone("Europe/Paris", 10, "a"),
        zone("UTC", 1, "u"),
        own("Europe/Paris", 2, "b", Some("30 7 * * *"), true),
        own("Europe/Paris", 3, "c", None, false),
        own("Europe/Paris", 4, "d", None, true),
        OrgGroup {
            override_: Some(GroupOverride { job_key: JobKey::new("other").unwrap(), enabled: false, expression: None }),
            ..zone("UTC", 1, "u")
        },
    ];
    let schedule = schedule(&job("0 8 * * *", ""), groups, "2026-11-15T12:00:00Z");
    let expected =
        ["16 06:30 for 2 in 1, first b", "16 07:00 for 5 in 1, first unknown", "16 08:00 for 1 in 1, first u"];
    assert_eq!(words(&slots(&schedule, "2026-11-15T12:00:00Z", "2026-11-17T00:00:00Z")), expected);
}

#[test]
fn a_zone_that_is_none_is_counted_and_does_not_fire() {
    let groups = vec![zone("Mars/Base", 2, "m"), own("UTC", 1, "u", Some("x y z"), true), zone("UTC", 3, "u")];
    let schedule = schedule(&job("0 8 * * *", ""), groups, "2026-11-15T12:00:00Z");
    assert_eq!((schedule.unreadable(), schedule.orgs()), (3, 2));
    assert_eq!(slots(&schedule, "2026-11-15T12:00:00Z", "2026-11-16T12:00:00Z")[0].orgs, 2);
}

#[test]
fn timers_say_what_an_operator_moved() {
    let groups = || vec![zone("UTC", 5, "a")];
    let (job, now) = (job("0 8 * * *", ""), "2026-11-15T12:00:00Z");
    let armed = |fires: &[(&str, u64, &str)]| -> OrgSchedule {
        schedule(&job, groups(), now).with_armed(fires.iter().map(|(time, orgs, first)| (at(time), *orgs, org(first))))
    };
    let lines = |schedule: &OrgSchedule| words(&slots(schedule, now, "2026-11-18T00:00:00Z"));
    // One was moved to the evening, one skips a day.
    let moved = [("2026-11-15T20:00:00Z", 1, "c"), ("2026-11-16T08:00:00Z", 3, "b"), ("2026-11-17T08:00:00Z", 1, "a")];
    let expected = ["15 20:00 for 1 in 0, first c", "16 08:00 for 3 in 1, first b", "17 08:00 for 5 in 1, first a"];
    assert_eq!(lines(&armed(&moved)), expected);
    let plain = ["16 08:00 for 5 in 1, first a", "17 08:00 for 5 in 1, first a"];
    assert_eq!(lines(&armed(&[])), plain, "no timer is known");
    let due = [("2026-11-15T12:00:00Z", 1, "c"), ("2026-11-16T08:00:00Z", 4, "a")];
    assert_eq!(lines(&armed(&due)), plain, "the org that is due goes on");
    assert_eq!(lines(&armed(&[("2026-11-20T00:00:00Z", 5, "a")])), [""; 0], "all of them moved far ahead");
    let far = armed(&[("2026-11-16T08:00:00Z", 4, "b"), ("2026-11-18T08:00:00Z", 1, "a")]);
    let later = words(&slots(&far, "2026-11-17T00:00:00Z", "2026-11-19T00:00:00Z"));
    assert_eq!(later, ["17 08:00 for 4 in 1, first a", "18 08:00 for 5 in 1, first a"], "also if asked from then on");
}

#[test]
fn jitter_spreads_a_slot_evenly() {
    let job = job("0 8 * * *", "jitter=600");
    let own = schedule(&job, vec![zone("UTC", 25, "a")], "2026-11-16T08:05:00Z");
    let found = slots(&own, "2026-11-16T00:00:00Z", "2026-11-18T00:00:00Z");
    assert_eq!(
        found.iter().map(|slot| slot.at).collect::<Vec<_>>(),
        [at("2026-11-16T08:00:00Z"), at("2026-11-17T08:00:00Z")]
    );
    assert_eq!(found[0].within, Duration::from_mins(10), "its fires go on for five minutes");
    let spread: Vec<(Timestamp, u64)> = found[0].spread().collect();
    assert_eq!(
        (spread.len(), spread[0], spread[9].0),
        (10, (at("2026-11-16T08:00:00Z"), 2), at("2026-11-16T08:09:00Z"))
    );
    assert_eq!(spread.iter().map(|(_, orgs)| orgs).sum::<u64>(), 25);
    let created = everbell_core::with!(Definition { created_at: at("2026-11-16T08:02:00Z"), ..job.clone() });
    let new = schedule(&created, vec![zone("UTC", 25, "a")], "2026-11-16T08:05:00Z");
    assert_eq!(slots(&new, "2026-11-16T00:00:00Z", "2026-11-18T00:00:00Z").len(), 1, "the slot is older than the job");
    let dense = schedule(&given_minutely(), vec![zone("UTC", 3, "a")], "2026-11-16T08:05:00Z");
    let first = dense.slots(at("2026-11-16T08:05:30Z"), at("2026-11-16T09:00:00Z")).next().unwrap();
    assert_eq!(first.within, Duration::from_mins(1), "shorter than the wait for the next slot");
    assert_eq!(first.spread().collect::<Vec<_>>(), [(at("2026-11-16T08:06:00Z"), 3)]);
}

fn given_minutely() -> Definition {
    job("* * * * *", "jitter=600")
}

#[test]
fn past_slots_go_back_to_a_bound() {
    let groups =
        OrgGroups::new([zone("Asia/Tokyo", 5, "t"), zone("Europe/Berlin", 3, "b"), zone("Europe/Paris", 4, "p")]);
    let (job, until) = (job("0 8 * * *", ""), at("2026-11-16T07:00:00Z"));
    let back = |most| -> Vec<String> {
        past_slots(&job, &groups, until, most).iter().map(|slot| slot.strftime("%d %H:%M").to_string()).collect()
    };
    assert_eq!(back((4, 1_000)), ["14 23:00", "15 07:00", "15 23:00", "16 07:00"]);
    assert_eq!(back((4, 8)), ["15 23:00", "16 07:00"], "seven runs, and five more");
    assert_eq!(back((4, 1)), ["16 07:00"]);
    assert!(past_slots(&job, &OrgGroups::default(), until, (4, 1)).is_empty());
}

#[test]
fn a_paused_job_goes_on_when_its_pause_ends() {
    let job = job("0 8 * * *", "");
    let groups = OrgGroups::new([zone("UTC", 2, "a")]);
    let now = at("2026-11-15T12:00:00Z");
    let paused = |until: Option<&str>| {
        let pause = Pause { reason: "r".to_owned(), by: "ana".to_owned(), at: now, until: until.map(at) };
        let state = everbell_core::with!(JobState { status: JobStatus::Paused, pause: Some(pause), ..state(&job) });
        OrgSchedule::new(&job, &state, &groups, now)
    };
    assert!(paused(None).is_none());
    let until = paused(Some("2026-11-16T12:00:00Z")).unwrap();
    assert_eq!(words(&slots(&until, "2026-11-15T12:00:00Z", "2026-11-18T00:00:00Z")), ["17 08:00 for 2 in 1, first a"]);
    let global = given::job("0 8 * * *", "", now);
    assert!(OrgSchedule::new(&global, &state(&global), &groups, now).is_none());
    let errored = everbell_core::with!(JobState { error: Some("broken".to_owned()), ..state(&job) });
    assert!(OrgSchedule::new(&job, &errored, &groups, now).is_none());
}

/// Groups and single orgs agree: in many zones, across changes of clocks, with calendars.
#[test]
fn groups_have_the_slots_of_each_org() {
    const ZONES: [&str; 6] =
        ["America/New_York", "America/Sao_Paulo", "Asia/Kolkata", "Australia/Lord_Howe", "Europe/Berlin", "UTC"];
    let days = CalendarContent::parse(&["2027-03-15", "2027-03-26"], &["sun"]).unwrap();
    let days = Arc::new(Calendar::new(CalendarName::new("days").unwrap(), 1, days));
    for (text, roll) in
        [("0 8 * * *", None), ("30 2 * * *", None), ("0 */6 * * *", Some(Roll::Skip)), ("0 18 * * *", Some(Roll::Next))]
    {
        let mut job = job(text, "");
        if let Some(roll) = roll {
            let rules = CalendarRules { exclude: vec![Arc::clone(&days)], roll, ..CalendarRules::default() };
            job.spec = job.spec.map(|spec| spec.with_calendars(&rules));
        }
        let (from, to) = (at("2027-03-10T05:00:00Z"), at("2027-04-02T05:00:00Z"));
        let mut groups = Vec::new();
        let mut expected: BTreeMap<Timestamp, u64> = BTreeMap::new();
        // Slots that move to the same time have a run each.
        let mut runs = 0;
        let mut add = |spec: &Spec, orgs: u64| {
            let before = from.checked_sub(SignedDuration::from_micros(1)).unwrap();
            runs += orgs * spec.count_between(from, to.checked_sub(SignedDuration::from_micros(1)).unwrap());
            for slot in spec.slots_after(before).take_while(|slot| *slot < to) {
                *expected.entry(slot).or_default() += orgs;
            }
        };
        for (index, name) in ZONES.iter().enumerate() {
            let (orgs, moved) = (index as u64 + 3, index as u64 % 3);
            let spec = job.spec.as_ref().unwrap().in_zone(Zone::get(name).unwrap());
            groups.push(zone(name, orgs, "a"));
            if moved > 0 {
                groups.push(own(name, moved, "b", Some("15 9 * * *"), true));
                add(&spec.with_expression("15 9 * * *".parse().unwrap(), job.created_at), moved);
            }
            add(&spec, orgs - moved);
        }
        let schedule = schedule(&job, groups, "2027-03-10T05:00:00Z");
        // A slot at the very moment of the question is due, and no longer to come.
        expected.remove(&from);
        let found: BTreeMap<Timestamp, u64> = schedule.slots(from, to).map(|slot| (slot.at, slot.orgs)).collect();
        assert_eq!(found, expected, "{text} {roll:?}");
        assert_eq!(schedule.slots(from, to).map(|slot| slot.runs).sum::<u64>(), runs, "{text} {roll:?}");
        assert_eq!(schedule.count(from, to), runs, "{text} {roll:?}");
        assert!(roll == Some(Roll::Next) || runs == expected.values().sum::<u64>(), "{text} {roll:?}");
    }
}

/// Whether an org that overrides a job wants it, and when.
type Choice = Option<(bool, Option<&'static str>)>;

const ZONES: [&str; 5] = ["UTC", "Asia/Tokyo", "America/New_York", "Europe/Paris", "Asia/Kolkata"];
const CHOICES: [Choice; 5] = [
    None,
    Some((false, None)),
    Some((true, None)),
    Some((true, Some("15 9 * * *"))),
    Some((true, Some("7 21 * * 1-5"))),
];

/// An org, as a test sees it.
struct Single {
    zone: &'static str,
    own: Choice,
    first_fire: Option<Timestamp>,
    /// Its slots, in order.
    slots: Vec<Timestamp>,
}

impl Single {
    fn random(random: &mut Random, job: &Definition, after: Timestamp) -> Single {
        let (zone, own) = (random.pick(&ZONES), if random.percent(50) { None } else { random.pick(&CHOICES) });
        let spec = job.spec.as_ref().unwrap().in_zone(Zone::get(zone).unwrap());
        let spec = match own.and_then(|(_, expression)| expression) {
            Some(expression) => spec.with_expression(expression.parse().unwrap(), job.created_at),
            None => spec,
        };
        let is_on = own.is_none_or(|(enabled, _)| enabled);
        let to = after + SignedDuration::from_hours(24 * 25);
        let slots: Vec<Timestamp> = spec.slots_after(after).take_while(|slot| is_on && *slot < to).collect();
        Single { zone, own, first_fire: slots.first().copied(), slots }
    }

    fn group(&self) -> (&str, Option<&str>) {
        (self.zone, self.own.and_then(|(_, expression)| expression))
    }

    /// Moves its next fire: to a time without a slot of any org, or on to a later slot.
    fn move_next(&mut self, random: &mut Random, now: Timestamp) {
        let first = self.slots.remove(0);
        let skipped = random.between(0, 3) as usize;
        if random.percent(50) && skipped < self.slots.len() {
            self.slots.drain(..skipped);
        } else {
            let to = now + SignedDuration::from_mins(random.between(1, 6_000)) + SignedDuration::from_secs(17);
            self.slots.retain(|slot| *slot > first.max(to));
            self.slots.insert(0, to);
        }
        self.first_fire = self.slots.first().copied();
    }
}

fn groups_of(orgs: &[Single]) -> Vec<OrgGroup> {
    let mut groups = Vec::new();
    for name in ZONES {
        let count = |choice: Option<Choice>| {
            orgs.iter().filter(|org| org.zone == name && choice.is_none_or(|choice| org.own == choice)).count() as u64
        };
        groups.extend(Some(zone(name, count(None), "a")));
        for (enabled, expression) in CHOICES.into_iter().flatten() {
            groups.push(own(name, count(Some(Some((enabled, expression)))), "b", expression, enabled));
        }
    }
    groups.retain(|group| group.orgs > 0);
    groups
}

/// The fires of all orgs are those of each one: in random zones, with overrides, pauses and orgs that an operator moved.
#[test]
fn all_orgs_have_the_slots_of_each_one() {
    let (mut moves, mut pauses) = (0, 0);
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let job = job(random.pick(&["0 8 * * *", "30 2 * * *", "0 */6 * * *", "45 23 * * 6,0"]), "");
        let now = at("2027-03-12T00:00:00Z") + SignedDuration::from_mins(random.between(0, 3_000));
        let until = random.percent(20).then(|| now + SignedDuration::from_hours(random.between(1, 60)));
        let count = random.between(1, 12);
        let mut orgs: Vec<Single> =
            (0..count).map(|_| Single::random(&mut random, &job, until.unwrap_or(now))).collect();
        // Timers do not say whose they are, so no other group has its first slot when one of its orgs is missing.
        let chosen = random.next() as usize % orgs.len();
        let is_alone = |first: &Timestamp| {
            orgs.iter().filter(|org| org.slots.first() == Some(first)).all(|org| org.group() == orgs[chosen].group())
        };
        if until.is_none() && orgs[chosen].slots.first().is_some_and(is_alone) {
            orgs[chosen].move_next(&mut random, now);
            moves += 1;
        }
        pauses += usize::from(until.is_some());
        let pause = until.map(|_| Pause { reason: "r".to_owned(), by: "ana".to_owned(), at: now, until });
        let status = if pause.is_some() { JobStatus::Paused } else { JobStatus::Active };
        let state = everbell_core::with!(JobState { status, pause, ..state(&job) });
        let mut timers: BTreeMap<Timestamp, u64> = BTreeMap::new();
        for at in orgs.iter().filter_map(|org| org.first_fire) {
            *timers.entry(at).or_default() += 1;
        }
        let schedule = OrgSchedule::new(&job, &state, &OrgGroups::new(groups_of(&orgs)), now).unwrap();
        let schedule = schedule.with_armed(timers.iter().map(|(at, orgs)| (*at, *orgs, org("a"))));
        let from = now + SignedDuration::from_secs(random.pick(&[1, 86_400, 300_000]));
        let to = now + SignedDuration::from_hours(24 * 9);
        let mut expected: BTreeMap<Timestamp, u64> = BTreeMap::new();
        for at in orgs.iter().flat_map(|org| &org.slots).filter(|at| (from..to).contains(at)) {
            *expected.entry(*at).or_default() += 1;
        }
        let found: BTreeMap<Timestamp, u64> = schedule.slots(from, to).map(|slot| (slot.at, slot.orgs)).collect();
        assert_eq!(found, expected, "seed {seed}, from {from}, chosen {chosen}");
    }
    assert!(moves > 100 && pauses > 40, "{moves} {pauses}");
}
