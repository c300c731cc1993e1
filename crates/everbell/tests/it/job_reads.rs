//! Reads about jobs: lists, versions, next fires, and explanations of a time.

use std::sync::Arc;
use std::time::Duration;

use everbell::core::store::{AuditEntry, JobRef, Origin, SlotOutcome};
use everbell::core::{Definition, GapReason, JobId, Timer, Unschedulable, change};
use everbell::{
    Everbell, Explanation, JobFilter, JobKey, JobStatus, RecentRuns, RunFilter, RunHistogram, Schedule, Timestamp,
};

use crate::given::{Manual, Stored, at, daily, nothing, page, time};

async fn bell(stored: &Stored, clock: &Arc<Manual>) -> Everbell {
    at(stored, clock).target("nothing", nothing).build().await.unwrap()
}

#[tokio::test]
async fn jobs_are_listed_with_their_versions() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let bell = bell(&stored, &clock).await;
    let jobs = bell.jobs();
    for key in ["a", "b"] {
        jobs.create(daily(key)).await.unwrap();
    }
    jobs.new_version("b", everbell::Edit { description: Some("again".to_owned()), ..Default::default() })
        .await
        .unwrap();
    let living = JobFilter { status: vec![JobStatus::Active], ..JobFilter::default() };
    let found = jobs.list(&living, &page()).await.unwrap().items;
    let names: Vec<_> =
        found.iter().map(|row| format!("{}@{}", row.job.definition.key, row.job.definition.version)).collect();
    assert_eq!(names, ["a@1", "b@2"]);
    let versions = jobs.versions("b").await.unwrap();
    assert_eq!(versions.iter().map(|row| row.job.definition.version).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(jobs.versions("c").await.unwrap_err().to_string(), "there is no job `c`");
    assert_eq!(jobs.get(JobRef::Id(found[0].job.definition.id)).await.unwrap(), found[0]);
}

#[tokio::test]
async fn recent_runs_are_listed_and_counted() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let bell = bell(&stored, &clock).await;
    for key in ["a", "b"] {
        bell.jobs().create(daily(key)).await.unwrap();
    }
    let run = bell.jobs().run_now("a").await.unwrap().run().id;
    let keys = ["a", "b"].map(|key| JobKey::new(key).unwrap()).to_vec();
    let seen = bell.runs().recent_runs(&RecentRuns::new(keys, 30).unwrap()).await.unwrap();
    assert_eq!(seen.iter().map(|glimpse| (glimpse.job_key.as_str(), glimpse.id)).collect::<Vec<_>>(), [("a", run)]);
    let hours = ["11:00", "12:00", "13:00"].map(time).to_vec();
    let buckets = bell.runs().count_runs_by_time(&RunHistogram::new(hours).unwrap()).await.unwrap();
    assert_eq!(buckets.iter().map(|bucket| bucket.pending).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(bell.jobs().count(&JobFilter::default(), 10).await.unwrap(), 2);
    assert_eq!(bell.runs().count(&RunFilter::default(), 10).await.unwrap(), 1);
}

