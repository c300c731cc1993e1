//! Calendars: their versions, the days that jobs keep of them, and what an edit does to timers.

use std::sync::Arc;

use everbell_core::calendar::{Calendar, CalendarContent, CalendarName, Roll, Weekdays};
use everbell_core::change::{self, JobView};
use everbell_core::store::{GapFilter, NewCalendar, SlotOutcome, StoreError, StoreResult, StoredCalendar};
use everbell_core::{CatchUp, Definition, GapReason, JobStatus, Policies, PolicyValues, Source, Zone};
use jiff::Timestamp;

use super::Fresh;
use super::given::{at, audit, job, job_id, per_org};
use super::world::{World, success};

fn content(dates: &[&str], weekly: &[&str]) -> CalendarContent {
    CalendarContent {
        timezone: None,
        entries: dates.iter().map(|text| text.parse().unwrap()).collect(),
        weekly: Weekdays::parse(weekly).unwrap(),
    }
}

fn new(name: &str, content: CalendarContent) -> NewCalendar {
    NewCalendar { name: CalendarName::new(name).unwrap(), content, source: Source::Api }
}

async fn try_put(world: &World, new: &NewCalendar, expected: Option<u32>, when: &str) -> StoreResult<StoredCalendar> {
    let audit = audit("calendar.put", &format!("calendar:{}", new.name), at(when));
    world.store.put_calendar(new, expected, &audit).await
}

async fn put(world: &World, name: &str, dates: &[&str], when: &str) -> Arc<Calendar> {
    try_put(world, &new(name, content(dates, &[])), None, when).await.unwrap().calendar
}

/// A job that does not fire on days of this calendar.
fn excluding(definition: Definition, calendar: &Arc<Calendar>) -> Definition {
    let mut values = PolicyValues { catch_up: CatchUp::All, ..PolicyValues::default() };
    values.calendars.exclude.push(Arc::clone(calendar));
    let policies = Policies::new(values).unwrap();
    everbell_core::with!(Definition { policies, ..definition }).with_calendars(&[Arc::clone(calendar)]).unwrap()
}

async fn current(world: &World) -> Vec<Arc<Calendar>> {
    world.store.calendars().await.unwrap().into_iter().map(|stored| stored.calendar).collect()
}

pub async fn a_calendar_reads_back_as_it_was_written(fresh: Fresh) {
    let world = World::new(&fresh);
    assert_eq!(world.store.calendars().await.unwrap(), []);
    let dates = ["2026-12-24..2026-12-26 Weihnachten 'é' \"x\"", "*-01-01 New Year", "2026-11-20"];
    let full =
        CalendarContent { timezone: Some(Zone::get("Europe/Berlin").unwrap()), ..content(&dates, &["sat", "sun"]) };
    let first =
        try_put(&world, &NewCalendar { source: Source::Config, ..new("de", full.clone()) }, None, "01:00").await;
    let first = first.unwrap();
    assert_eq!((first.calendar.version(), first.applied_version, first.source), (1, 1, Source::Config));
    assert_eq!(first.calendar.content(), &full);
    put(&world, "a-second", &["2026-11-20"], "01:01").await;
    let all = world.store.calendars().await.unwrap();
    let names: Vec<&str> = all.iter().map(|stored| stored.calendar.name().as_str()).collect();
    assert_eq!(names, ["a-second", "de"]);
    assert_eq!(all[1], first);
    assert_eq!(world.actions(Some("calendar:de")).await, ["calendar.put"]);
}

