//! Counters by hour and job: they agree with the runs, whatever happens to those.

use std::collections::BTreeMap;
use std::time::Duration;

use everbell_core::change::{self, Edit};
use everbell_core::counting::HourToCount;
use everbell_core::store::{
    CounterGroup, CounterKey, PurgedJob, RunCounters, TimeCounts, counters_by_owner, counters_by_target,
};
use everbell_core::{JobKey, Overlap, Run, RunStatus};
use jiff::{SignedDuration, Timestamp};

use super::Fresh;
use super::given::{MAIL, at, audit, job, job_id, per_org, target, to, trial, with};
use super::prune::prune;
use super::world::{World, canceled, failure, success};

type Counted = BTreeMap<CounterKey, RunCounters>;

/// Counts every hour whose turn it is. Returns how many.
async fn count_hours(world: &World, now: Timestamp) -> usize {
    for counted in 0.. {
        let progress = world.store.counting_progress().await.unwrap();
        let Some(hour) = progress.next_hour(now, Timestamp::MIN) else { return counted };
        assert!(world.store.count_hour(&hour, now).await.unwrap(), "{hour:?}");
    }
    0
}

fn ever() -> (Timestamp, Timestamp) {
    (Timestamp::UNIX_EPOCH, at("2027-11-15T00:00:00Z"))
}

async fn stored(world: &World) -> Counted {
    let (from, to) = ever();
    counters_by_owner(world.store.read_counters(from, to, None).await.unwrap())
}

async fn live(world: &World) -> Counted {
    let (from, to) = ever();
    counters_by_owner(world.store.count_ended_runs(from, to, None).await.unwrap())
}

/// Every run that has ended, one by one. `once` are the keys of one-time jobs.
async fn naive(world: &World, once: &[&str]) -> Counted {
    let mut counted = Counted::new();
    let has_ended = |run: &&Run| run.status.is_terminal();
    for run in world.runs().await.iter().filter(has_ended) {
        let Some(key) = &run.job_key else { continue };
        let is_once = once.contains(&key.as_str());
        let key = if is_once { CounterKey::OneTime(run.target.clone()) } else { CounterKey::Job(key.clone()) };
        counted.entry(key).or_default().add_run(run);
    }
    counted
}

fn key(key: &str) -> CounterKey {
    CounterKey::Job(JobKey::new(key).unwrap())
}

/// Every way to end, in several hours, beside runs that have not ended and a trial.
async fn crowd(world: &World) {
    world.create(with(job("busy", "0 * * * *"), |values| values.overlap = Overlap::Skip)).await;
    world.create(to(job("mailer", "30 1-23 * * *"), MAIL)).await;
    world.create(to(job("once-1", "once 01:30"), MAIL)).await;
    world.create(to(job("once-2", "once 02:30"), MAIL)).await;
    world.run_due(&success(), at("01:00")).await;
    world.run_due(&failure(), at("01:30")).await;
    world.run_due(&canceled(), at("02:00")).await;
    world.plan(at("02:30")).await;
    let claims = world.start(at("02:30:07.25")).await;
    world.finish(&claims, &success(), at("02:31:09.000001")).await;
    world.plan(at("03:00")).await;
    world.start(at("03:00")).await;
    world.plan(at("03:30")).await;
    world.plan(at("04:00")).await;
    let run = trial("try", MAIL, at("04:10"));
    world.store.insert_run(&run, &audit("target.try", "target:mail", at("04:10"))).await.unwrap();
    let claims = world.start(at("04:10")).await;
    world.finish(&claims, &success(), at("04:20")).await;
}

