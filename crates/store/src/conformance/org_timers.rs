//! `reconcile_orgs` and `change_org_job`: timers of orgs follow jobs, orgs and overrides.

use std::collections::BTreeMap;

use everbell_core::change::{self, Edit};
use everbell_core::org::{OrgTask, OrgWrite};
use everbell_core::plan::Missed;
use everbell_core::store::{
    AuditEntry, GapFilter, JobFilter, JobOrg, JobOrgFilter, JobSort, OrgFilter, PageRequest, PlanDue,
};
use everbell_core::{GapReason, JobId, JobStatus, OrgId, Timer};
use jiff::Timestamp;

use super::Fresh;
use super::given::{at, audit, job, job_at, job_id, org, org_id, per_org};
use super::orgs::override_write;
use super::world::{World, success};

/// Three orgs around the world and a job at nine, made at midnight UTC.
pub(super) async fn three(fresh: &Fresh) -> (World, JobId) {
    let world = World::new(fresh);
    world.put(&[org("la", "America/Los_Angeles"), org("tokyo", "Asia/Tokyo"), org("utc", "UTC")], at("00:00")).await;
    let id = world.create(per_org(job("brief", "0 9 * * *"))).await.job.definition.id;
    world.reconcile_orgs(at("00:00")).await;
    (world, id)
}

async fn rows(world: &World, job: JobId) -> Vec<JobOrg> {
    world.store.job_orgs(job, &JobOrgFilter::default(), &PageRequest { limit: 1_000, after: None }).await.unwrap().items
}

/// The next fire for each org that has a timer.
async fn nexts(world: &World, job: JobId) -> BTreeMap<String, Option<Timestamp>> {
    let rows = rows(world, job).await;
    rows.into_iter().filter_map(|row| Some((row.org.id.to_string(), row.timer?.next_run_at))).collect()
}

pub(super) async fn next(world: &World, job: JobId, org: &str) -> Option<Timestamp> {
    nexts(world, job).await.remove(org).flatten()
}

async fn timer(world: &World, job: JobId, org: &str) -> Timer {
    rows(world, job).await.into_iter().find(|row| row.org.id.as_str() == org).unwrap().timer.unwrap()
}

async fn move_to(world: &World, name: &str, zone: &str, now: &str) {
    world.put(&[org(name, zone)], at(now)).await;
    world.reconcile_orgs(at(now)).await;
}

pub(super) async fn set_enabled(world: &World, name: &str, enabled: bool, now: &str) {
    let write = OrgWrite { enabled: Some(enabled), ..OrgWrite::new(org_id(name)) };
    world.put(&[write], at(now)).await;
    world.reconcile_orgs(at(now)).await;
}

pub(super) async fn dates(world: &World, name: &str) -> Vec<String> {
    let runs = world.runs().await.into_iter().rev();
    let of = runs.filter(|run| run.org.as_ref().is_some_and(|org| org.as_str() == name));
    of.filter_map(|run| Some(run.local_date?.to_string())).collect()
}

async fn gaps_of(world: &World, name: &str) -> Vec<(GapReason, u64)> {
    let filter = GapFilter { org: Some(org_id(name)), ..GapFilter::default() };
    world.gaps(&filter).await.into_iter().map(|gap| (gap.reason, gap.slots)).collect()
}

pub async fn each_org_fires_at_its_own_local_time(fresh: Fresh) {
    let (world, id) = three(&fresh).await;
    let expected = [("la", "17:00"), ("tokyo", "2026-11-16T00:00:00Z"), ("utc", "09:00")];
    assert_eq!(nexts(&world, id).await, expected.map(|(org, time)| (org.to_owned(), Some(at(time)))).into());
    let planned = world.plan(at("17:00")).await;
    assert_eq!(planned.runs.len(), 2);
    assert_eq!(planned.next_due_at, Some(at("2026-11-16T00:00:00Z")));
    assert_eq!(dates(&world, "utc").await, ["2026-11-15"]);
    let claims = world.start(at("17:00")).await;
    assert_eq!(claims.len(), 2, "one org does not wait for the other");
    assert_eq!(world.store.count_orgs().await.unwrap().org_updates, 0);
}

