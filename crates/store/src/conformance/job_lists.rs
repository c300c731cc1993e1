//! Lists of jobs: filters, orders, pages.

use everbell_core::change::{self, Edit, JobView};
use everbell_core::store::{JobFilter, JobRow, JobSort, PageRequest, PlanDue};
use everbell_core::{Definition, JobKey, JobStatus, RunStatus, Source};

use super::Fresh;
use super::given::{MAIL, at, job, job_at, job_id, target, to};
use super::world::{World, canceled, failure, success};

pub async fn jobs_are_found_by_status(fresh: Fresh) {
    let world = World::new(&fresh);
    for key in ["active", "paused", "retired"] {
        world.create(job(key, "@hourly")).await;
    }
    world.pause("paused", at("00:10")).await;
    world.retire("retired", at("00:10")).await;
    let with = |status: &[JobStatus]| JobFilter { status: status.to_vec(), ..JobFilter::default() };
    assert_eq!(world.keys(&with(&[])).await, ["active", "paused", "retired"]);
    assert_eq!(world.keys(&with(&[JobStatus::Paused])).await, ["paused"]);
    assert_eq!(world.keys(&with(&[JobStatus::Retired, JobStatus::Active])).await, ["active", "retired"]);
}

pub async fn replaced_versions_are_left_out_where_only_the_latest_are_asked_for(fresh: Fresh) {
    let world = World::new(&fresh);
    for key in ["edited", "gone", "plain"] {
        world.create(job(key, "@hourly")).await;
    }
    for key in ["edited", "gone"] {
        let edit = Edit { description: Some("again".to_owned()), ..Edit::default() };
        let change = |view: &JobView| change::new_version(view, edit.clone(), job_id(key, 2), false, "bo", at("00:10"));
        world.try_change(key, at("00:10"), change).await.unwrap();
    }
    world.retire("gone", at("00:20")).await;
    let retired = JobFilter { status: vec![JobStatus::Retired], ..JobFilter::default() };
    assert_eq!(world.keys(&retired).await, ["edited", "gone", "gone"]);
    for sort in [JobSort::Key, JobSort::NextRunAt, JobSort::CreatedAt, JobSort::Target, JobSort::LastRun] {
        let latest = JobFilter { latest: true, sort, ..retired.clone() };
        assert_eq!(world.keys(&latest).await, ["gone"], "{sort:?}");
        assert_eq!(world.store.count_jobs(&latest, 10).await.unwrap(), 1, "{sort:?}");
    }
    let mut all = world.keys(&JobFilter { latest: true, ..JobFilter::default() }).await;
    all.sort();
    assert_eq!(all, ["edited", "gone", "plain"]);
}

pub async fn jobs_are_found_by_target_key_and_source(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("a", "@hourly")).await;
    world.create(to(job("b", "@hourly"), MAIL)).await;
    world.create(everbell_core::with!(Definition { source: Source::Code, ..to(job("c", "@hourly"), MAIL) })).await;
    let all = JobFilter::default();
    let mail = JobFilter { target: vec![target(MAIL)], ..all.clone() };
    assert_eq!(world.keys(&mail).await, ["b", "c"]);
    assert_eq!(world.keys(&JobFilter { source: Some(Source::Code), ..mail.clone() }).await, ["c"]);
    assert_eq!(world.keys(&JobFilter { source: Some(Source::Config), ..mail.clone() }).await, [""; 0]);
    let key = Some(JobKey::new("a").unwrap());
    assert_eq!(world.keys(&JobFilter { key: key.clone(), ..all }).await, ["a"]);
    assert_eq!(world.keys(&JobFilter { key, ..mail }).await, [""; 0], "everything that is given must hold");
}

pub async fn jobs_are_found_by_how_their_last_run_stands(fresh: Fresh) {
    let world = World::new(&fresh);
    for (key, schedule) in [("good", "0 1 * * *"), ("bad", "0 2 * * *"), ("waits", "0 3 * * *"), ("new", "0 4 * * *")] {
        world.create(job(key, schedule)).await;
    }
    world.run_due(&success(), at("01:00")).await;
    world.run_due(&failure(), at("02:00")).await;
    world.plan(at("03:00")).await;
    let with = |status: &[RunStatus]| JobFilter { last_status: status.to_vec(), ..JobFilter::default() };
    assert_eq!(world.keys(&with(&[RunStatus::Failed])).await, ["bad"]);
    assert_eq!(world.keys(&with(&[RunStatus::Succeeded, RunStatus::Pending])).await, ["good", "waits"]);
    assert_eq!(world.keys(&with(&[RunStatus::Skipped])).await, [""; 0]);
}