pub async fn counters_agree_with_the_runs(fresh: Fresh) {
    let world = World::new(&fresh);
    assert_eq!((count_hours(&world, at("00:30")).await, live(&world).await.len()), (0, 0), "nothing yet");
    crowd(&world).await;
    let expected = naive(&world, &["once-1", "once-2"]).await;
    assert_eq!(expected.len(), 3, "two jobs, and one-time jobs together: {expected:?}");
    assert_eq!(expected[&CounterKey::OneTime(target(MAIL))].runs(), 2);
    let busy = &expected[&key("busy")];
    assert_eq!((busy.succeeded, busy.canceled, busy.skipped, busy.failed), (1, 1, 1, 0));
    assert_eq!(expected[&key("mailer")].failures["handler_error"], 1);
    assert_eq!(live(&world).await, expected, "from the runs");
    assert_eq!(count_hours(&world, at("05:04")).await, 3, "the hours from 01:00 to 03:00");
    assert_eq!(count_hours(&world, at("05:05")).await, 1, "the hour from 04:00, five minutes after its end");
    assert_eq!(stored(&world).await, expected, "from the counters");
}

pub async fn counters_of_one_job_and_of_some_hours_are_read(fresh: Fresh) {
    let world = World::new(&fresh);
    crowd(&world).await;
    count_hours(&world, at("06:00")).await;
    let (from, to) = (at("01:00"), at("02:00"));
    let all: Counted = counters_by_owner(world.store.read_counters(from, to, None).await.unwrap());
    assert_eq!(all, counters_by_owner(world.store.count_ended_runs(from, to, None).await.unwrap()));
    assert_eq!(all.values().map(RunCounters::runs).sum::<u64>(), 3, "{all:?}");
    let busy = JobKey::new("busy").unwrap();
    let one = world.store.read_counters(from, at("05:00"), Some(&busy)).await.unwrap();
    assert_eq!(one, world.store.count_ended_runs(from, at("05:00"), Some(&busy)).await.unwrap());
    assert_eq!(
        one.iter().map(|(of, counters)| (of.key.clone(), counters.runs())).collect::<Vec<_>>(),
        [(key("busy"), 3)]
    );
    let single = JobKey::new("once-1").unwrap();
    assert_eq!(world.store.read_counters(from, to, Some(&single)).await.unwrap(), [], "counted by target");
    assert_eq!(world.store.count_ended_runs(from, to, Some(&single)).await.unwrap(), []);
}

pub async fn counters_of_a_job_are_read_by_hour(fresh: Fresh) {
    let world = World::new(&fresh);
    crowd(&world).await;
    count_hours(&world, at("06:00")).await;
    let busy = JobKey::new("busy").unwrap();
    let read = async |from, to| world.store.read_hourly_counters(from, to, &busy).await.unwrap();
    let hours = read(at("01:00"), at("05:00")).await;
    for hour in &hours {
        let counted = world.store.count_ended_runs(hour.from, hour.to, Some(&busy)).await.unwrap();
        let counted = counters_by_owner(counted).remove(&key("busy")).unwrap();
        for status in RunStatus::ALL {
            assert_eq!(hour.count(*status), counted.count(*status), "{status:?} from {}", hour.from);
        }
    }
    let starts: Vec<_> = hours.iter().map(|hour| (hour.from, hour.total())).collect();
    assert_eq!(starts, [(at("01:00"), 1), (at("02:00"), 1), (at("04:00"), 1)], "in order, without empty hours");
    assert_eq!((hours[0].succeeded, hours[1].canceled, hours[2].skipped), (1, 1, 1), "{hours:?}");
    assert_eq!(hours[0].to, at("02:00"));
    assert_eq!(read(at("02:00"), at("03:00")).await, hours[1..2], "the end is not included");
    assert_eq!(read(at("01:00:01"), at("02:00")).await, []);
    let single = JobKey::new("once-1").unwrap();
    let none = world.store.read_hourly_counters(at("01:00"), at("05:00"), &single).await.unwrap();
    assert_eq!(none, [], "counted by target");
}

