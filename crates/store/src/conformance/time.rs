//! Time: microseconds, distant years, equal instants.

use everbell_core::change;
use everbell_core::store::{JobFilter, JobSort, RunFilter, StartRuns};
use everbell_core::{Definition, Pause, Spec, Zone};
use jiff::Timestamp;

use super::Fresh;
use super::given::{LOG, at, audit, instance, instance_id, job, job_at, job_id};
use super::world::{World, room, success};

pub async fn what_is_finer_than_a_microsecond_is_dropped(fresh: Fresh) {
    let world = World::new(&fresh);
    let fine = at("01:02:03.123456789");
    let kept = at("01:02:03.123456");
    let row = world.create(job_at("fine", "0 * * * *", fine)).await;
    assert_eq!(row.job.definition.created_at, kept);
    assert_eq!(row.timer.clone().unwrap().last_slot_at, kept);
    assert_eq!(row.job.state.updated_at, kept);
    assert_eq!(world.get("fine").await, row);
    let pause = Pause { until: Some(at("02:00:00.000000999")), ..super::world::pause_of(fine) };
    let changed = world.try_change("fine", fine, |view| change::pause(view, pause.clone())).await.unwrap();
    let pause = changed.job.job.state.pause.unwrap();
    assert_eq!((pause.at, pause.until), (kept, Some(at("02:00"))));
}

pub async fn runs_and_leases_keep_microseconds(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.plan(at("01:00:00.000001999")).await;
    let targets = room(&[(LOG, 10)]);
    let request = StartRuns {
        instance: instance_id(1),
        targets: &targets,
        limit: 10,
        now: at("01:00:01.000002999"),
        lease_until: at("01:00:31.999999999"),
    };
    let claim = world.store.start_runs(&request).await.unwrap().remove(0);
    assert_eq!(claim.run.created_at, at("01:00:00.000001"));
    assert_eq!((claim.run.started_at, claim.lease_until), (Some(at("01:00:01.000002")), at("01:00:31.999999")));
    assert_eq!(world.run(claim.run.id).await, claim.run, "the answer is what is stored");
    world.finish(std::slice::from_ref(&claim), &success(), at("01:00:02.123456789")).await;
    assert_eq!(world.run(claim.run.id).await.finished_at, Some(at("01:00:02.123456")));
}

pub async fn a_timer_is_due_to_the_microsecond(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("once", "once 12:00:00.125")).await;
    assert_eq!(world.plan(at("12:00:00.124999")).await.next_due_at, Some(at("12:00:00.125")));
    assert_eq!(world.plan(at("12:00:00.125")).await.timers, 1);
}

pub async fn distant_years_read_back(fresh: Fresh) {
    let world = World::new(&fresh);
    for (key, time) in [("old", "1900-01-02T03:04:05.678Z"), ("new", "2199-12-30T03:04:05.678Z")] {
        let created_at: Timestamp = at("1900-01-01T00:00:00.000001Z");
        let spec = Spec::once(at(time), Zone::utc()).unwrap();
        let row = world
            .create(everbell_core::with!(Definition { spec: Ok(spec), ..job_at(key, "@daily", created_at) }))
            .await;
        assert_eq!(row.timer.as_ref().unwrap().next_run_at, Some(at(time)));
        assert_eq!(row.job.definition.created_at, created_at);
        assert_eq!(world.get(key).await, row);
    }
    let planned = world.plan(at("1900-01-02T03:04:05.678Z")).await;
    assert_eq!((planned.timers, planned.next_due_at), (1, Some(at("2199-12-30T03:04:05.678Z"))));
    let planned = world.plan(at("2199-12-30T03:04:05.678Z")).await;
    assert_eq!((planned.timers, planned.next_due_at), (1, None));
    let slots: Vec<_> = world.runs().await.iter().map(|run| run.slot_at).collect();
    assert_eq!(slots, [Some(at("2199-12-30T03:04:05.678Z")), Some(at("1900-01-02T03:04:05.678Z"))]);
}

pub async fn instances_keep_their_times(fresh: Fresh) {
    let world = World::new(&fresh);
    world.store.heartbeat(&instance(1, at("01:02:03.123456789")), None, false).await.unwrap();
    assert_eq!(world.store.list_instances().await.unwrap()[0].heartbeat_at, at("01:02:03.123456"));
}

pub async fn audit_entries_keep_their_times(fresh: Fresh) {
    let world = World::new(&fresh);
    world.store.append_audit(&audit("did", "it", at("01:02:03.123456789"))).await.unwrap();
    let listed = world.store.list_audit(None, &super::given::page(1)).await.unwrap();
    assert_eq!(listed.items[0].at, at("01:02:03.123456"));
}

pub async fn jobs_of_the_same_instant_are_all_listed(fresh: Fresh) {
    let world = World::new(&fresh);
    for number in 0..9 {
        let id = job_id(&format!("id-{number}"), 1);
        world
            .create(everbell_core::with!(Definition { id, ..job(&format!("job-{}", (number * 7) % 9), "0 1 * * *") }))
            .await;
    }
    for sort in [JobSort::CreatedAt, JobSort::NextRunAt] {
        let filter = JobFilter { sort, ..JobFilter::default() };
        for limit in [1, 2, 4] {
            let rows = world.jobs_in_pages(&filter, limit).await;
            let mut keys: Vec<_> = rows.iter().map(|row| row.job.definition.key.clone()).collect();
            keys.sort();
            keys.dedup();
            assert_eq!((rows.len(), keys.len()), (9, 9), "{sort:?} in pages of {limit}");
        }
    }
}

pub async fn runs_of_the_same_instant_are_all_listed(fresh: Fresh) {
    let world = World::new(&fresh);
    for number in 0..9 {
        world.create(job(&format!("job-{number}"), "0 1 * * *")).await;
    }
    world.plan(at("01:00")).await;
    let filter = RunFilter { from: Some(at("01:00")), to: Some(at("01:00:00.001")), ..RunFilter::default() };
    for limit in [1, 2, 4] {
        let mut ids: Vec<_> = world.runs_in_pages(&filter, limit).await.iter().map(|run| run.id).collect();
        ids.dedup();
        assert_eq!(ids.len(), 9, "pages of {limit}");
    }
}

pub async fn the_clock_of_the_store_does_not_go_back(fresh: Fresh) {
    let world = World::new(&fresh);
    let first = world.store.now().await.unwrap();
    let second = world.store.now().await.unwrap();
    assert!(second >= first, "{second} after {first}");
}
