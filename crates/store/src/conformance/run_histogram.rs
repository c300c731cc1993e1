//! Runs counted by time: status, lags, durations.

use std::time::Duration;

use everbell_core::store::{Bucket, RunHistogram};
use everbell_core::{JobKey, Overlap, RunStatus};

use super::Fresh;
use super::given::{MAIL, at, audit, job, job_id, target, to, trial, with};
use super::world::{World, canceled, failure, success};

fn between(bounds: &[&str]) -> RunHistogram {
    RunHistogram::new(bounds.iter().map(|bound| at(bound)).collect()).unwrap()
}

fn of_job(histogram: RunHistogram, key: &str) -> RunHistogram {
    histogram.of_job(JobKey::new(key).unwrap())
}

async fn counted(world: &World, histogram: &RunHistogram) -> Vec<Bucket> {
    world.store.count_runs_by_time(histogram).await.unwrap()
}

/// `<status>×<number>` of each bucket.
async fn histogram_rows(world: &World, histogram: &RunHistogram) -> Vec<String> {
    let one = |bucket: &Bucket| {
        let counts = RunStatus::ALL.iter().map(|status| (status, bucket.count(*status))).filter(|(_, runs)| *runs > 0);
        counts.map(|(status, runs)| format!("{status}×{runs}")).collect::<Vec<_>>().join(" ")
    };
    counted(world, histogram).await.iter().map(one).collect()
}

/// Each status somewhere between 01:00 and 05:00, of jobs with two targets, and a trial.
async fn crowd(world: &World) {
    world.create(with(job("busy", "0 * * * *"), |values| values.overlap = Overlap::Skip)).await;
    world.create(to(job("mailer", "30 1-23 * * *"), MAIL)).await;
    world.run_due(&success(), at("01:00")).await;
    world.run_due(&failure(), at("01:30")).await;
    world.run_due(&canceled(), at("02:00")).await;
    world.run_due(&success(), at("02:30")).await;
    world.plan(at("03:00")).await;
    world.start(at("03:00")).await;
    world.plan(at("03:30")).await;
    world.plan(at("04:00")).await;
    let run = trial("try", MAIL, at("04:10"));
    world.store.insert_run(&run, &audit("target.try", "target:mail", at("04:10"))).await.unwrap();
}

pub async fn spans_without_runs_are_told_too(fresh: Fresh) {
    let world = World::new(&fresh);
    for histogram in [between(&["01:00", "02:00", "03:00"]), of_job(between(&["01:00", "02:00", "03:00"]), "never")] {
        let buckets = counted(&world, &histogram).await;
        assert_eq!(buckets, histogram.buckets());
        assert_eq!(buckets.iter().map(Bucket::total).collect::<Vec<_>>(), [0, 0]);
        assert_eq!((buckets[1].from, buckets[1].to), (at("02:00"), at("03:00")));
    }
}

pub async fn runs_are_counted_by_time_and_status(fresh: Fresh) {
    let world = World::new(&fresh);
    crowd(&world).await;
    let hours = between(&["01:00", "02:00", "03:00", "04:00", "05:00"]);
    let expected = ["succeeded×1 failed×1", "succeeded×1 canceled×1", "pending×1 running×1", "pending×1 skipped×1"]
        .map(String::from);
    assert_eq!(histogram_rows(&world, &hours).await, expected);
    assert_eq!(histogram_rows(&world, &hours.with_times()).await, expected, "with times the same");
    let uneven = between(&["00:15", "01:45", "02:15", "04:05"]);
    assert_eq!(
        histogram_rows(&world, &uneven).await,
        ["succeeded×1 failed×1", "canceled×1", "pending×1 running×1 succeeded×1 skipped×1"]
    );
}

pub async fn a_span_begins_with_its_bound_and_ends_before_the_next(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.run_due(&success(), at("01:00")).await;
    world.run_due(&success(), at("02:00")).await;
    for (bounds, expected) in [
        (["00:59:59.999", "01:00", "02:00"], [0, 1]),
        (["01:00", "01:00:00.001", "02:00:00.001"], [1, 1]),
        (["00:00", "01:00:00.0001", "02:00:00.0001"], [1, 1]),
        (["01:00:00.0000001", "01:00:00.0000002", "02:00"], [0, 0]),
        (["1800-01-01T00:00:00Z", "2026-11-15T01:30:00Z", "9000-01-01T00:00:00Z"], [1, 1]),
    ] {
        for histogram in [between(&bounds), between(&bounds).with_times(), of_job(between(&bounds), "hourly")] {
            let totals: Vec<u64> = counted(&world, &histogram).await.iter().map(Bucket::total).collect();
            assert_eq!(totals, expected, "{histogram:?}");
        }
    }
}