pub async fn a_new_org_gets_its_timers(fresh: Fresh) {
    let (world, id) = three(&fresh).await;
    world.put(&[org("cairo", "Africa/Cairo")], at("05:00")).await;
    assert_eq!(next(&world, id, "cairo").await, None, "nobody has looked yet");
    assert_eq!(world.store.count_orgs().await.unwrap().waiting, 1);
    world.reconcile_orgs(at("05:00")).await;
    assert_eq!(next(&world, id, "cairo").await, Some(at("07:00")));
    assert_eq!(
        timer(&world, id, "cairo").await.last_slot_at,
        at("00:00"),
        "its day begins at midnight, or with the job"
    );
    assert_eq!(world.store.count_orgs().await.unwrap().waiting, 0);
}

pub async fn a_new_org_whose_time_has_gone_by_fires_at_once_and_once(fresh: Fresh) {
    let (world, id) = three(&fresh).await;
    world.put(&[org("dhaka", "Asia/Dhaka")], at("05:00")).await;
    world.reconcile_orgs(at("05:00")).await;
    assert_eq!(next(&world, id, "dhaka").await, Some(at("03:00")), "nine o'clock was two hours ago");
    world.run_due(&success(), at("05:00")).await;
    assert_eq!(dates(&world, "dhaka").await, ["2026-11-15"]);
    world.put(&[org("dhaka", "Europe/Paris")], at("05:10")).await;
    world.reconcile_orgs(at("05:10")).await;
    world.run_due(&success(), at("08:00")).await;
    assert_eq!(dates(&world, "dhaka").await, ["2026-11-15"], "and no second time on that date");
    assert_eq!(gaps_of(&world, "dhaka").await, [(GapReason::Coalesced, 1)]);
}

pub async fn an_org_that_moves_west_does_not_fire_twice_on_a_date(fresh: Fresh) {
    let (world, id) = three(&fresh).await;
    world.run_due(&success(), at("2026-11-16T00:00:00Z")).await;
    move_to(&world, "tokyo", "America/Los_Angeles", "2026-11-16T05:00:00Z").await;
    assert_eq!(next(&world, id, "tokyo").await, Some(at("2026-11-16T17:00:00Z")));
    world.run_due(&success(), at("2026-11-16T17:00:00Z")).await;
    assert_eq!(dates(&world, "tokyo").await, ["2026-11-16"]);
    assert_eq!(gaps_of(&world, "tokyo").await, [(GapReason::Coalesced, 1)]);
    world.run_due(&success(), at("2026-11-17T17:00:00Z")).await;
    assert_eq!(dates(&world, "tokyo").await, ["2026-11-16", "2026-11-17"]);
}

pub async fn an_org_that_moves_east_past_the_time_fires_at_once(fresh: Fresh) {
    let (world, id) = three(&fresh).await;
    move_to(&world, "la", "Asia/Tokyo", "16:00").await;
    assert_eq!(next(&world, id, "la").await, Some(at("2026-11-16T00:00:00Z")), "the 15th began before the job");
    world.run_due(&success(), at("2026-11-16T00:00:00Z")).await;
    move_to(&world, "la", "America/Los_Angeles", "2026-11-16T02:00:00Z").await;
    move_to(&world, "la", "Pacific/Kiritimati", "2026-11-16T20:00:00Z").await;
    let due = world.plan(at("2026-11-16T20:00:00Z")).await;
    assert_eq!(due.runs.len(), 2, "and `utc`, which was due");
    assert_eq!(dates(&world, "la").await, ["2026-11-16", "2026-11-17"]);
}