pub async fn a_calendar_has_versions(fresh: Fresh) {
    let world = World::new(&fresh);
    let days = new("de", content(&["2026-11-20"], &[]));
    let missing = try_put(&world, &days, Some(1), "01:00").await;
    assert!(matches!(missing, Err(StoreError::Stale { expected: 1, found: Some(0), .. })), "{missing:?}");
    try_put(&world, &days, Some(0), "01:00").await.unwrap();
    let twice = try_put(&world, &days, Some(0), "01:01").await;
    assert!(matches!(twice, Err(StoreError::Stale { .. })), "{twice:?}");
    let second = try_put(&world, &days, Some(1), "01:02").await.unwrap();
    assert_eq!((second.calendar.version(), second.applied_version), (2, 1), "no job has followed yet");
    assert_eq!((second.created_at, second.updated_at), (at("01:00"), at("01:02")));
    assert!(!world.store.calendar_applied(&days.name, 1).await.unwrap(), "that is not the current one");
    assert!(world.store.calendar_applied(&days.name, 2).await.unwrap());
    assert_eq!(world.store.calendars().await.unwrap()[0].applied_version, 2);
    let other = CalendarName::new("other").unwrap();
    assert!(!world.store.calendar_applied(&other, 1).await.unwrap());
    // Of two first versions, and of two edits, one is written.
    let (both, one) = (new("both", content(&["2026-11-20"], &[])), new("both", content(&["2026-11-21"], &[])));
    for expected in [0, 1] {
        let written = tokio::join!(
            try_put(&world, &both, Some(expected), "01:03"),
            try_put(&world, &one, Some(expected), "01:03")
        );
        assert!(written.0.is_ok() ^ written.1.is_ok(), "{written:?}");
    }
}

pub async fn a_job_does_not_fire_on_excluded_days(fresh: Fresh) {
    let world = World::new(&fresh);
    let days = put(&world, "de", &["2026-11-16..2026-11-17 closed"], "00:00").await;
    let made = excluding(job("daily", "0 9 * * *"), &days);
    let row = world.create(made.clone()).await;
    assert_eq!(row.job.definition.policies.calendars, made.policies.calendars);
    world.plan(at("09:00")).await;
    assert_eq!(world.get("daily").await.timer.unwrap().next_run_at, Some(at("2026-11-18T09:00:00Z")));
    assert_eq!(world.plan(at("2026-11-17T10:00:00Z")).await.runs.len(), 0);
    assert_eq!(world.gaps(&GapFilter::default()).await, []);
    let planned = world.plan(at("2026-11-18T09:00:00Z")).await;
    assert_eq!(planned.runs.len(), 1);
    let gaps = world.gaps(&GapFilter::default()).await;
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    let expected = (GapReason::Excluded, 2, at("2026-11-16T09:00:00Z"), at("2026-11-17T09:00:00Z"));
    assert_eq!((gaps[0].reason, gaps[0].slots, gaps[0].first_slot_at, gaps[0].last_slot_at), expected);
}

/// A job whose slots of excluded days move.
fn rolling(definition: Definition, calendar: &Arc<Calendar>, roll: Roll) -> Definition {
    let mut values = PolicyValues::default();
    values.calendars.exclude.push(Arc::clone(calendar));
    values.calendars.roll = roll;
    let policies = Policies::new(values).unwrap();
    everbell_core::with!(Definition { policies, ..definition }).with_calendars(&[Arc::clone(calendar)]).unwrap()
}

/// Slots of each run, in order, with the times at which they were meant to start.
async fn slots(world: &World) -> Vec<(Timestamp, Timestamp)> {
    let mut slots: Vec<_> = world.runs().await.iter().map(|run| (run.slot_at.unwrap(), run.scheduled_at)).collect();
    slots.sort_unstable();
    slots
}

