//! Lists of runs: filters, order, pages.

use everbell_core::store::{Cursor, PageRequest, RunFilter};
use everbell_core::{JobKey, OrgId, Overlap, Run, RunStatus, TriggerType};

use super::Fresh;
use super::given::{MAIL, assert_refused, at, audit, instance_id, job, job_id, page, target, to, trial, with};
use super::world::{World, failure, success};

/// Nine runs of all kinds.
async fn crowd(world: &World) {
    world.create(job("good", "0 1 * * *")).await;
    world.create(to(job("bad", "0 2 * * *"), MAIL)).await;
    world.create(with(job("busy", "0 3,4 * * *"), |values| values.overlap = Overlap::Skip)).await;
    world.create_for("acme", job("brief", "0 5 * * *")).await;
    world.run_due(&success(), at("01:00")).await;
    world.plan(at("02:00")).await;
    let claims = world.start_on(2, at("02:00"), 1).await;
    world.finish(&claims, &failure(), at("02:01")).await;
    world.plan(at("03:00")).await;
    world.start_on(1, at("03:00"), 1).await;
    world.plan(at("04:00")).await;
    world.plan(at("05:00")).await;
    world.run_now("good", "by hand", at("06:00")).await;
    let run = trial("trial", MAIL, at("07:00"));
    world.store.insert_run(&run, &audit("target.try", "target:mail", at("07:00"))).await.unwrap();
}

/// Returns the runs that match a filter as `<job>@<hour>`, newest first.
async fn found(world: &World, filter: &RunFilter) -> Vec<String> {
    let name = |run: &Run| {
        let key = run.job_key.as_ref().map_or("-", JobKey::as_str);
        format!("{key}@{}", run.scheduled_at.strftime("%H"))
    };
    world.runs_like(filter).await.iter().map(name).collect()
}

pub async fn runs_are_listed_newest_first(fresh: Fresh) {
    let world = World::new(&fresh);
    crowd(&world).await;
    let all = ["-@07", "good@06", "brief@05", "busy@04", "busy@03", "bad@02", "good@01"];
    assert_eq!(found(&world, &RunFilter::default()).await, all);
    for run in world.runs().await {
        assert_eq!(world.run(run.id).await, run, "a list shows what a run is");
    }
}

pub async fn runs_are_found_by_job(fresh: Fresh) {
    let world = World::new(&fresh);
    crowd(&world).await;
    let (id, now) = (job_id("good", 2), at("08:00"));
    let edit = everbell_core::change::Edit::default;
    let change =
        |view: &everbell_core::change::JobView| everbell_core::change::new_version(view, edit(), id, true, "ana", now);
    world.try_change("good", now, change).await.unwrap();
    world.run_now("good", "second version", at("09:00")).await;
    let none = RunFilter::default();
    let by_id = |key, version| RunFilter { job_id: Some(job_id(key, version)), ..none.clone() };
    assert_eq!(found(&world, &by_id("good", 1)).await, ["good@06", "good@01"]);
    assert_eq!(found(&world, &by_id("good", 2)).await, ["good@09"]);
    assert_eq!(found(&world, &by_id("never", 1)).await, [""; 0]);
    let key = Some(JobKey::new("good").unwrap());
    let by_key = RunFilter { job_key: key, ..none.clone() };
    assert_eq!(found(&world, &by_key).await, ["good@09", "good@06", "good@01"], "of every version");
    let unknown = RunFilter { job_key: Some(JobKey::new("never").unwrap()), ..none };
    assert_eq!(found(&world, &unknown).await, [""; 0]);
}

pub async fn runs_are_found_by_status(fresh: Fresh) {
    let world = World::new(&fresh);
    crowd(&world).await;
    let with = |status: &[RunStatus]| RunFilter { status: status.to_vec(), ..RunFilter::default() };
    for (status, expected) in [
        (RunStatus::Succeeded, vec!["good@01"]),
        (RunStatus::Failed, vec!["bad@02"]),
        (RunStatus::Running, vec!["busy@03"]),
        (RunStatus::Skipped, vec!["busy@04"]),
        (RunStatus::Pending, vec!["-@07", "good@06", "brief@05"]),
        (RunStatus::Canceled, vec![]),
    ] {
        assert_eq!(found(&world, &with(&[status])).await, expected, "{status}");
    }
    let several = with(&[RunStatus::Failed, RunStatus::Skipped, RunStatus::Running]);
    assert_eq!(found(&world, &several).await, ["busy@04", "busy@03", "bad@02"]);
}

