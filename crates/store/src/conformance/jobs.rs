//! Jobs: create, get, and what reads back.

use std::collections::BTreeMap;
use std::time::Duration;

use everbell_core::change;
use everbell_core::cron::{Dst, DstFold, DstGap};
use everbell_core::store::{JobFilter, JobRef};
use everbell_core::{
    Backoff, CatchUp, Definition, Dependency, JobKey, JobState, JobStatus, OnLeaseLoss, OnLost, Overlap, Source,
    Unschedulable,
};

use super::Fresh;
use super::given::{assert_refused, at, audit, job, job_id, json, target, with};
use super::plain::Plain;
use super::world::{World, by_key, pause_of};

pub async fn a_new_job_is_armed_and_has_no_run(fresh: Fresh) {
    let world = World::new(&fresh);
    let row = world.create(job("daily", "0 9 * * *")).await;
    let timer = row.timer.clone().unwrap();
    assert_eq!((timer.job_id, timer.org), (job_id("daily", 1), None));
    assert_eq!(timer.next_run_at, Some(at("09:00")));
    assert_eq!(timer.last_slot_at, at("00:00"));
    assert_eq!((timer.rescheduled_from, timer.last_local_date), (None, None));
    assert_eq!(row.last_run, None);
    assert_eq!(row.job.state, JobState::new("ana", at("00:00")));
    assert_eq!(world.runs().await, []);
}

pub async fn a_job_is_found_by_id_key_and_version(fresh: Fresh) {
    let world = World::new(&fresh);
    let row = world.create(job("daily", "0 9 * * *")).await;
    let key = JobKey::new("daily").unwrap();
    for named in [JobRef::Id(job_id("daily", 1)), JobRef::Key(key.clone()), JobRef::Version(key, 1)] {
        assert_eq!(world.store.get_job(&named).await.unwrap(), row, "{named:?}");
    }
}

pub async fn a_job_reads_back_as_it_was_written(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("upstream", "@daily")).await;
    let mut definition = with(job("everything", "30 2 * * mon-fri in Europe/Paris"), |values| {
        values.overlap = Overlap::Replace;
        values.max_concurrent_runs = 7;
        values.catch_up = CatchUp::All;
        values.catch_up_limit = 17;
        values.catch_up_window = Some(Duration::from_millis(3_600_001));
        values.grace = Duration::from_millis(1_500);
        values.timeout = Duration::from_hours(24 * 30);
        values.jitter = Duration::from_secs(13);
        values.max_attempts = 9;
        values.backoff = Backoff { initial: Duration::from_secs(2), max: Duration::from_hours(5) };
        values.pause_after_failures = Some(4);
        values.on_lease_loss = Some(OnLeaseLoss::Continue);
        values.on_lost = OnLost::Retry;
        let job_key = JobKey::new("upstream").unwrap();
        values.depends_on = Some(Dependency { job_key, within: Duration::from_hours(25) });
    });
    let dst = Dst { gap: DstGap::Skip, fold: DstFold::Both };
    let bounds = (Some(at("2027-01-01T00:00:00.000001Z")), Some(at("2199-12-31T00:00:00Z")));
    let spec = definition.spec.unwrap().with_dst(dst).with_bounds(bounds.0, bounds.1).unwrap();
    definition.spec = Ok(spec);
    definition.target = target("mail");
    definition.payload = json(r#"{"to": ["ana", "bo"], "n": 1}"#);
    definition.description.push_str("Sends it.\nTwice.");
    definition.labels = BTreeMap::from([("team".to_owned(), "x=y, z".to_owned()), (String::new(), String::new())]);
    definition.source = Source::Config;
    let row = world.create(definition.clone()).await;
    assert_eq!((*row.job.definition).clone().plain(), definition.clone().plain());
    let read = world.get("everything").await;
    assert_eq!(read.job.definition.content_hash(), definition.content_hash(), "a sync would see a change");
    assert_eq!(read, row);
}

pub async fn every_kind_of_schedule_reads_back(fresh: Fresh) {
    let world = World::new(&fresh);
    for (number, schedule) in [
        "*/5 * * * *",
        "15 30 4 L * 1#2 in America/New_York",
        "@every 90s",
        "@hourly in Asia/Kolkata",
        "once 2031-02-03T04:05:06.789Z in Australia/Lord_Howe",
    ]
    .into_iter()
    .enumerate()
    {
        let definition = job(&format!("job-{number}"), schedule);
        let row = world.create(definition.clone()).await;
        assert_eq!(row.job.definition.spec, definition.spec, "{schedule}");
        let read = world.get(&format!("job-{number}")).await;
        assert_eq!(read.job.definition.spec, definition.spec, "{schedule}");
        assert_eq!(read.timer, change::create(definition).timer, "{schedule}");
    }
}

pub async fn a_fixed_rate_keeps_its_anchor(fresh: Fresh) {
    let world = World::new(&fresh);
    let created_at = at("00:00:07");
    let definition = super::given::job_at("rate", "@every 90s", created_at);
    let spec = definition.spec.clone().unwrap().with_bounds(Some(at("06:00:05.5")), None).unwrap();
    let row = world.create(everbell_core::with!(Definition { spec: Ok(spec.clone()), ..definition })).await;
    assert_eq!(row.job.definition.spec, Ok(spec));
    assert_eq!(row.timer.unwrap().next_run_at, Some(at("06:00:06")));
}