pub async fn jobs_are_found_by_what_became_of_the_last_run_and_of_no_other(fresh: Fresh) {
    let world = World::new(&fresh);
    for (key, schedule) in
        [("mended", "0 1,2 * * *"), ("broke", "0 2,3 * * *"), ("stopped", "0 4 * * *"), ("passed", "0 5,6 * * *")]
    {
        world.create(job(key, schedule)).await;
    }
    world.run_due(&failure(), at("01:00")).await;
    world.run_due(&success(), at("02:00")).await;
    world.run_due(&failure(), at("03:00")).await;
    world.plan(at("04:00")).await;
    let with = |status: &[RunStatus]| JobFilter { last_status: status.to_vec(), ..JobFilter::default() };
    assert_eq!(world.keys(&with(&[RunStatus::Pending])).await, ["stopped"]);
    assert_eq!(world.keys(&with(&[RunStatus::Pending, RunStatus::Failed])).await, ["broke", "stopped"]);
    let claims = world.start(at("04:00")).await;
    assert_eq!(world.keys(&with(&[RunStatus::Running])).await, ["stopped"]);
    world.finish(&claims, &canceled(), at("04:01")).await;
    // The second slot comes while the first one waits.
    world.plan(at("05:00")).await;
    world.plan(at("06:00")).await;
    for (status, keys) in [
        (&[RunStatus::Failed][..], &["broke"][..]),
        (&[RunStatus::Canceled], &["stopped"]),
        (&[RunStatus::Canceled, RunStatus::Failed], &["broke", "stopped"]),
        (&[RunStatus::Skipped], &["passed"]),
        (&[RunStatus::Pending, RunStatus::Running], &[]),
        (&[RunStatus::Pending, RunStatus::Skipped, RunStatus::Failed], &["broke", "passed"]),
        (&[RunStatus::Succeeded, RunStatus::Canceled], &["mended", "stopped"]),
        (RunStatus::ALL, &["broke", "mended", "passed", "stopped"]),
    ] {
        for sort in [JobSort::Key, JobSort::NextRunAt, JobSort::CreatedAt, JobSort::Target, JobSort::LastRun] {
            let filter = JobFilter { sort, ..with(status) };
            let mut found = world.keys(&filter).await;
            found.sort_unstable();
            assert_eq!(found, keys, "{status:?} by {sort:?}");
            assert_eq!(world.store.count_jobs(&filter, 100).await.unwrap() as usize, keys.len(), "{status:?}");
        }
    }
}

pub async fn jobs_whose_last_run_is_the_newest_come_first(fresh: Fresh) {
    let world = World::new(&fresh);
    for (key, schedule) in [("old", "0 1 * * *"), ("new", "0 1,3 * * *"), ("never", "0 9 * * *"), ("mid", "0 2 * * *")]
    {
        world.create(job(key, schedule)).await;
    }
    for hour in ["01:00", "02:00", "03:00"] {
        world.run_due(&success(), at(hour)).await;
    }
    let filter = JobFilter { sort: JobSort::LastRun, ..JobFilter::default() };
    assert_eq!(world.keys(&filter).await, ["new", "mid", "old", "never"]);
    let succeeded = JobFilter { last_status: vec![RunStatus::Succeeded], ..filter.clone() };
    assert_eq!(world.keys(&succeeded).await, ["new", "mid", "old"]);
    // A run that comes in between moves its job to the front: it is not on the pages behind, and nothing is there twice.
    let first = world.store.list_jobs(&filter, &super::given::page(1)).await.unwrap();
    world.run_now("old", "by hand", at("04:00")).await;
    let behind = world.store.list_jobs(&filter, &PageRequest { limit: 10, after: first.next }).await.unwrap();
    let keys: Vec<&str> = behind.items.iter().map(|row| row.job.definition.key.as_str()).collect();
    assert_eq!(keys, ["mid", "never"]);
    assert_eq!(world.keys(&filter).await, ["old", "new", "mid", "never"], "also by a run by hand");
}