pub async fn a_slot_of_an_excluded_day_runs_on_the_next_allowed_one(fresh: Fresh) {
    let world = World::new(&fresh);
    let days = put(&world, "de", &["2026-11-16..2026-11-17 closed"], "00:00").await;
    let made = rolling(job("daily", "0 9 * * *"), &days, Roll::Next);
    let row = world.create(made.clone()).await;
    assert_eq!(row.job.definition.policies.calendars, made.policies.calendars);
    world.plan(at("09:00")).await;
    world.run_due(&success(), at("09:00")).await;
    let (moved_to, first, second) =
        (at("2026-11-18T09:00:00Z"), at("2026-11-16T09:00:00Z"), at("2026-11-17T09:00:00Z"));
    assert_eq!(world.get("daily").await.timer.unwrap().next_run_at, Some(moved_to));
    assert_eq!(world.plan(at("2026-11-17T10:00:00Z")).await.runs.len(), 0);
    assert_eq!(world.plan(moved_to).await.runs.len(), 3);
    let expected = [(at("09:00"), at("09:00")), (first, moved_to), (second, moved_to), (moved_to, moved_to)];
    assert_eq!(slots(&world).await, expected);
    assert_eq!(world.plan(moved_to).await.runs.len(), 0, "planned once");
    assert_eq!(world.gaps(&GapFilter::default()).await, []);
    let id = row.job.definition.id;
    let outcome = world.store.slot_outcome(id, None, first).await.unwrap();
    assert!(matches!(outcome, Some(SlotOutcome::Run(run)) if run.scheduled_at == moved_to));
    // One after the other, though they are due at once.
    let mut started = Vec::new();
    for _ in 0..3 {
        let claims = world.run_due(&success(), moved_to).await;
        assert_eq!(claims.len(), 1);
        started.push(claims[0].run.slot_at.unwrap());
    }
    assert_eq!(started, [first, second, moved_to]);
}

pub async fn a_slot_that_ran_on_the_day_before_does_not_run_again_after_an_edit(fresh: Fresh) {
    let world = World::new(&fresh);
    let days = put(&world, "de", &["2026-11-16 closed"], "00:00").await;
    world.create(rolling(job("daily", "0 9 * * *"), &days, Roll::Previous)).await;
    world.plan(at("09:00")).await;
    let monday = at("2026-11-16T09:00:00Z");
    assert_eq!(slots(&world).await, [(at("09:00"), at("09:00")), (monday, at("09:00"))], "a day before its own time");
    assert_eq!(world.get("daily").await.timer.unwrap().next_run_at, Some(at("2026-11-17T09:00:00Z")));
    put(&world, "de", &["2026-12-24"], "10:00").await;
    let all = current(&world).await;
    let follow = |view: &JobView| change::follow_calendars(view, all.clone(), job_id("daily", 2), "ana", at("10:00"));
    world.try_change("daily", at("10:00"), follow).await.unwrap();
    assert_eq!(world.get("daily").await.timer.unwrap().next_run_at, Some(at("2026-11-17T09:00:00Z")));
    assert_eq!(world.plan(monday).await.runs.len(), 0);
    assert_eq!(world.plan(at("2026-11-17T09:00:00Z")).await.runs.len(), 1);
    assert_eq!(world.gaps(&GapFilter::default()).await, []);
}

pub async fn a_job_with_other_days_than_its_calendar_is_refused(fresh: Fresh) {
    let world = World::new(&fresh);
    let first = put(&world, "de", &["2026-11-16"], "00:00").await;
    let stale = excluding(job("daily", "0 9 * * *"), &first);
    put(&world, "de", &["2026-11-17"], "00:01").await;
    let entry = audit("job.create", "job:daily", at("00:02"));
    let refused = world.store.create_job(&change::create(stale), &entry).await;
    let Err(StoreError::Conflict { what }) = refused else { panic!("{refused:?}") };
    assert_eq!(what, "calendar `de` has version 2, and the job was made with 1");
    let gone = Arc::new(Calendar::new(CalendarName::new("gone").unwrap(), 1, content(&["2026-11-16"], &[])));
    let refused = world.store.create_job(&change::create(excluding(job("daily", "0 9 * * *"), &gone)), &entry).await;
    let Err(StoreError::Conflict { what }) = refused else { panic!("{refused:?}") };
    assert_eq!(what, "calendar `gone` no longer exists");
    let created = excluding(job("daily", "0 9 * * *"), &current(&world).await[0]);
    world.create(created).await;
    // An edit that brings the old days back is refused as well, and changes nothing.
    let edit = change::Edit { calendars: vec![first], ..change::Edit::default() };
    let decide =
        |view: &JobView| change::new_version(view, edit.clone(), job_id("daily", 2), false, "ana", at("00:03"));
    let refused = world.try_change("daily", at("00:03"), decide).await;
    assert!(matches!(refused, Err(StoreError::Conflict { .. })), "{refused:?}");
    assert_eq!(world.get("daily").await.job.definition.version, 1);
}