pub async fn runs_are_found_by_target_trigger_org_instance_and_code(fresh: Fresh) {
    let world = World::new(&fresh);
    crowd(&world).await;
    let none = RunFilter::default();
    let mail = RunFilter { target: vec![target(MAIL)], ..none.clone() };
    assert_eq!(found(&world, &mail).await, ["-@07", "bad@02"]);
    let either = RunFilter { target: vec![target(MAIL), target("log")], ..none.clone() };
    assert_eq!(found(&world, &either).await.len(), 7);
    let trigger = |kind| RunFilter { trigger: Some(kind), ..none.clone() };
    assert_eq!(found(&world, &trigger(TriggerType::Manual)).await, ["good@06"]);
    assert_eq!(found(&world, &trigger(TriggerType::AdHoc)).await, ["-@07"]);
    assert_eq!(found(&world, &trigger(TriggerType::Scheduled)).await.len(), 5);
    let org = RunFilter { org: Some(OrgId::new("acme").unwrap()), ..none.clone() };
    assert_eq!(found(&world, &org).await, ["brief@05"]);
    let nobody = RunFilter { org: Some(OrgId::new("globex").unwrap()), ..none.clone() };
    assert_eq!(found(&world, &nobody).await, [""; 0]);
    let on = |number| RunFilter { instance: Some(instance_id(number)), ..none.clone() };
    assert_eq!(found(&world, &on(1)).await, ["busy@03", "good@01"], "at work there and ended there");
    assert_eq!(found(&world, &on(2)).await, ["bad@02"]);
    for (number, status, runs) in [
        (1, &[RunStatus::Succeeded][..], &["good@01"][..]),
        (1, &[RunStatus::Running, RunStatus::Succeeded, RunStatus::Skipped], &["busy@03", "good@01"]),
        (1, &[RunStatus::Failed, RunStatus::Skipped], &[]),
        (2, &[RunStatus::Failed, RunStatus::Succeeded], &["bad@02"]),
        (2, &[RunStatus::Failed, RunStatus::Pending], &["bad@02"]),
        (3, RunStatus::ALL, &[]),
    ] {
        let filter = RunFilter { status: status.to_vec(), ..on(number) };
        assert_eq!(found(&world, &filter).await, runs, "{status:?} on {number}");
        assert_eq!(world.store.count_runs(&filter, 10).await.unwrap() as usize, runs.len(), "{status:?} on {number}");
    }
    let letters = RunFilter { target: vec![target(MAIL)], trigger: Some(TriggerType::Scheduled), ..on(2) };
    assert_eq!(found(&world, &letters).await, ["bad@02"]);
    assert_eq!(found(&world, &RunFilter { trigger: Some(TriggerType::Manual), ..letters }).await, [""; 0]);
    let code = |word: &str| RunFilter { failure_code: Some(word.to_owned()), ..none.clone() };
    assert_eq!(found(&world, &code("handler_error")).await, ["bad@02"]);
    assert_eq!(found(&world, &code("timeout")).await, [""; 0]);
}

pub async fn runs_are_found_by_time(fresh: Fresh) {
    let world = World::new(&fresh);
    crowd(&world).await;
    let between =
        |from: Option<&str>, to: Option<&str>| RunFilter { from: from.map(at), to: to.map(at), ..RunFilter::default() };
    assert_eq!(found(&world, &between(Some("06:00"), None)).await, ["-@07", "good@06"], "from is part of it");
    assert_eq!(found(&world, &between(None, Some("02:00"))).await, ["good@01"], "to is not");
    assert_eq!(found(&world, &between(Some("02:00"), Some("04:00"))).await, ["busy@03", "bad@02"]);
    assert_eq!(found(&world, &between(Some("04:00"), Some("04:00"))).await, [""; 0]);
}

pub async fn runs_are_counted_up_to_a_cap(fresh: Fresh) {
    let world = World::new(&fresh);
    crowd(&world).await;
    let none = RunFilter::default();
    let count = async |filter: &RunFilter, cap| world.store.count_runs(filter, cap).await.unwrap();
    assert_eq!(
        [count(&none, 1).await, count(&none, 6).await, count(&none, 7).await, count(&none, 10_000).await],
        [1, 6, 7, 7]
    );
    let of = |status: &[RunStatus]| RunFilter { status: status.to_vec(), ..none.clone() };
    for filter in [
        of(&[RunStatus::Failed, RunStatus::Skipped, RunStatus::Running]),
        of(&[RunStatus::Succeeded, RunStatus::Pending]),
        RunFilter { job_key: Some(JobKey::new("busy").unwrap()), ..none.clone() },
        RunFilter { target: vec![target(MAIL)], from: Some(at("03:00")), ..none.clone() },
        RunFilter { failure_code: Some("handler_error".to_owned()), ..none.clone() },
    ] {
        let listed = found(&world, &filter).await.len();
        assert_eq!(count(&filter, 1_000).await as usize, listed, "{filter:?}");
        assert_eq!(count(&filter, 1).await, 1, "{filter:?}");
    }
    for cap in [0, 10_001, u32::MAX] {
        assert_refused(world.store.count_runs(&none, cap).await, "invalid");
    }
}