pub async fn an_hour_is_counted_by_one_and_again_with_the_same_result(fresh: Fresh) {
    let world = World::new(&fresh);
    crowd(&world).await;
    let hour = HourToCount { hour: at("01:00"), counted_at: None };
    assert!(world.store.count_hour(&hour, at("05:00")).await.unwrap());
    let before = stored(&world).await;
    assert!(!world.store.count_hour(&hour, at("05:01")).await.unwrap(), "another instance was faster");
    let stale = HourToCount { counted_at: Some(at("04:59")), ..hour };
    assert!(!world.store.count_hour(&stale, at("05:01")).await.unwrap());
    let missing = HourToCount { hour: at("02:00"), counted_at: Some(at("05:00")) };
    assert!(!world.store.count_hour(&missing, at("05:01")).await.unwrap());
    let again = HourToCount { counted_at: Some(at("05:00")), ..hour };
    assert!(world.store.count_hour(&again, at("05:01")).await.unwrap());
    assert_eq!(stored(&world).await, before);
    let progress = world.store.counting_progress().await.unwrap();
    assert_eq!(progress.counted, BTreeMap::from([(at("01:00"), at("05:01"))]));
    assert_eq!(progress.oldest, Some(at("01:00")));
}

pub async fn outcomes_that_are_recorded_late_are_counted_by_the_second_count(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.run_due(&success(), at("01:00")).await;
    world.plan(at("02:00")).await;
    let claims = world.start(at("02:00")).await;
    count_hours(&world, at("03:30")).await;
    assert_eq!(stored(&world).await[&key("hourly")].runs(), 1);
    // The database was away when it ended, at 02:10.
    world.finish(&claims, &failure(), at("02:10")).await;
    count_hours(&world, at("2026-11-16T04:59:00Z")).await;
    assert_eq!(stored(&world).await[&key("hourly")].failed, 0);
    assert_eq!(count_hours(&world, at("2026-11-16T05:00:00Z")).await, 1, "26 hours after the end of the hour");
    assert_eq!(stored(&world).await, naive(&world, &[]).await);
    assert_eq!(stored(&world).await[&key("hourly")].failed, 1);
}

pub async fn a_run_that_never_started_took_no_time(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.plan(at("01:00")).await;
    let run = world.runs().await[0].id;
    world.store.cancel_run(run, "ana", at("01:10"), &audit("run.cancel", "run", at("01:10"))).await.unwrap();
    let counted = live(&world).await;
    assert_eq!(counted, naive(&world, &[]).await);
    let hourly = &counted[&key("hourly")];
    assert_eq!((hourly.canceled, hourly.took.longest(), hourly.delays.longest()), (1, None, None));
}

pub async fn versions_and_orgs_of_a_job_are_counted_together(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("edited", "0 * * * *")).await;
    world.put(&[super::given::org("acme", "UTC"), super::given::org("umbrella", "UTC")], at("00:00")).await;
    world.create(per_org(job("each", "0 * * * *"))).await;
    world.reconcile_orgs(at("00:00")).await;
    world.run_due(&success(), at("01:00")).await;
    let (id, now) = (job_id("edited", 2), at("01:30"));
    world
        .try_change("edited", now, |view| change::new_version(view, Edit::default(), id, true, "ana", now))
        .await
        .unwrap();
    world.run_due(&failure(), at("02:00")).await;
    count_hours(&world, at("04:00")).await;
    let counted = stored(&world).await;
    assert_eq!(counted, naive(&world, &[]).await);
    let shown = |name: &str| (counted[&key(name)].succeeded, counted[&key(name)].failed);
    assert_eq!((shown("edited"), shown("each")), ((1, 1), (2, 2)));
}