pub async fn the_last_run_is_the_one_of_the_latest_time_whenever_it_was_made(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("late", "0 1 * * *")).await;
    world.create(job("other", "10 1 * * *")).await;
    world.create_for("acme", job("orgs", "20 1 * * *")).await;
    // By hand before the slot is noticed: its time is later than that of the slot, which is written later.
    let by_hand = world.run_now("late", "by hand", at("01:15")).await.runs[0].id;
    let claims = world.start(at("01:15")).await;
    world.finish(&claims, &failure(), at("01:16")).await;
    world.run_due(&success(), at("01:30")).await;
    assert_eq!(world.runs().await.len(), 4);
    assert_eq!(world.get("late").await.last_run.map(|run| run.id), Some(by_hand));
    let by_last = |status: &[RunStatus]| JobFilter {
        sort: JobSort::LastRun,
        last_status: status.to_vec(),
        ..JobFilter::default()
    };
    assert_eq!(world.keys(&by_last(&[])).await, ["orgs", "late", "other"], "an org's run is one of the job");
    assert_eq!(world.keys(&by_last(&[RunStatus::Failed])).await, ["late"]);
    assert_eq!(world.keys(&by_last(&[RunStatus::Succeeded])).await, ["orgs", "other"]);
    let in_pages = world.jobs_in_pages(&by_last(&[]), 1).await;
    assert_eq!(in_pages, world.jobs_in_pages(&by_last(&[]), 10).await);
}

pub async fn errored_jobs_are_found(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("broken", "0 1 * * *")).await;
    world.create(job("whole", "0 2 * * *")).await;
    let broken = |due: &everbell_core::store::Due, _| {
        let timer = everbell_core::plan::disarm(&due.timer);
        everbell_core::plan::Plan {
            error: Some("no such zone".to_owned()),
            ..everbell_core::plan::Plan::nothing(&timer)
        }
    };
    world.store.plan_due(&PlanDue::new(at("01:00"), 10, &super::world::targets()), &broken).await.unwrap();
    let with = |errored| JobFilter { errored: Some(errored), ..JobFilter::default() };
    assert_eq!(world.keys(&with(true)).await, ["broken"]);
    assert_eq!(world.keys(&with(false)).await, ["whole"]);
    let trail = world.store.list_audit(Some("job:broken"), &super::given::page(10)).await.unwrap().items;
    let entry = trail.iter().find(|entry| entry.action == "job.errored").expect("the audit trail tells it");
    assert_eq!(
        (entry.actor.as_str(), entry.at, entry.reason.as_deref()),
        ("everbell", at("01:00"), Some("no such zone"))
    );
    assert_eq!(trail.len(), 2, "once, beside its creation");
}

pub async fn failing_jobs_are_found(fresh: Fresh) {
    let world = World::new(&fresh);
    for (key, schedule) in
        [("good", "0 1 * * *"), ("bad", "0 2 * * *"), ("mended", "0 2,3 * * *"), ("new", "0 9 * * *")]
    {
        world.create(job(key, schedule)).await;
    }
    world.run_due(&success(), at("01:00")).await;
    world.run_due(&failure(), at("02:00")).await;
    world.run_due(&success(), at("03:00")).await;
    let with = |failing| JobFilter { failing: Some(failing), ..JobFilter::default() };
    assert_eq!(world.keys(&with(true)).await, ["bad"]);
    assert_eq!(world.keys(&with(false)).await, ["good", "mended", "new"]);
}

pub async fn jobs_are_found_by_whether_they_fire_once_or_at_all(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("often", "0 * * * *")).await;
    world.create(job("once", "once 02:00")).await;
    world.create(job("paused", "0 * * * *")).await;
    world.create_for("acme", job("orgs", "0 * * * *")).await;
    world.pause("paused", at("00:10")).await;
    let one_time = |one_time| JobFilter { one_time: Some(one_time), ..JobFilter::default() };
    assert_eq!(world.keys(&one_time(true)).await, ["once"]);
    assert_eq!(world.keys(&one_time(false)).await, ["often", "orgs", "paused"]);
    let scheduled = |scheduled| JobFilter { scheduled: Some(scheduled), ..JobFilter::default() };
    assert_eq!(world.keys(&scheduled(true)).await, ["often", "once", "orgs"], "also by a timer of an org");
    assert_eq!(world.keys(&scheduled(false)).await, ["paused"]);
    world.plan(at("02:00")).await;
    let idle = JobFilter { status: vec![JobStatus::Active], ..scheduled(false) };
    assert_eq!(world.keys(&idle).await, ["once"], "it waits for the end of its run and for nothing else");
}

