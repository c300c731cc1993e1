//! Reports over all jobs: absences, late slots, counted gaps, fires of orgs, backfills.

use everbell_core::org::{OrgGroup, OrgWrite, OverrideWrite};
use everbell_core::outage::{Absence, AbsenceGroup, LateOutcome, LateSlots};
use everbell_core::plan::Plan;
use everbell_core::store::{
    AuditEntry, Due, GapCount, GapFilter, Instance, NewToken, OrgFires, PageRequest, PlanDue, PruneBefore, RunFilter,
};
use everbell_core::{CatchUp, Definition, Gap, GapReason, JobKey, OrgId, RunStatus};
use jiff::Timestamp;
use uuid::Uuid;

use super::Fresh;
use super::given::{at, audit, core_plan, instance, instance_id, job, job_id, org, org_id, page, with};
use super::world::{World, failure, success, targets};

fn absence(from: &str, until: &str) -> Absence {
    Absence { from: at(from), until: at(until) }
}

/// The late slots of absences that touch or overlap.
async fn late_slots(world: &World, absences: &[Absence]) -> Vec<LateSlots> {
    let groups = AbsenceGroup::from_absences(absences.to_vec());
    let [group] = &groups[..] else { panic!("{groups:?}") };
    let mut late = Vec::new();
    for range in &group.ranges {
        late.extend(world.store.late_slots(range).await.unwrap());
    }
    late
}

/// Writes gaps to every job whose timer is due, at a time.
async fn write(world: &World, gaps: &[Gap], now: Timestamp) {
    let plan = |due: &Due, _| Plan { gaps: gaps.to_vec(), ..Plan::nothing(&due.timer) };
    world.store.plan_due(&PlanDue::new(now, 100, &targets()), &plan).await.unwrap();
}

fn gap(first: &str, last: &str, slots: u64, reason: GapReason) -> Gap {
    Gap::new(at(first), at(last), slots, reason)
}

pub async fn an_absence_is_written_once(fresh: Fresh) {
    let world = World::new(&fresh);
    for one in [absence("01:00", "01:10"), absence("05:00", "05:30"), absence("01:00", "01:20")] {
        world.store.add_absence(&one).await.unwrap();
    }
    let list = async |from: Option<&str>, to: Option<&str>, limit| {
        world.store.absences(from.map(at), to.map(at), limit).await.unwrap()
    };
    let (early, late) = (absence("01:00", "01:10"), absence("05:00", "05:30"));
    assert_eq!(list(None, None, 10).await, [late, early], "the latest first, and the first word stays");
    assert_eq!(list(None, None, 1).await, [late]);
    assert_eq!(list(Some("05:30"), None, 10).await, [late], "ends at or after");
    assert_eq!(list(Some("05:30:01"), None, 10).await, []);
    assert_eq!(list(None, Some("05:00"), 10).await, [early], "begins before");
    assert_eq!(list(Some("01:05"), Some("01:06"), 10).await, [early]);
    for limit in [0, 101] {
        assert!(world.store.absences(None, None, limit).await.is_err(), "{limit}");
    }
}

pub async fn absences_are_pruned_with_the_history(fresh: Fresh) {
    let world = World::new(&fresh);
    let (early, late) = (absence("01:00", "01:10"), absence("05:00", "05:30"));
    for one in [early, late] {
        world.store.add_absence(&one).await.unwrap();
    }
    world.store.prune(PruneBefore::all(at("01:10")), 10).await.unwrap();
    assert_eq!(world.store.absences(None, None, 10).await.unwrap(), [late, early], "not older than that");
    world.store.prune(PruneBefore::all(at("05:00")), 10).await.unwrap();
    assert_eq!(world.store.absences(None, None, 10).await.unwrap(), [late]);
}

pub async fn the_last_heartbeat_of_an_instance_outlives_it(fresh: Fresh) {
    let world = World::new(&fresh);
    assert_eq!(world.store.last_departure().await.unwrap(), None);
    let roles = |role: &str| vec![role.to_owned()];
    let scheduler = |number, heard: &str| {
        everbell_core::with!(Instance { roles: roles("scheduler"), ..instance(number, at(heard)) })
    };
    let only_api = everbell_core::with!(Instance { roles: roles("api"), ..instance(3, at("09:00")) });
    for one in [scheduler(1, "02:00"), scheduler(2, "01:00"), only_api] {
        world.store.heartbeat(&one, None, false).await.unwrap();
    }
    let leave = async |number, planned_until: &str, now: &str| {
        world.store.leave(instance_id(number), at(planned_until), at(now)).await.unwrap();
        world.store.last_departure().await.unwrap()
    };
    assert_eq!(leave(3, "09:00", "09:00").await, None, "it scheduled nothing");
    for number in [1, 2, 2] {
        assert_eq!(leave(number, "09:00", "09:00").await, Some(at("02:00")), "the latest of them");
    }
    assert_eq!(world.store.list_instances().await.unwrap(), []);
    for (number, heard) in [(4, "04:00"), (5, "20:00"), (6, "05:00")] {
        world.store.heartbeat(&scheduler(number, heard), None, false).await.unwrap();
    }
    assert_eq!(leave(4, "03:50", "04:00:05").await, Some(at("03:50")), "it planned no more while its runs ended");
    assert_eq!(leave(5, "20:00", "20:00").await, Some(at("20:00")), "its clock is wrong");
    assert_eq!(leave(6, "05:00", "05:00").await, Some(at("05:00")), "a time in the future gives way");
}