pub async fn counters_know_the_target_of_each_run(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("edited", "0 * * * *")).await;
    world.create(job("once", "once 02:30")).await;
    world.run_due(&success(), at("01:00")).await;
    let (id, now) = (job_id("edited", 2), at("01:30"));
    let moved = Edit { target: Some(target(MAIL)), ..Edit::default() };
    world
        .try_change("edited", now, |view| change::new_version(view, moved.clone(), id, true, "ana", now))
        .await
        .unwrap();
    world.run_due(&failure(), at("02:00")).await;
    world.run_due(&success(), at("02:30")).await;
    let ended = world.runs().await;
    let expected = |name: &str| {
        let own = ended.iter().filter(|run| run.target == target(name));
        let mut counters = RunCounters::default();
        own.for_each(|run| counters.add_run(run));
        (target(name), counters)
    };
    let expected = BTreeMap::from([expected(super::given::LOG), expected(MAIL)]);
    assert_eq!((expected[&target(MAIL)].failed, expected[&target(super::given::LOG)].succeeded), (1, 2));
    let by_target =
        |groups: Vec<(CounterGroup, RunCounters)>| counters_by_target(&groups.into_iter().collect::<BTreeMap<_, _>>());
    let (from, to) = ever();
    assert_eq!(by_target(world.store.count_ended_runs(from, to, None).await.unwrap()), expected, "from the runs");
    count_hours(&world, at("04:00")).await;
    assert_eq!(by_target(world.store.read_counters(from, to, None).await.unwrap()), expected, "from the counters");
    assert_eq!(stored(&world).await[&key("edited")].runs(), 2, "one job");
}

pub async fn counters_outlive_their_runs_and_go_in_the_end(fresh: Fresh) {
    let world = World::new(&fresh);
    crowd(&world).await;
    count_hours(&world, at("06:00")).await;
    let before = stored(&world).await;
    prune(&world, at("2026-11-20T00:00:00Z"), 100).await.unwrap();
    assert_eq!((live(&world).await.len(), stored(&world).await), (0, before));
    let prune = async |before: &str, limit| world.store.prune_counters(at(before), limit).await.unwrap();
    assert_eq!(prune("01:00", 100).await, 0);
    assert_eq!(prune("02:00", 2).await, 2, "no more than the limit");
    assert_eq!(prune("02:00", 2).await, 1);
    assert_eq!(prune("02:00", 2).await, 0);
    let progress = world.store.counting_progress().await.unwrap();
    assert_eq!(progress.counted.keys().next(), Some(&at("02:00")));
    assert!(prune("2027-01-01T00:00:00Z", 100).await > 0);
    assert_eq!(stored(&world).await, Counted::new());
}

pub async fn a_purge_deletes_the_counters_of_its_job(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("gone", "0 * * * *")).await;
    world.create(job("stays", "0 * * * *")).await;
    world.run_due(&success(), at("01:00")).await;
    count_hours(&world, at("03:00")).await;
    assert_eq!(stored(&world).await.len(), 2);
    let entry = audit("job.purge", "job:gone", at("04:00"));
    let gone = JobKey::new("gone").unwrap();
    world.store.purge_job(&gone, 100, PurgedJob::default(), &entry).await.unwrap();
    assert_eq!(stored(&world).await.into_keys().collect::<Vec<_>>(), [key("stays")]);
}

pub async fn every_store_has_the_same_buckets(fresh: Fresh) {
    let world = World::new(&fresh);
    let edges = TimeCounts::EDGES.iter().flat_map(|edge| [edge - 1, *edge]);
    let spans: Vec<SignedDuration> = edges.map(|micros| SignedDuration::from_micros(micros as i64)).collect();
    for number in 0..spans.len() {
        world.create(job(&format!("job-{number:03}"), "0 1 * * *")).await;
    }
    world.plan(at("01:00")).await;
    // Each starts later than the one before, and takes as long as it was late.
    for span in &spans {
        let started = at("01:00") + *span;
        let claims = world.start_some(started, 1).await;
        world.finish(&claims, &success(), started + *span).await;
    }
    let counted = live(&world).await;
    assert_eq!(counted, naive(&world, &[]).await);
    let mut all = RunCounters::default();
    for counters in counted.values() {
        all.merge(counters);
    }
    let expected: Vec<(u8, u64)> =
        (0..=91).map(|place| (place, if place == 0 || place == 91 { 1 } else { 2 })).collect();
    assert_eq!(all.took.places().collect::<Vec<_>>(), expected);
    assert_eq!(all.delays.places().collect::<Vec<_>>(), expected);
    assert_eq!(all.took.longest(), Some(Duration::from_secs(1_000_000)));
}