pub async fn an_unknown_job_is_not_found(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("daily", "0 9 * * *")).await;
    let key = |name| JobKey::new(name).unwrap();
    for named in [
        JobRef::Id(job_id("nightly", 1)),
        JobRef::Key(key("nightly")),
        JobRef::Key(key("DAILY")),
        JobRef::Key(key("dail_")),
        JobRef::Version(key("daily"), 2),
        JobRef::Version(key("nightly"), 1),
    ] {
        assert_refused(world.store.get_job(&named).await, "not found");
        let entry = audit("job.retire", "job:nightly", at("01:00"));
        let retire = |view: &change::JobView| change::retire(view, "ana", at("01:00"));
        assert_refused(world.store.change_job(&named, None, &retire, &entry).await, "not found");
    }
    assert_eq!(world.actions(None).await, ["job.create"]);
}

pub async fn the_key_of_a_living_job_is_taken(fresh: Fresh) {
    let world = World::new(&fresh);
    let first = world.create(job("daily", "0 9 * * *")).await;
    let second = everbell_core::with!(Definition { id: job_id("other", 1), version: 2, ..job("daily", "0 10 * * *") });
    let entry = audit("job.create", "job:daily", at("01:00"));
    assert_refused(world.store.create_job(&change::create(second.clone()), &entry).await, "conflict");
    world.pause("daily", at("01:00")).await;
    assert_refused(world.store.create_job(&change::create(second), &entry).await, "conflict");
    assert_eq!(world.jobs_in_pages(&JobFilter::default(), 10).await.len(), 1);
    assert_eq!(world.get("daily").await.job.definition, first.job.definition);
    assert_eq!(world.actions(None).await, ["job.change", "job.create"]);
}

pub async fn an_id_and_a_version_are_taken_for_good(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("daily", "0 9 * * *")).await;
    world.retire("daily", at("01:00")).await;
    let entry = audit("job.create", "job:daily", at("01:00"));
    let same_version = everbell_core::with!(Definition { id: job_id("other", 1), ..job("daily", "0 10 * * *") });
    assert_refused(world.store.create_job(&change::create(same_version), &entry).await, "conflict");
    let same_id = everbell_core::with!(Definition { id: job_id("daily", 1), ..job("nightly", "0 10 * * *") });
    assert_refused(world.store.create_job(&change::create(same_id), &entry).await, "conflict");
    assert_refused(world.store.get_job(&by_key("nightly")).await, "not found");

    let second = everbell_core::with!(Definition { id: job_id("daily", 2), version: 2, ..job("daily", "0 10 * * *") });
    assert_eq!(world.create(second).await.job.definition.version, 2);
}

pub async fn a_key_names_its_living_version_or_else_the_newest(fresh: Fresh) {
    let world = World::new(&fresh);
    let version = |version| {
        everbell_core::with!(Definition { id: job_id("daily", version), version, ..job("daily", "0 9 * * *") })
    };
    world.create(version(3)).await;
    world.retire("daily", at("01:00")).await;
    world.create(version(1)).await;
    assert_eq!(world.get("daily").await.job.definition.version, 1, "the living one");
    world.retire("daily", at("02:00")).await;
    assert_eq!(world.get("daily").await.job.definition.version, 3, "the newest of the retired");
}

pub async fn a_job_may_begin_paused(fresh: Fresh) {
    let world = World::new(&fresh);
    let mut new = change::create(job("daily", "* * * * *"));
    let pause = pause_of(at("00:00"));
    new.state = everbell_core::with!(JobState { status: JobStatus::Paused, pause: Some(pause), ..new.state });
    new.timer = new.timer.as_ref().map(everbell_core::plan::disarm);
    let row = world.insert(&new).await;
    assert_eq!(row.job.state, new.state);
    assert_eq!(row.timer, new.timer);
    assert_eq!(world.plan(at("12:00")).await.timers, 0);
}

pub async fn a_schedule_that_cannot_be_read_keeps_its_text(fresh: Fresh) {
    let world = World::new(&fresh);
    let broken = Unschedulable {
        expression: Some("0 9 * * *".to_owned()),
        timezone: "Mars/Olympus_Mons".to_owned(),
        dst: Dst { gap: DstGap::Skip, fold: DstFold::Both },
        start_at: Some(at("01:00")),
        end_at: Some(at("2030-01-01T00:00:00Z")),
        anchor: Some(at("00:20")),
        reason: "`Mars/Olympus_Mons` is not a time zone".to_owned(),
        ..Unschedulable::default()
    };
    let mut new = change::create(everbell_core::with!(Definition { spec: Err(broken), ..job("daily", "0 9 * * *") }));
    new.timer.as_mut().unwrap().next_run_at = Some(at("09:00"));
    world.insert(&new).await;
    let read = world.get("daily").await;
    let broken = read.job.definition.spec.clone().unwrap_err();
    assert_eq!((broken.expression.as_deref(), broken.timezone.as_str()), (Some("0 9 * * *"), "Mars/Olympus_Mons"));
    assert!(!broken.reason.is_empty());
    assert_eq!(broken.dst, Dst { gap: DstGap::Skip, fold: DstFold::Both });
    assert_eq!((broken.start_at, broken.end_at), (Some(at("01:00")), Some(at("2030-01-01T00:00:00Z"))));
    assert_eq!(broken.anchor, Some(at("00:20")));
    assert_eq!(
        read.timer.unwrap().next_run_at,
        Some(at("09:00")),
        "it is due, and planning it says why it cannot fire"
    );
}

pub async fn the_last_run_is_the_one_of_the_latest_slot(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.run_due(&super::world::success(), at("01:00")).await;
    let claims = world.run_due(&super::world::success(), at("02:00")).await;
    let row = world.get("hourly").await;
    assert_eq!(row.last_run, Some(world.run(claims[0].run.id).await));
    let listed = world.jobs_in_pages(&JobFilter::default(), 10).await;
    assert_eq!(listed, [row]);
}