pub async fn late_slots_are_those_that_got_their_outcome_after_the_absence(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.create(with(job("all", "0 * * * *"), |values| values.catch_up = CatchUp::All)).await;
    world.run_due(&success(), at("01:00")).await;
    // Nothing happens from here on until the morning.
    world.store.plan_due(&PlanDue::new(at("06:10"), 100, &targets()), &core_plan).await.unwrap();
    let late = late_slots(&world, &[absence("01:10", "06:10")]).await;
    let slots = |key: &str, outcome, slots, first: &str, last: &str| LateSlots {
        job_key: JobKey::new(key).unwrap(),
        outcome,
        slots,
        first_slot_at: at(first),
        last_slot_at: at(last),
    };
    assert_eq!(
        late,
        [
            slots("all", LateOutcome::Ran, 5, "02:00", "06:00"),
            slots("hourly", LateOutcome::Coalesced, 4, "02:00", "05:00"),
            slots("hourly", LateOutcome::Ran, 1, "06:00", "06:00"),
        ]
    );
    assert_eq!(late_slots(&world, &[absence("00:50", "01:50")]).await, [], "it ran on time");
    assert_eq!(late_slots(&world, &[absence("02:30", "03:30")]).await[0].slots, 1, "one of five");
}

pub async fn late_slots_have_the_reasons_of_an_outage_only(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("a", "0 * * * *")).await;
    world.create_for("acme", job("b", "0 * * * *")).await;
    let gaps: Vec<Gap> = GapReason::ALL.iter().map(|reason| gap("02:00", "03:00", 2, *reason)).collect();
    write(&world, &gaps, at("04:00")).await;
    let late = late_slots(&world, &[absence("01:30", "03:30")]).await;
    let found: Vec<_> =
        late.iter().map(|slots| (slots.job_key.as_str(), slots.outcome.as_str(), slots.slots)).collect();
    let both = |key| [(key, "coalesced", 2), (key, "expired", 2), (key, "missed", 2)];
    assert_eq!(found, [both("a"), both("b")].concat());
    assert_eq!(late_slots(&world, &[absence("02:30", "03:30")]).await, [], "they begin before");
    assert_eq!(late_slots(&world, &[absence("01:30", "02:00")]).await, [], "they begin after");
    assert_eq!(late_slots(&world, &[absence("01:59", "10:00")]).await, [], "written while it lasted");
}

pub async fn a_gap_belongs_to_the_absence_that_it_reaches_into(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("dense", "* * * * *")).await;
    let gap = |first, last, slots| gap(first, last, slots, GapReason::Missed);
    // The instance planned no more, and sent heartbeats until 01:00; another gap began long before, or ended before.
    let gaps = [gap("00:59", "01:09", 11), gap("00:30", "01:08", 38), gap("00:58:30", "00:59:30", 2)];
    write(&world, &gaps, at("01:10")).await;
    let late = late_slots(&world, &[absence("01:00", "01:10")]).await;
    assert_eq!(late.iter().map(|late| late.slots).collect::<Vec<_>>(), [11], "{late:?}");
    // Two instances began and ended, one after the other; nothing is lost between them, and nothing counts twice.
    let two = [absence("01:00", "01:04"), absence("01:04", "01:10")];
    let late = late_slots(&world, &two).await;
    assert_eq!(late.iter().map(|late| late.slots).collect::<Vec<_>>(), [11], "{late:?}");
    let three = [absence("01:00", "01:10"), absence("01:10", "01:30"), absence("01:05", "01:10")];
    let late = late_slots(&world, &three).await;
    assert_eq!(late.iter().map(|late| late.slots).collect::<Vec<_>>(), [11], "{late:?}");
}