#[tokio::test]
async fn next_fires_are_told_in_the_zone_of_the_job() {
    let (stored, clock) = (Stored::memory(), Manual::new("2027-03-26T12:00:00Z"));
    let bell = bell(&stored, &clock).await;
    let jobs = bell.jobs();
    jobs.create(Schedule::cron("a", "30 2 * * *").tz("Europe/Paris").target("nothing")).await.unwrap();
    let fires =
        async || -> Vec<String> { jobs.next_fires("a", 3).await.unwrap().iter().map(ToString::to_string).collect() };
    assert_eq!(
        fires().await,
        [
            "2027-03-27T02:30:00+01:00[Europe/Paris]",
            "2027-03-28T03:00:00+02:00[Europe/Paris]",
            "2027-03-29T02:30:00+02:00[Europe/Paris]",
        ]
    );
    jobs.reschedule("a", time("2027-03-28T12:00:00Z")).await.unwrap();
    assert_eq!(
        fires().await,
        [
            "2027-03-28T14:00:00+02:00[Europe/Paris]",
            "2027-03-29T02:30:00+02:00[Europe/Paris]",
            "2027-03-30T02:30:00+02:00[Europe/Paris]",
        ]
    );
    jobs.pause("a", "for a while").until(time("2027-03-29T12:00:00Z")).await.unwrap();
    assert_eq!(fires().await[0], "2027-03-30T02:30:00+02:00[Europe/Paris]");
    jobs.pause("a", "for ever").await.unwrap();
    assert_eq!(fires().await, Vec::<String>::new());
    jobs.retire("a").await.unwrap();
    assert_eq!(fires().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_fire_with_jitter_is_told_as_it_will_be() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let bell = bell(&stored, &clock).await;
    let job = bell
        .jobs()
        .create(Schedule::cron("a", "@hourly").target("nothing").jitter(Duration::from_mins(30)))
        .await
        .unwrap();
    let fires = bell.jobs().next_fires("a", 3).await.unwrap();
    let times: Vec<Timestamp> = fires.iter().map(everbell::Zoned::timestamp).collect();
    assert_eq!(Some(times[0]), job.timer.unwrap().next_run_at);
    for (hour, fire) in ["13:00", "14:00", "15:00"].into_iter().zip(&times) {
        let late = fire.duration_since(time(hour));
        assert!(!late.is_negative() && late.as_secs() <= 1_800, "{hour} fires at {fire}");
    }
}

#[tokio::test]
async fn a_slot_that_a_moved_fire_passes_is_explained_by_that_fire() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:30"));
    let bell = bell(&stored, &clock).await;
    let jobs = bell.jobs();
    jobs.create(Schedule::cron("a", "*/10 * * * *").target("nothing")).await.unwrap();
    jobs.reschedule("a", time("13:15")).await.unwrap();
    let explain = async |at: &str| jobs.explain("a", time(at)).await.unwrap();
    let moved = Explanation::Moved { from: time("12:40"), to: time("13:15") };
    for slot in ["12:40", "12:50", "13:10"] {
        assert_eq!(explain(slot).await, moved, "{slot}");
    }
    assert_eq!(explain("13:20").await, Explanation::Ahead);
    clock.set("13:00");
    assert_eq!(explain("12:50").await, moved, "also when its time has gone by");
    assert_eq!(explain("12:31").await, Explanation::NoSlot { previous: None, next: Some(time("12:40")) });
}

#[tokio::test]
async fn a_time_is_explained() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:30"));
    let bell = bell(&stored, &clock).await;
    let jobs = bell.jobs();
    jobs.create(Schedule::cron("a", "@hourly").target("nothing")).await.unwrap();
    let explain = async |at: &str| jobs.explain("a", time(at)).await.unwrap();
    assert!(matches!(explain("12:00").await, Explanation::BeforeCreation { created_at } if created_at > time("12:30")));
    assert_eq!(
        explain("13:20").await,
        Explanation::NoSlot { previous: Some(time("13:00")), next: Some(time("14:00")) }
    );
    assert_eq!(explain("13:00").await, Explanation::Ahead);

    jobs.skip_next("a", 1).await.unwrap();
    let Explanation::Settled(SlotOutcome::Run(run)) = explain("13:00").await else { panic!("it is skipped") };
    assert_eq!(run.slot_at, Some(time("13:00")));

    jobs.pause("a", "for a while").await.unwrap();
    clock.set("15:30");
    assert!(matches!(explain("14:00").await, Explanation::Paused(pause) if pause.reason == "for a while"));
    assert_eq!(explain("16:00").await, Explanation::Ahead);
    jobs.resume("a").await.unwrap();
    let Explanation::Settled(SlotOutcome::Gap(gap)) = explain("14:00").await else { panic!("it is a gap") };
    assert_eq!((gap.reason, gap.slots), (GapReason::Paused, 2));
    assert!(matches!(explain("14:30").await, Explanation::NoSlot { .. }), "inside of the gap, but no slot");

    // The next version knows nothing of these; by its key the job does.
    clock.set("15:40");
    jobs.new_version("a", everbell::Edit { description: Some("again".to_owned()), ..Default::default() })
        .await
        .unwrap();
    assert!(matches!(explain("14:00").await, Explanation::Settled(_)));
    assert!(matches!(jobs.explain("a@2", time("14:00")).await.unwrap(), Explanation::BeforeCreation { .. }));
    assert_eq!(explain("16:00").await, Explanation::Ahead);
    assert_eq!(jobs.explain("a@1", time("16:00")).await.unwrap(), Explanation::Unknown);

    // What one version skipped ahead is skipped in the next; it was the first that did it.
    jobs.skip_next("a", 1).await.unwrap();
    jobs.new_version("a", everbell::Edit { description: Some("and again".to_owned()), ..Default::default() })
        .await
        .unwrap();
    let Explanation::Settled(SlotOutcome::Run(run)) = explain("16:00").await else { panic!("it is skipped") };
    assert_eq!(run.job_version, Some(2));
    assert_eq!(explain("17:00").await, Explanation::Ahead);
}