pub async fn runs_of_one_job_or_target_are_counted(fresh: Fresh) {
    let world = World::new(&fresh);
    crowd(&world).await;
    let (id, now) = (job_id("mailer", 2), at("04:15"));
    let edit = everbell_core::change::Edit::default;
    let change =
        |view: &everbell_core::change::JobView| everbell_core::change::new_version(view, edit(), id, true, "ana", now);
    world.try_change("mailer", now, change).await.unwrap();
    world.plan(at("04:30")).await;
    let halves = || between(&["01:00", "03:00", "05:00"]);
    let busy = ["succeeded×1 canceled×1", "running×1 skipped×1"];
    assert_eq!(histogram_rows(&world, &of_job(halves(), "busy")).await, busy);
    assert_eq!(histogram_rows(&world, &of_job(halves(), "busy").with_times()).await, busy);
    let mailer = histogram_rows(&world, &of_job(halves(), "mailer")).await;
    assert_eq!(mailer[0], "succeeded×1 failed×1");
    let both: u64 = counted(&world, &of_job(halves(), "mailer")).await.iter().map(Bucket::total).sum();
    assert_eq!(both, 4, "of both versions");
    let mail: u64 = counted(&world, &halves().of_target(target(MAIL))).await.iter().map(Bucket::total).sum();
    assert_eq!(mail, 5, "and the trial");
    assert_eq!(histogram_rows(&world, &halves().of_target(target("log"))).await, busy);
    assert_eq!(histogram_rows(&world, &of_job(halves(), "busy").of_target(target(MAIL))).await, ["", ""]);
}

pub async fn lags_are_of_scheduled_runs_in_their_first_attempt(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("retried", "0 1 * * *"), |values| values.max_attempts = 2)).await;
    world.create(job("once-a-day", "0 2 * * *")).await;
    world.plan(at("01:00")).await;
    let claims = world.start(at("01:00:03")).await;
    let hours = || between(&["01:00", "02:00", "03:00", "04:00"]).with_times();
    let lags = async |histogram: &RunHistogram| {
        let buckets = counted(&world, histogram).await;
        buckets.iter().map(|bucket| (bucket.lags.runs(), bucket.lags.longest())).collect::<Vec<_>>()
    };
    let late = |millis| Some(Duration::from_millis(millis));
    assert_eq!(lags(&hours()).await, [(1, late(3_000)), (0, None), (0, None)], "also of what is at work");
    world.finish(&claims, &failure(), at("01:00:10")).await;
    let again = world.start(at("01:59")).await;
    assert_eq!(again[0].run.attempt, 2);
    world.plan(at("02:00")).await;
    let claims = world.start(at("02:00:00.025")).await;
    world.finish(&claims, &success(), at("02:00:07")).await;
    world.run_now("once-a-day", "by hand", at("03:00")).await;
    world.start(at("03:10")).await;
    assert_eq!(lags(&hours()).await, [(0, None), (1, late(25)), (0, None)], "neither retries nor runs by hand");
    assert_eq!(lags(&of_job(hours(), "once-a-day")).await, [(0, None), (1, late(25)), (0, None)]);
    let bucket = &counted(&world, &hours()).await[1];
    assert_eq!(bucket.lags.counts()[4], 1, "an edge belongs to the place behind it");
    assert_eq!(bucket.lag_quantile(0.95), late(25));
    let without = counted(&world, &between(&["01:00", "04:00"])).await;
    assert_eq!((without[0].lags.runs(), without[0].durations.runs), (0, 0), "only when they are asked for");
    let without = counted(&world, &of_job(between(&["01:00", "04:00"]), "once-a-day")).await;
    assert_eq!((without[0].lags.runs(), without[0].durations.runs), (0, 0));
}

pub async fn durations_are_of_what_began_and_ended(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("a", "0 1 * * *")).await;
    world.create(job("b", "0 1 * * *")).await;
    world.create(job("c", "30 1 * * *")).await;
    world.plan(at("01:00")).await;
    let claims = world.start(at("01:00:01")).await;
    world.finish(&claims[..1], &success(), at("01:00:03.5")).await;
    world.finish(&claims[1..], &failure(), at("01:02:01")).await;
    world.plan(at("01:30")).await;
    world.start(at("01:30")).await;
    let hour = || between(&["01:00", "02:00"]).with_times();
    let durations = counted(&world, &hour()).await[0].durations;
    assert_eq!(
        (durations.runs, durations.total, durations.longest),
        (2, Duration::from_millis(122_500), Duration::from_mins(2))
    );
    assert_eq!(counted(&world, &of_job(hour(), "c")).await[0].durations.runs, 0, "it is still at work");
}