pub async fn jobs_are_found_by_label(fresh: Fresh) {
    let world = World::new(&fresh);
    let labels = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    let awkward = [("say \"hi\"", "1"), ("team", "ops\\é\n")];
    for (key, pairs) in [
        ("a", &[("env", "prod"), ("team", "ops")][..]),
        ("b", &[("team", "dev")]),
        ("c", &[("steam", "ops"), ("x", "\"team\":\"ops\"")]),
        ("d", &awkward),
        ("e", &[]),
    ] {
        world.create(everbell_core::with!(Definition { labels: labels(pairs), ..job(key, "@hourly") })).await;
    }
    let found = async |name: &str, value: Option<&str>| {
        let label = Some((name.to_owned(), value.map(str::to_owned)));
        world.keys(&JobFilter { label, ..JobFilter::default() }).await
    };
    assert_eq!(found("team", None).await, ["a", "b", "d"]);
    assert_eq!(found("team", Some("ops")).await, ["a"]);
    assert_eq!(found("team", Some("op")).await, [""; 0], "all of the value");
    assert_eq!(found("env", Some("prod")).await, ["a"]);
    for (name, value) in awkward {
        assert_eq!(found(name, Some(value)).await, ["d"]);
    }
    assert_eq!(found("", None).await, [""; 0]);
}

pub async fn jobs_are_counted_up_to_a_cap(fresh: Fresh) {
    let world = World::new(&fresh);
    crowd(&world).await;
    let all = JobFilter::default();
    let count = async |filter: &JobFilter, cap| world.store.count_jobs(filter, cap).await.unwrap();
    assert_eq!(
        [count(&all, 1).await, count(&all, 13).await, count(&all, 14).await, count(&all, 10_000).await],
        [1, 13, 14, 14]
    );
    for filter in [
        JobFilter { status: vec![JobStatus::Paused], ..all.clone() },
        JobFilter { target: vec![target(MAIL)], sort: JobSort::NextRunAt, ..all.clone() },
        JobFilter { text: Some("VERSION 3".to_owned()), ..all.clone() },
        JobFilter { text: Some("größe".to_owned()), ..all.clone() },
        JobFilter { scheduled: Some(false), sort: JobSort::Target, ..all.clone() },
    ] {
        assert_eq!(count(&filter, 1_000).await as usize, world.keys(&filter).await.len(), "{filter:?}");
    }
    for cap in [0, 10_001, u32::MAX] {
        super::given::assert_refused(world.store.count_jobs(&all, cap).await, "invalid");
    }
}

pub async fn text_is_looked_for_in_key_target_and_description(fresh: Fresh) {
    let world = World::new(&fresh);
    world
        .create(everbell_core::with!(Definition {
            description: "Cleans the Attic".to_owned(),
            ..job("sweep", "@hourly")
        }))
        .await;
    world.create(to(job("letters", "@hourly"), MAIL)).await;
    world.create(job("Mailbox", "@hourly")).await;
    let found = async |text: &str| world.keys(&JobFilter { text: Some(text.to_owned()), ..JobFilter::default() }).await;
    assert_eq!(found("attic").await, ["sweep"]);
    assert_eq!(found("MAIL").await, ["Mailbox", "letters"], "in any case, in key and target");
    assert_eq!(found("").await.len(), 3);
    assert_eq!(found("cellar").await, [""; 0]);
}

pub async fn text_is_text_and_no_pattern(fresh: Fresh) {
    let world = World::new(&fresh);
    for key in ["100%", "a_b", "axb", "it's", "say \"hi\"", "back\\slash", "*", "[a-z]", "größe"] {
        world.create(job(key, "@hourly")).await;
    }
    let found = async |text: &str| world.keys(&JobFilter { text: Some(text.to_owned()), ..JobFilter::default() }).await;
    for (text, expected) in [
        ("%", "100%"),
        ("a_b", "a_b"),
        ("'", "it's"),
        ("\"hi\"", "say \"hi\""),
        ("\\", "back\\slash"),
        ("*", "*"),
        ("[a-z]", "[a-z]"),
        ("öß", "größe"),
    ] {
        assert_eq!(found(text).await, [expected], "{text}");
    }
    assert_eq!(found("'; drop table jobs; --").await, [""; 0]);
}