pub async fn gaps_are_counted_by_reason(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("a", "0 * * * *")).await;
    world.create(job("b", "0 * * * *")).await;
    let gaps = [gap("01:00", "02:00", 2, GapReason::Missed), gap("04:00", "06:00", 3, GapReason::Coalesced)];
    write(&world, &gaps, at("23:00")).await;
    let count = |reason, gaps, slots| GapCount { reason, gaps, slots };
    let all = [count(GapReason::Coalesced, 2, 6), count(GapReason::Missed, 2, 4)];
    assert_eq!(world.store.count_gaps(at("01:00"), at("04:00:01")).await.unwrap(), all);
    assert_eq!(world.store.count_gaps(at("01:00"), at("04:00")).await.unwrap(), all[1..]);
    assert_eq!(world.store.count_gaps(at("04:00:01"), at("23:00")).await.unwrap(), []);
}

pub async fn gaps_are_found_by_label(fresh: Fresh) {
    let world = World::new(&fresh);
    for (key, labels) in [("a", vec![("team", "ops"), ("env", "prod")]), ("b", vec![("team", "data")]), ("c", vec![])] {
        let labels = labels.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        world.create(everbell_core::with!(Definition { labels, ..job(key, "0 * * * *") })).await;
    }
    write(&world, &[gap("01:00", "02:00", 2, GapReason::Missed)], at("23:00")).await;
    let found = async |name: &str, value: Option<&str>| {
        let label = Some((name.to_owned(), value.map(str::to_owned)));
        let rows = world.gaps_in_pages(&GapFilter { label, ..GapFilter::default() }, 1).await;
        let mut jobs: Vec<_> = rows.into_iter().map(|(job, _, _)| job).collect();
        jobs.sort_unstable();
        jobs
    };
    let ids = |keys: &[&str]| {
        let mut ids: Vec<_> = keys.iter().map(|key| job_id(key, 1)).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(found("team", None).await, ids(&["a", "b"]));
    assert_eq!(found("team", Some("data")).await, ids(&["b"]));
    assert_eq!(found("env", None).await, ids(&["a"]));
    assert_eq!(found("tea", None).await, []);
}

pub async fn runs_are_found_by_label(fresh: Fresh) {
    let world = World::new(&fresh);
    for (key, team) in [("a", Some("ops")), ("b", Some("data")), ("c", None)] {
        let labels = team.iter().map(|team| ("team".to_owned(), (*team).to_owned())).collect();
        world.create(everbell_core::with!(Definition { labels, ..job(key, "0 * * * *") })).await;
    }
    world.run_due(&success(), at("01:00")).await;
    // Then one that failed, and one that waits.
    world.run_due(&failure(), at("02:00")).await;
    world.plan(at("03:00")).await;
    let found = async |name: &str, value: Option<&str>, more: RunFilter| {
        let filter = RunFilter { label: Some((name.to_owned(), value.map(str::to_owned))), ..more };
        let runs = world.store.list_runs(&filter, &page(100)).await.unwrap().items;
        assert_eq!(world.store.count_runs(&filter, 100).await.unwrap() as usize, runs.len(), "{filter:?}");
        let mut keys: Vec<String> = runs.iter().map(|run| run.job_key.as_ref().unwrap().to_string()).collect();
        keys.sort();
        keys.join(" ")
    };
    let none = RunFilter::default;
    assert_eq!(found("team", None, none()).await, "a a a b b b");
    assert_eq!(found("team", Some("ops"), none()).await, "a a a");
    assert_eq!(found("tea", None, none()).await, "");
    let status = |status: &[RunStatus]| RunFilter { status: status.to_vec(), ..none() };
    assert_eq!(found("team", None, status(&[RunStatus::Failed])).await, "a b");
    assert_eq!(found("team", None, status(&[RunStatus::Pending])).await, "a b");
    assert_eq!(found("team", None, status(&[RunStatus::Skipped])).await, "");
    assert_eq!(found("team", Some("data"), status(&[RunStatus::Succeeded, RunStatus::Failed])).await, "b b");
    let of = |key: &str| RunFilter { job_key: Some(JobKey::new(key).unwrap()), ..none() };
    assert_eq!(found("team", None, of("a")).await, "a a a");
    assert_eq!(found("team", Some("data"), of("a")).await, "", "both must hold");
    assert_eq!(found("team", None, of("c")).await, "");
}

pub async fn fires_of_orgs_are_grouped_by_job_and_time(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("global", "0 * * * *")).await;
    world.create_for("acme", job("c", "0 * * * *")).await;
    let fires = world.store.org_fires(at("00:00"), at("23:00"), 10).await.unwrap();
    let [OrgFires { job, at: first, first_org, orgs }] = &fires[..] else { panic!("{fires:?}") };
    assert_eq!((*job, *first, *orgs), (job_id("c", 1), at("01:00"), 1));
    assert_eq!(first_org, &OrgId::new("acme").unwrap());
    assert_eq!(world.store.org_fires(at("00:00"), at("01:00"), 10).await.unwrap(), []);
    assert_eq!(world.store.org_fires(at("01:00:01"), at("23:00"), 10).await.unwrap(), []);
    for limit in [0, 10_001] {
        assert!(world.store.org_fires(at("00:00"), at("23:00"), limit).await.is_err(), "{limit}");
    }
}