pub async fn a_timer_that_is_due_is_judged_by_what_holds_now(fresh: Fresh) {
    let (world, id) = three(&fresh).await;
    // The timers have not been reconciled since.
    world.put(&[org("utc", "America/Los_Angeles")], at("08:59")).await;
    let off = OrgWrite { enabled: Some(false), ..OrgWrite::new(org_id("la")) };
    world.put(&[off], at("08:59")).await;
    let planned = world.plan(at("17:00")).await;
    assert_eq!(planned.runs.len(), 1, "it is nine in Los Angeles, where `utc` is now; `la` is off");
    assert_eq!(dates(&world, "utc").await, ["2026-11-15"]);
    assert_eq!(next(&world, id, "la").await, None);
    world.reconcile_orgs(at("17:00")).await;
    assert_eq!(next(&world, id, "la").await, None);
    assert_eq!(next(&world, id, "utc").await, Some(at("2026-11-16T17:00:00Z")));
}

pub async fn an_org_that_is_off_has_a_gap_and_goes_on(fresh: Fresh) {
    let (world, id) = three(&fresh).await;
    set_enabled(&world, "utc", false, "08:00").await;
    assert_eq!(next(&world, id, "utc").await, None);
    assert_eq!(world.plan(at("2026-11-17T10:00:00Z")).await.runs.len(), 2, "the others fire");
    set_enabled(&world, "utc", true, "2026-11-17T10:00:00Z").await;
    assert_eq!(gaps_of(&world, "utc").await, [(GapReason::Paused, 3)]);
    assert_eq!(next(&world, id, "utc").await, Some(at("2026-11-18T09:00:00Z")));
}

pub async fn an_override_moves_and_stops_one_org_alone(fresh: Fresh) {
    let (world, id) = three(&fresh).await;
    let utc = org_id("utc");
    let entry = |time: &str| audit("org.override", "org:utc", at(time));
    world.store.write_override(&utc, &override_write(true, Some("30 7 * * *")), &entry("01:00")).await.unwrap();
    world.reconcile_orgs(at("01:00")).await;
    assert_eq!(next(&world, id, "utc").await, Some(at("07:30")));
    world.store.write_override(&utc, &override_write(false, None), &entry("02:00")).await.unwrap();
    world.reconcile_orgs(at("02:00")).await;
    assert_eq!(next(&world, id, "utc").await, None);
    world.store.delete_override(&utc, &override_write(false, None).job_key, &entry("03:00")).await.unwrap();
    world.reconcile_orgs(at("03:00")).await;
    assert_eq!(next(&world, id, "utc").await, Some(at("09:00")));
    assert_eq!(next(&world, id, "la").await, Some(at("17:00")));
}