pub async fn everything_that_is_given_must_hold(fresh: Fresh) {
    let world = World::new(&fresh);
    crowd(&world).await;
    let filter = RunFilter {
        job_key: Some(JobKey::new("busy").unwrap()),
        job_id: Some(job_id("busy", 1)),
        status: vec![RunStatus::Running, RunStatus::Pending],
        target: vec![target("log")],
        trigger: Some(TriggerType::Scheduled),
        instance: Some(instance_id(1)),
        from: Some(at("03:00")),
        to: Some(at("05:00")),
        ..RunFilter::default()
    };
    assert_eq!(found(&world, &filter).await, ["busy@03"]);
    let other = RunFilter { instance: Some(instance_id(2)), ..filter };
    assert_eq!(found(&world, &other).await, [""; 0]);
}

pub async fn pages_of_any_size_hold_the_same_runs(fresh: Fresh) {
    let world = World::new(&fresh);
    // Ten runs of each instant, so pages end between equal times.
    for number in 0..10 {
        world.create(job(&format!("job-{number}"), "0 * * * *")).await;
    }
    for hour in ["01:00", "02:00", "03:00"] {
        let outcome = if hour == "02:00" { failure() } else { success() };
        world.run_due(&outcome, at(hour)).await;
    }
    for filter in [
        RunFilter::default(),
        RunFilter { status: vec![RunStatus::Succeeded], ..RunFilter::default() },
        RunFilter { job_key: Some(JobKey::new("job-3").unwrap()), ..RunFilter::default() },
    ] {
        let whole = world.runs_like(&filter).await;
        assert!(whole.windows(2).all(|pair| pair[0].id > pair[1].id), "newest first, by id");
        for limit in [1, 2, 7, 30] {
            assert_eq!(world.runs_in_pages(&filter, limit).await, whole, "pages of {limit}");
        }
    }
    assert_eq!(world.runs().await.len(), 30);
}

pub async fn a_page_neither_repeats_nor_hides_runs_when_others_come(fresh: Fresh) {
    let world = World::new(&fresh);
    for number in 0..6 {
        world.create(job(&format!("job-{number}"), "0 * * * *")).await;
    }
    world.plan(at("01:00")).await;
    let before = world.runs().await;
    let first = world.store.list_runs(&RunFilter::default(), &page(2)).await.unwrap();
    world.run_due(&success(), at("02:00")).await;
    world.run_now("job-0", "by hand", at("02:30")).await;
    let mut seen = first.items;
    let mut after = first.next;
    while after.is_some() {
        let next = world.store.list_runs(&RunFilter::default(), &PageRequest { limit: 2, after }).await.unwrap();
        seen.extend(next.items);
        after = next.next;
    }
    let ids = |runs: &[Run]| runs.iter().map(|run| run.id).collect::<Vec<_>>();
    assert_eq!(ids(&seen), ids(&before));
}

pub async fn the_last_page_has_no_next(fresh: Fresh) {
    let world = World::new(&fresh);
    let empty = world.store.list_runs(&RunFilter::default(), &page(5)).await.unwrap();
    assert_eq!((empty.items.len(), empty.next), (0, None));
    world.create(job("hourly", "0 * * * *")).await;
    world.run_due(&success(), at("01:00")).await;
    world.run_due(&success(), at("02:00")).await;
    let full = world.store.list_runs(&RunFilter::default(), &page(2)).await.unwrap();
    assert_eq!(full.items.len(), 2);
    if let Some(after) = full.next {
        // Whether a page that is just full names a next one is left open; if so, that is empty.
        let rest = world.store.list_runs(&RunFilter::default(), &PageRequest { limit: 2, after: Some(after) }).await;
        let rest = rest.unwrap();
        assert_eq!((rest.items.len(), rest.next), (0, None));
    }
}

pub async fn a_cursor_that_no_page_gave_is_refused_or_harmless(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.run_due(&success(), at("01:00")).await;
    for value in ["", "never", "'; drop table runs; --", "99999999999999999999999999"] {
        let after = Some(Cursor { value: value.to_owned(), id: uuid::Uuid::nil() });
        let answer = world.store.list_runs(&RunFilter::default(), &PageRequest { limit: 2, after }).await;
        if answer.is_err() {
            assert_refused(answer, "invalid");
        }
    }
    assert_eq!(world.runs().await.len(), 1);
}