pub async fn enabled_orgs_are_grouped_by_zone_and_override(fresh: Fresh) {
    let world = World::new(&fresh);
    assert_eq!(world.store.org_groups(10).await.unwrap(), []);
    let paris = |name| org(name, "Europe/Paris");
    world
        .put(&[paris("c"), paris("a"), paris("b"), paris("gone"), paris("off"), org("z", "Asia/Tokyo")], at("00:00"))
        .await;
    world.put(&[OrgWrite { enabled: Some(false), ..OrgWrite::new(org_id("off")) }], at("00:00")).await;
    let own = async |name: &str, job: &str, enabled, expression: Option<&str>| {
        let job_key = JobKey::new(job).unwrap();
        let write = OverrideWrite { job_key, enabled, expression: expression.map(str::to_owned) };
        world.store.write_override(&org_id(name), &write, &audit("org.override", "orgs", at("00:00"))).await.unwrap();
    };
    for name in ["b", "a"] {
        own(name, "brief", true, Some("0 7 * * *")).await;
    }
    own("c", "brief", false, None).await;
    own("c", "alpha", true, None).await;
    own("off", "brief", false, None).await;
    own("gone", "brief", false, None).await;
    world.store.delete_org(&org_id("gone"), None, &audit("org.delete", "orgs", at("00:00"))).await.unwrap();
    let groups = world.store.org_groups(10).await.unwrap();
    let line = |group: &OrgGroup| {
        let own = group.override_.as_ref().map_or_else(String::new, |own| {
            format!(" {} {} {}", own.job_key, own.enabled, own.expression.as_deref().unwrap_or("-"))
        });
        format!("{}{own}: {} from {}", group.timezone, group.orgs, group.first_org)
    };
    let expected = [
        "Asia/Tokyo: 1 from z",
        "Europe/Paris: 3 from a",
        "Europe/Paris alpha true -: 1 from c",
        "Europe/Paris brief false -: 1 from c",
        "Europe/Paris brief true 0 7 * * *: 2 from a",
    ];
    assert_eq!(groups.iter().map(line).collect::<Vec<_>>(), expected);
    assert_eq!(world.store.org_groups(2).await.unwrap(), groups[..2], "zones come first");
    for limit in [0, 10_001] {
        assert!(world.store.org_groups(limit).await.is_err(), "{limit}");
    }
}

pub async fn keys_of_jobs_are_found_by_their_ids(fresh: Fresh) {
    let world = World::new(&fresh);
    for key in ["a", "b", "c"] {
        world.create(job(key, "0 * * * *")).await;
    }
    let key = |key: &str| (job_id(key, 1), JobKey::new(key).unwrap());
    let mut expected = vec![key("a"), key("c")];
    expected.sort();
    let asked = [job_id("c", 1), job_id("nobody", 1), job_id("a", 1), job_id("c", 1)];
    assert_eq!(world.store.job_keys(&asked).await.unwrap(), expected);
    assert_eq!(world.store.job_keys(&[]).await.unwrap(), []);
}

pub async fn entries_about_backfills_are_found_among_all_others(fresh: Fresh) {
    let world = World::new(&fresh);
    for number in 1..=7_u128 {
        let action = if number % 2 == 0 { "job.backfill" } else { "job.pause" };
        let time = at(&format!("0{number}:00"));
        let entry = AuditEntry { id: Uuid::from_u128(number), ..audit(action, "token:ops", time) };
        let token = NewToken {
            name: format!("token-{number}"),
            role: "viewer".to_owned(),
            hash: [number as u8; 32],
            created_at: time,
            expires_at: None,
        };
        world.store.create_token(&token, &entry).await.unwrap();
    }
    let mut seen = Vec::new();
    let mut request = page(2);
    loop {
        let found = world.store.list_backfill_entries(&request).await.unwrap();
        seen.extend(found.items.iter().map(|entry| entry.id.as_u128()));
        let Some(after) = found.next else { break };
        request = PageRequest { limit: 2, after: Some(after) };
    }
    assert_eq!(seen, [6, 4, 2]);
}