/// Jobs that are equal in all but their ids, in pairs; some disarmed, some of several versions.
async fn crowd(world: &World) {
    for number in 0..12_u32 {
        let created_at = at(&format!("00:{:02}", number / 4));
        let schedule = format!("{} 12 * * *", number / 3);
        let made = job_at(&format!("job-{number:02}"), &schedule, created_at);
        world.create(if number % 3 == 0 { to(made, MAIL) } else { made }).await;
    }
    world.pause("job-03", at("01:00")).await;
    world.pause("job-08", at("01:00")).await;
    let now = at("01:00");
    for version in 2..4 {
        let id = job_id("job-05", version);
        let edit = || change::Edit { description: Some(format!("version {version}")), ..change::Edit::default() };
        world.try_change("job-05", now, |view| change::new_version(view, edit(), id, true, "ana", now)).await.unwrap();
    }
}

fn assert_order(rows: &[JobRow], sort: JobSort) {
    let next = |row: &JobRow| row.timer.as_ref().and_then(|timer| timer.next_run_at);
    let last = |row: &JobRow| row.last_run.as_ref().map(|run| run.id.time());
    for pair in rows.windows(2) {
        let [a, b] = pair else { continue };
        let in_order = match sort {
            JobSort::Key => {
                let key = |row: &JobRow| (row.job.definition.key.clone(), u32::MAX - row.job.definition.version);
                key(a) < key(b)
            }
            JobSort::NextRunAt => match (next(a), next(b)) {
                (Some(a), Some(b)) => a <= b,
                (a, None) => a.is_some() || next(b).is_none(),
                (None, Some(_)) => false,
            },
            JobSort::CreatedAt => a.job.definition.created_at >= b.job.definition.created_at,
            JobSort::Target => a.job.definition.target <= b.job.definition.target,
            JobSort::LastRun => last(a) >= last(b),
        };
        assert!(in_order, "{sort:?}: {a:?} before {b:?}");
    }
}

pub async fn lists_are_in_order_and_pages_of_any_size_hold_the_same(fresh: Fresh) {
    let world = World::new(&fresh);
    crowd(&world).await;
    // Three of them fire together, so that last runs are equal, too; the paused ones and others never run.
    world.run_due(&success(), at("12:00")).await;
    world.run_due(&failure(), at("12:01")).await;
    for sort in [JobSort::Key, JobSort::NextRunAt, JobSort::CreatedAt, JobSort::Target, JobSort::LastRun] {
        let filter = JobFilter { sort, ..JobFilter::default() };
        let whole = world.jobs_in_pages(&filter, 1_000).await;
        assert_eq!(whole.len(), 14, "{sort:?}");
        assert_order(&whole, sort);
        for limit in [1, 2, 7, 14] {
            assert_eq!(world.jobs_in_pages(&filter, limit).await, whole, "{sort:?} in pages of {limit}");
        }
    }
}

pub async fn keys_are_ordered_by_their_bytes(fresh: Fresh) {
    let world = World::new(&fresh);
    let ordered = ["A", "B", "Z", "_", "a", "a b", "a-b", "ab", "b", "é", "⏰"];
    for key in ["ab", "⏰", "b", "B", "é", "a-b", "Z", "a", "_", "a b", "A"] {
        world.create(job(key, "@hourly")).await;
    }
    assert_eq!(world.keys(&JobFilter::default()).await, ordered);
    let in_pages = world.jobs_in_pages(&JobFilter::default(), 2).await;
    let keys: Vec<&str> = in_pages.iter().map(|row| row.job.definition.key.as_str()).collect();
    assert_eq!(keys, ordered);
}

pub async fn a_page_neither_repeats_nor_hides_jobs_when_others_come_and_go(fresh: Fresh) {
    let world = World::new(&fresh);
    for key in ["b", "d", "f", "h"] {
        world.create(job(key, "@hourly")).await;
    }
    let filter = JobFilter { status: vec![JobStatus::Active], ..JobFilter::default() };
    let keys = |rows: &[JobRow]| rows.iter().map(|row| row.job.definition.key.to_string()).collect::<Vec<_>>();
    let first = world.store.list_jobs(&filter, &super::given::page(2)).await.unwrap();
    assert_eq!(keys(&first.items), ["b", "d"]);
    // One that would be on the first page, one for the second, and the row that the cursor names goes away.
    world.create(job("a", "@hourly")).await;
    world.create(job("e", "@hourly")).await;
    world.retire("d", at("00:10")).await;
    let second = world.store.list_jobs(&filter, &PageRequest { limit: 2, after: first.next }).await.unwrap();
    assert_eq!(keys(&second.items), ["e", "f"]);
    let third = world.store.list_jobs(&filter, &PageRequest { limit: 2, after: second.next }).await.unwrap();
    assert_eq!((keys(&third.items), third.next), (vec!["h".to_owned()], None));
}