#[tokio::test]
async fn slots_of_an_errored_job_are_errored_and_then_a_gap() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let bell = bell(&stored, &clock).await;
    let jobs = bell.jobs();
    let hourly = |key: &str| Schedule::cron(key, "0 * * * *").target("nothing");
    jobs.create(hourly("model")).await.unwrap();
    let model = jobs.get("model").await.unwrap();
    let broken = Unschedulable {
        expression: Some("0 * * * *".to_owned()),
        timezone: "Mars/Base".to_owned(),
        reason: "`Mars/Base` is no zone".to_owned(),
        ..Unschedulable::default()
    };
    let definition = everbell_core::with!(Definition {
        id: JobId::new(time("06:00"), [7; 10]),
        key: JobKey::new("broken").unwrap(),
        spec: Err(broken),
        created_at: time("06:00"),
        ..(*model.job.definition).clone()
    });
    let id = definition.id;
    let mut new = change::create(definition);
    new.state.error = Some("`Mars/Base` is no zone".to_owned());
    new.timer =
        Some(everbell_core::with!(Timer { last_slot_at: time("08:00"), next_run_at: None, ..new.timer.unwrap() }));
    let entry = AuditEntry {
        id: id.as_uuid(),
        at: time("06:00"),
        actor: "ana".to_owned(),
        action: "job.create".to_owned(),
        object: "job:broken".to_owned(),
        reason: None,
        before: None,
        after: None,
        request: None,
        origin: Origin::default(),
    };
    bell.store().create_job(&new, &entry).await.unwrap();

    let errored = Explanation::Errored("`Mars/Base` is no zone".to_owned());
    assert_eq!(jobs.explain("broken", time("10:00")).await.unwrap(), errored);
    assert_eq!(jobs.explain(JobRef::Id(id), time("10:00")).await.unwrap(), errored);
    let created_at = time("06:00");
    let before = Explanation::BeforeCreation { created_at };
    assert_eq!(jobs.explain("broken", time("05:00")).await.unwrap(), before);
    assert_eq!(jobs.explain("broken", time("07:00")).await.unwrap(), Explanation::Unknown, "nothing is written");

    let repaired = model.job.definition.spec.clone().unwrap();
    let edit = everbell::Edit { spec: Some(repaired), ..Default::default() };
    clock.set("12:30");
    jobs.new_version("broken", edit).await.unwrap();
    let Explanation::Settled(SlotOutcome::Gap(gap)) = jobs.explain("broken", time("10:00")).await.unwrap() else {
        panic!("it is accounted for")
    };
    let found = (gap.reason, gap.slots, gap.first_slot_at, gap.last_slot_at);
    assert_eq!(found, (GapReason::Errored, 4, time("09:00"), time("12:00")));
    assert_eq!(jobs.next_fires("broken", 1).await.unwrap()[0].timestamp(), time("13:00"));
}