pub async fn a_zone_that_ceased_to_be_concerns_its_org_alone(fresh: Fresh) {
    let (world, id) = three(&fresh).await;
    let utc = org_id("utc");
    let entry = |time: &str| audit("org.override", "org:utc", at(time));
    // An expression is checked when it is written; a store that is older than its program may hold another.
    let plan = |due: &everbell_core::store::Due, now| match &due.timer.org {
        Some(org) if org.as_str() == "utc" => everbell_core::plan::Plan {
            org_error: Some("unknown time zone `Mars/Base`".to_owned()),
            ..everbell_core::plan::Plan::nothing(&everbell_core::plan::disarm(&due.timer))
        },
        _ => due.plan(now),
    };
    let planned = world.store.plan_due(&PlanDue::new(at("17:00"), 100, &super::world::targets()), &plan).await.unwrap();
    assert_eq!(planned.org_errors, [(id, utc.clone(), "unknown time zone `Mars/Base`".to_owned())]);
    assert_eq!((planned.errored.len(), planned.runs.len()), (0, 1), "the job is fine, and fires for the others");
    let row = rows(&world, id).await.into_iter().find(|row| row.org.id == utc).unwrap();
    assert_eq!(row.error.as_deref(), Some("unknown time zone `Mars/Base`"));
    assert_eq!(row.timer.unwrap().next_run_at, None);
    assert_eq!(world.store.count_orgs().await.unwrap().errored, 1);
    let trail = world.store.list_audit(Some("job:brief"), &PageRequest { limit: 1, after: None }).await.unwrap();
    let AuditEntry { actor, action, reason, after, .. } = &trail.items[0];
    assert_eq!((actor.as_str(), action.as_str()), ("everbell", "org.errored"));
    assert_eq!(reason.as_deref(), Some("unknown time zone `Mars/Base`"));
    assert_eq!(after.as_ref().unwrap().as_str(), r#"{"first":["utc"],"orgs":1}"#);
    let errored = OrgFilter { errored: Some(true), ..OrgFilter::default() };
    let page = PageRequest { limit: 10, after: None };
    assert_eq!(world.store.list_orgs(&errored, &page).await.unwrap().items[0].id, utc);
    // Any write about the org tries again.
    world.store.write_override(&utc, &override_write(true, None), &entry("18:00")).await.unwrap();
    world.reconcile_orgs(at("18:00")).await;
    assert_eq!(world.store.count_orgs().await.unwrap().errored, 0);
    assert_eq!(next(&world, id, "utc").await, Some(at("2026-11-16T09:00:00Z")));
    assert_eq!(gaps_of(&world, "utc").await, [(GapReason::Errored, 1)]);
}

pub async fn a_pause_stops_all_orgs_at_once_and_a_resume_wakes_them(fresh: Fresh) {
    let (world, id) = three(&fresh).await;
    world.pause("brief", at("08:00")).await;
    let planned = world.plan(at("17:00")).await;
    assert_eq!((planned.runs.len(), planned.gaps.len()), (0, 0));
    world.resume("brief", Missed::Skip, at("18:00")).await;
    world.reconcile_orgs(at("18:00")).await;
    let expected = [("la", "2026-11-16T17:00:00Z"), ("tokyo", "2026-11-16T00:00:00Z"), ("utc", "2026-11-16T09:00:00Z")];
    assert_eq!(nexts(&world, id).await, expected.map(|(org, time)| (org.to_owned(), Some(at(time)))).into());
    assert_eq!(gaps_of(&world, "utc").await, [(GapReason::Paused, 1)]);
    assert_eq!(gaps_of(&world, "tokyo").await, []);
}

pub async fn a_resume_runs_once_for_each_org_that_missed_something(fresh: Fresh) {
    let (world, _) = three(&fresh).await;
    world.pause("brief", at("08:00")).await;
    world.plan(at("2026-11-16T17:00:00Z")).await;
    world.resume("brief", Missed::RunOnce, at("2026-11-16T18:00:00Z")).await;
    let mut made = 0;
    loop {
        let progress = world.store.reconcile_orgs(at("2026-11-16T18:00:00Z"), 1).await.unwrap();
        made += progress.planned.runs.len();
        if !progress.more {
            break;
        }
    }
    assert_eq!(made, 3);
    assert_eq!(dates(&world, "utc").await, ["2026-11-16"]);
    assert_eq!(gaps_of(&world, "utc").await, [(GapReason::Paused, 1)]);
}

pub async fn a_new_version_takes_over_without_firing_twice_on_a_date(fresh: Fresh) {
    let (world, old) = three(&fresh).await;
    world.run_due(&success(), at("09:00")).await;
    let edit = Edit { spec: Some(job_at("brief", "0 17 * * *", at("10:00")).spec.unwrap()), ..Edit::default() };
    let id = job_id("brief", 2);
    let decide = |view: &change::JobView| change::new_version(view, edit.clone(), id, false, "ana", at("10:00"));
    world.try_change("brief", at("10:00"), decide).await.unwrap();
    world.reconcile_orgs(at("10:00")).await;
    assert_eq!(nexts(&world, old).await, BTreeMap::new(), "the old version has no timers any more");
    assert_eq!(next(&world, id, "utc").await, Some(at("17:00")));
    assert_eq!(timer(&world, id, "utc").await.last_local_date, Some(jiff::civil::date(2026, 11, 15)));
    world.run_due(&success(), at("2026-11-16T01:00:00Z")).await;
    assert_eq!(dates(&world, "utc").await, ["2026-11-15"], "today has had its run");
    assert_eq!(dates(&world, "la").await, ["2026-11-15"], "here it had not");
    assert_eq!(world.store.list_org_updates().await.unwrap(), []);
}

pub async fn versions_that_follow_each_other_faster_than_org_updates_lose_nothing(fresh: Fresh) {
    let (world, _) = three(&fresh).await;
    world.run_due(&success(), at("09:00")).await;
    for (version, time) in [(2, "10:00"), (3, "10:01"), (4, "10:02")] {
        let edit = Edit { spec: Some(job_at("brief", "0 17 * * *", at(time)).spec.unwrap()), ..Edit::default() };
        let id = job_id("brief", version);
        let decide = |view: &change::JobView| change::new_version(view, edit.clone(), id, false, "ana", at(time));
        world.try_change("brief", at(time), decide).await.unwrap();
    }
    assert_eq!(world.store.list_org_updates().await.unwrap().len(), 3);
    world.reconcile_orgs(at("10:05")).await;
    for version in 1..4 {
        assert_eq!(nexts(&world, job_id("brief", version)).await, BTreeMap::new(), "version {version}");
    }
    assert_eq!(nexts(&world, job_id("brief", 4)).await.len(), 3);
    let utc = timer(&world, job_id("brief", 4), "utc").await;
    assert_eq!(utc.last_local_date, Some(jiff::civil::date(2026, 11, 15)), "what the first version knew");
}

pub async fn a_retired_job_leaves_no_timers(fresh: Fresh) {
    let (world, id) = three(&fresh).await;
    world.retire("brief", at("12:00")).await;
    // Due when it was retired, but not planned yet: it is recorded all the same.
    let planned = world.plan(at("12:00")).await;
    assert_eq!(planned.timers, 1);
    world.reconcile_orgs(at("12:00")).await;
    assert_eq!(nexts(&world, id).await, BTreeMap::new());
    assert_eq!(world.plan(at("2026-11-20T00:00:00Z")).await.timers, 0);
    assert_eq!(gaps_of(&world, "utc").await, [(GapReason::Missed, 1)]);
    assert_eq!(world.get("brief").await.job.state.status, JobStatus::Retired);
}

pub async fn a_deleted_org_leaves_no_timers_and_keeps_its_runs(fresh: Fresh) {
    let (world, id) = three(&fresh).await;
    world.run_due(&success(), at("09:00")).await;
    world.store.delete_org(&org_id("utc"), None, &audit("org.delete", "org:utc", at("10:00"))).await.unwrap();
    world.reconcile_orgs(at("10:00")).await;
    assert_eq!(nexts(&world, id).await.into_keys().collect::<Vec<_>>(), ["la", "tokyo"]);
    world.plan(at("2026-11-20T00:00:00Z")).await;
    assert_eq!(dates(&world, "utc").await, ["2026-11-15"]);
    let due = world.store.counts(at("2026-12-20T00:00:00Z")).await.unwrap();
    assert_eq!(due.due_timers, 2, "it fires no more");
}

pub async fn what_was_deleted_is_forgotten_in_the_end(fresh: Fresh) {
    let (world, _) = three(&fresh).await;
    world.store.delete_org(&org_id("utc"), None, &audit("org.delete", "org:utc", at("10:00"))).await.unwrap();
    world.reconcile_orgs(at("10:00")).await;
    let again = world.put(&[org("utc", "UTC")], at("11:00")).await;
    assert_eq!(again[0].org.revision, 1, "nothing is left of what it was");
}

pub async fn an_org_update_goes_on_where_it_was(fresh: Fresh) {
    let world = World::new(&fresh);
    let many: Vec<OrgWrite> = (0..25).map(|n| org(&format!("org-{n:02}"), "UTC")).collect();
    world.put(&many, at("00:00")).await;
    world.reconcile_orgs(at("00:00")).await;
    let id = world.create(per_org(job("brief", "0 9 * * *"))).await.job.definition.id;
    let (mut steps, mut orgs) = (0, 0);
    loop {
        let progress = world.store.reconcile_orgs(at("00:00"), 10).await.unwrap();
        assert!(progress.orgs <= 10);
        orgs += progress.orgs;
        if !progress.more {
            break;
        }
        steps += 1;
        if let [org_update] = &world.store.list_org_updates().await.unwrap()[..] {
            assert_eq!(
                (org_update.seen, org_update.reached.as_ref().map(OrgId::as_str)),
                match steps {
                    1 => (10, Some("org-09")),
                    _ => (20, Some("org-19")),
                }
            );
        }
    }
    assert_eq!((steps, orgs), (3, 25));
    assert_eq!(nexts(&world, id).await.len(), 25);
}

pub async fn an_org_that_changes_before_an_org_update_comes_by_is_seen_by_it(fresh: Fresh) {
    let world = World::new(&fresh);
    world.put(&[org("a", "UTC"), org("b", "UTC"), org("c", "UTC")], at("00:00")).await;
    world.reconcile_orgs(at("00:00")).await;
    let id = world.create(per_org(job("brief", "0 9 * * *"))).await.job.definition.id;
    world.store.reconcile_orgs(at("00:00"), 1).await.unwrap();
    world.put(&[org("a", "Asia/Tokyo"), org("c", "Asia/Tokyo")], at("00:01")).await;
    world.reconcile_orgs(at("00:01")).await;
    let tokyo = Some(at("2026-11-16T00:00:00Z"));
    assert_eq!(nexts(&world, id).await.into_values().collect::<Vec<_>>(), [tokyo, Some(at("09:00")), tokyo]);
}

pub async fn the_set_of_timers_can_be_made_anew(fresh: Fresh) {
    let (world, id) = three(&fresh).await;
    world.run_due(&success(), at("09:00")).await;
    set_enabled(&world, "la", false, "10:00").await;
    let before = rows(&world, id).await;
    let decide = |view: &change::JobView| change::for_all_orgs(view, OrgTask::Arm);
    world.try_change("brief", at("11:00"), decide).await.unwrap();
    world.reconcile_orgs(at("11:00")).await;
    assert_eq!(rows(&world, id).await, before);
}

pub async fn a_job_knows_the_first_fire_of_all_orgs(fresh: Fresh) {
    let (world, _) = three(&fresh).await;
    world.create(job("early", "0 8 * * *")).await;
    world.create(job("late", "0 23 * * *")).await;
    let first = world.get("brief").await.next_for_org;
    assert_eq!(first, Some((at("09:00"), org_id("utc"))), "Tokyo had its nine o'clock at midnight");
    let by_next = JobFilter { sort: JobSort::NextRunAt, ..JobFilter::default() };
    assert_eq!(world.keys(&by_next).await, ["early", "brief", "late"], "in its place among the others");
    world.plan(at("09:00")).await;
    let first = world.get("brief").await.next_for_org;
    assert_eq!(first, Some((at("17:00"), org_id("la"))), "then comes Los Angeles");
    set_enabled(&world, "la", false, "10:00").await;
    let first = world.get("brief").await.next_for_org;
    assert_eq!(first, Some((at("2026-11-16T00:00:00Z"), org_id("tokyo"))));
    assert_eq!(world.keys(&by_next).await, ["late", "brief", "early"]);
    world.pause("brief", at("10:10")).await;
    assert_eq!(world.get("brief").await.next_for_org, None, "a paused job fires for no org");
    assert_eq!(world.keys(&by_next).await.last().map(String::as_str), Some("brief"));
}