pub async fn an_edit_reaches_a_job_as_its_next_version(fresh: Fresh) {
    let world = World::new(&fresh);
    let days = put(&world, "de", &["2026-11-16"], "00:00").await;
    world.create(excluding(job("daily", "0 9 * * *"), &days)).await;
    world.create(job("other", "0 9 * * *")).await;
    let users = world.store.calendar_jobs().await.unwrap();
    assert_eq!(users.iter().map(|job| job.definition.key.as_str()).collect::<Vec<_>>(), ["daily"]);
    world.plan(at("09:00")).await;
    put(&world, "de", &["2026-11-17"], "10:00").await;
    assert_eq!(world.get("daily").await.job.definition.version, 1, "jobs keep their days until then");
    let all = current(&world).await;
    let follow = |view: &JobView| change::follow_calendars(view, all.clone(), job_id("daily", 2), "ana", at("10:00"));
    let changed = world.try_change("daily", at("10:00"), follow).await.unwrap();
    let next = changed.successor.unwrap();
    assert_eq!(next.timer.unwrap().next_run_at, Some(at("2026-11-16T09:00:00Z")), "the day is allowed now");
    assert_eq!(next.job.state.status, JobStatus::Active);
    let again = world.try_change("daily", at("10:01"), follow).await;
    assert!(matches!(again, Err(StoreError::Invalid(_))), "{again:?}");
    let planned = world.plan(at("2026-11-16T09:00:00Z")).await;
    assert_eq!(planned.runs.len(), 2);
    assert_eq!(world.get("daily").await.timer.unwrap().next_run_at, Some(at("2026-11-18T09:00:00Z")));
}

pub async fn the_zone_of_an_org_decides_its_days(fresh: Fresh) {
    let world = World::new(&fresh);
    let days = put(&world, "de", &["2026-11-16"], "00:00").await;
    world
        .put(&[super::given::org("east", "Asia/Tokyo"), super::given::org("west", "America/New_York")], at("00:00"))
        .await;
    world.create(per_org(excluding(job("hourly", "0 * * * *"), &days))).await;
    world.reconcile_orgs(at("00:00")).await;
    let next = async |org: &str, mark: &str| {
        world.plan(at(mark)).await;
        let rows = world.store.org_jobs(&everbell_core::OrgId::new(org).unwrap()).await.unwrap();
        rows[0].timer.as_ref().unwrap().next_run_at.unwrap()
    };
    // Monday the 16th lasts from 15:00 on the 15th in Tokyo, and until 05:00 on the 17th in New York.
    assert_eq!(next("east", "14:30").await, at("2026-11-16T15:00:00Z"));
    assert_eq!(next("west", "2026-11-16T04:30:00Z").await, at("2026-11-17T05:00:00Z"));
}

pub async fn a_calendar_that_a_job_uses_is_not_deleted(fresh: Fresh) {
    let world = World::new(&fresh);
    let name = CalendarName::new("de").unwrap();
    let entry = audit("calendar.delete", "calendar:de", at("01:00"));
    let missing = world.store.delete_calendar(&name, &entry).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })), "{missing:?}");
    let days = put(&world, "de", &["2026-11-16"], "00:00").await;
    world.create(excluding(job("daily", "0 9 * * *"), &days)).await;
    let refused = world.store.delete_calendar(&name, &entry).await;
    let Err(StoreError::Conflict { what }) = refused else { panic!("{refused:?}") };
    assert_eq!(what, "calendar `de` is used by daily; edit these jobs first");
    world.retire("daily", at("02:00")).await;
    world.store.delete_calendar(&name, &entry).await.unwrap();
    assert_eq!(world.store.calendars().await.unwrap(), []);
    assert_eq!(world.actions(Some("calendar:de")).await.len(), 2);
    let row = world.get("daily").await;
    assert!(row.job.definition.policies.calendars.names(&name), "history keeps its days");
}
