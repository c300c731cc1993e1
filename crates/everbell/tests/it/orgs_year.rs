//! A whole year of many orgs in many zones: each local day has its one run, at its local time.

use std::collections::{BTreeMap, BTreeSet};

use everbell::testing::TestBell;
use everbell::{Everbell, Schedule};
use everbell_core::org::OrgWrite;
use everbell_core::store::{AuditEntry, PageRequest, RunFilter, Store};
use everbell_core::{OrgId, Run, Zone};
use jiff::civil::{Date, date, time};
use jiff::{Timestamp, ToSpan};
use uuid::Uuid;

const BEGIN: &str = "2026-12-31T00:00:00Z";
const END: &str = "2028-01-02T00:00:00Z";
const FIRST: Date = date(2027, 1, 1);
const LAST: Date = date(2027, 12, 31);

/// How many orgs move, each about thirty times.
const MOVING: usize = 20;

/// Fifty zones: every offset that there is, both hemispheres, all kinds of daylight saving.
fn zones() -> Vec<&'static str> {
    let odd = [
        "Pacific/Kiritimati",
        "Pacific/Chatham",
        "Pacific/Apia",
        "Pacific/Auckland",
        "Australia/Lord_Howe",
        "Australia/Adelaide",
        "Asia/Kathmandu",
        "Asia/Kolkata",
        "Asia/Tehran",
        "Asia/Gaza",
        "Africa/Cairo",
        "Africa/Casablanca",
        "Europe/Dublin",
        "Europe/Lisbon",
        "Atlantic/Azores",
        "America/Godthab",
        "America/St_Johns",
        "America/Asuncion",
        "America/Santiago",
        "America/Havana",
        "America/New_York",
        "America/Los_Angeles",
        "Pacific/Marquesas",
        "Pacific/Honolulu",
        "Pacific/Pago_Pago",
        "Antarctica/Troll",
    ];
    let others = Zone::names().filter(|name| name.contains('/') && !odd.contains(name)).step_by(17);
    odd.into_iter().chain(others).take(50).collect()
}

fn org(name: &str) -> OrgId {
    OrgId::new(name).unwrap()
}

async fn put(test: &TestBell, writes: &[OrgWrite]) {
    let entry = AuditEntry {
        id: Uuid::new_v4(),
        at: test.now(),
        actor: "test".to_owned(),
        action: "org.write".to_owned(),
        object: "orgs".to_owned(),
        reason: None,
        before: None,
        after: None,
        request: None,
        origin: everbell_core::store::Origin::default(),
    };
    test.bell().store().write_orgs(writes, &entry).await.unwrap();
}

fn in_zone(name: &str, zone: &str) -> OrgWrite {
    OrgWrite { timezone: Some(zone.to_owned()), ..OrgWrite::new(org(name)) }
}

async fn runs(store: &dyn Store) -> BTreeMap<String, Vec<Run>> {
    let mut by_org: BTreeMap<String, Vec<Run>> = BTreeMap::new();
    let mut after = None;
    loop {
        let page = store.list_runs(&RunFilter::default(), &PageRequest { limit: 1_000, after }).await.unwrap();
        for run in page.items {
            by_org.entry(run.org.as_ref().unwrap().to_string()).or_default().push(run);
        }
        after = page.next;
        if after.is_none() {
            return by_org;
        }
    }
}

fn dates(runs: &[Run]) -> Vec<Date> {
    let mut dates: Vec<Date> = runs.iter().map(|run| run.local_date.unwrap()).collect();
    dates.sort();
    dates
}

async fn a_year(of: &str) -> TestBell {
    let builder = Everbell::builder()
        .target("brief", |_: everbell::Run| async { Ok::<_, everbell::RunError>(()) })
        .schedule(Schedule::cron("brief", of).target("brief").per_org());
    TestBell::start(builder, BEGIN).await
}

#[tokio::test]
async fn each_local_day_of_the_year_has_its_run_at_its_local_time() {
    let mut test = a_year("30 2 * * *").await;
    let orgs: Vec<OrgWrite> = zones().into_iter().map(|zone| in_zone(zone, zone)).collect();
    assert_eq!(orgs.len(), 50);
    put(&test, &orgs).await;
    test.advance_to(END).await;
    test.assert_settled().await;
    let days: Vec<Date> = FIRST.series(1.day()).take_while(|day| *day <= LAST).collect();
    let all = runs(&**test.bell().store()).await;
    assert_eq!(all.len(), 50);
    for (name, runs) in all {
        let zone = Zone::get(&name).unwrap();
        let found: Vec<Date> = dates(&runs).into_iter().filter(|date| (FIRST..=LAST).contains(date)).collect();
        assert_eq!(found, days, "{name}");
        for run in runs {
            let local = zone.as_jiff().to_datetime(run.slot_at.unwrap());
            let wanted = local.date().to_datetime(time(2, 30, 0, 0)).to_zoned(zone.as_jiff().clone()).unwrap();
            // A time that clocks jump over is moved to the first instant after the jump.
            let jumped = wanted.datetime().time() != time(2, 30, 0, 0);
            assert!(local.time() == time(2, 30, 0, 0) || jumped, "{name}: {local}");
            assert_eq!(run.scheduled_at, run.slot_at.unwrap());
        }
    }
}

#[tokio::test]
async fn orgs_that_move_around_the_world_fire_once_on_each_local_day() {
    let mut test = a_year("0 9 * * *").await;
    let zones = zones();
    let names: Vec<String> = (0..MOVING).map(|number| format!("org-{number:02}")).collect();
    let orgs: Vec<OrgWrite> = names.iter().zip(&zones).map(|(name, zone)| in_zone(name, zone)).collect();
    put(&test, &orgs).await;
    let mut now: Timestamp = BEGIN.parse().unwrap();
    for turn in 0..120_usize {
        now += jiff::SignedDuration::from_hours(71) + jiff::SignedDuration::from_mins(turn as i64 % 17);
        test.advance_to(now).await;
        if turn % 10 == 9 {
            test.crash();
        }
        let moving = (0..5).map(|step| (turn * 7 + step * 11) % MOVING);
        let moving: BTreeSet<usize> = moving.collect();
        let writes: Vec<OrgWrite> =
            moving.into_iter().map(|number| in_zone(&names[number], zones[(turn * 13 + number * 3) % 50])).collect();
        put(&test, &writes).await;
    }
    test.advance_to(END).await;
    let store = test.bell().store();
    for (name, runs) in runs(&**store).await {
        let found = dates(&runs);
        let unique: BTreeSet<Date> = found.iter().copied().collect();
        assert_eq!(found.len(), unique.len(), "{name} fired twice on a day");
        let days = FIRST.series(1.day()).take_while(|day| *day <= LAST);
        let lost: Vec<Date> = days.filter(|day| !unique.contains(day)).collect();
        let filter = everbell_core::store::GapFilter { org: Some(org(&name)), ..Default::default() };
        let gaps = store.list_gaps(&filter, &PageRequest { limit: 1_000, after: None }).await.unwrap().items;
        assert!(lost.len() <= gaps.len(), "{name} lost {lost:?} and has {} gaps", gaps.len());
    }
}
