//! Orgs, as a program keeps them: written, followed by timers, told in the audit trail.

use std::sync::Arc;

use everbell::core::store::JobOrgFilter;
use everbell::testing::TestBell;
use everbell::{
    Event, Everbell, JobKey, Org, OrgFilter, OrgId, OrgWrite, OverrideWrite, Run, RunStatus, Schedule, Scope,
    StoreError,
};

use crate::given::{Manual, Stored, at, last_entry, nothing, on_every_store, page, trail};

pub(crate) fn id(text: &str) -> OrgId {
    OrgId::new(text).unwrap()
}

pub(crate) fn key(text: &str) -> JobKey {
    JobKey::new(text).unwrap()
}

pub(crate) fn placed(org: &str, timezone: &str) -> OrgWrite {
    OrgWrite { timezone: Some(timezone.to_owned()), ..OrgWrite::new(id(org)) }
}

/// Every day at eight, for each org.
pub(crate) fn morning(key: &str) -> Schedule {
    Schedule::cron(key, "0 8 * * *").per_org().target("nothing")
}

pub(crate) async fn bell(stored: &Stored, clock: &Arc<Manual>) -> Everbell {
    at(stored, clock).target("nothing", nothing).build().await.unwrap()
}

/// Lists the orgs that a job fires for next, each with its time.
async fn armed(bell: &Everbell, job: &str) -> Vec<String> {
    let filter = JobOrgFilter { armed: Some(true), ..JobOrgFilter::default() };
    let rows = bell.orgs().of_job(job, &filter, &page()).await.unwrap().items;
    rows.iter().map(|row| format!("{} {}", row.org.id, row.timer.as_ref().unwrap().next_run_at.unwrap())).collect()
}

on_every_store!(
    an_org_is_made_changed_and_deleted,
    timers_follow_what_is_written_at_once,
    many_orgs_are_written_or_none
);

async fn an_org_is_made_changed_and_deleted(stored: Stored) {
    let clock = Manual::new("12:00");
    let bell = bell(&stored, &clock).await;
    let orgs = bell.orgs().by("ana").because("new customer");
    let made = orgs.set(OrgWrite { name: Some("Acme".to_owned()), ..placed("acme", "europe/paris") }).await.unwrap();
    assert!(made.created && made.changed);
    assert_eq!((made.org.place.timezone.as_str(), made.org.revision), ("Europe/Paris", 1));
    let wanted = r#"ana org.create org:acme (new customer) -> {"enabled":true,"name":"Acme","settings":"{}","timezone":"Europe/Paris"}"#;
    assert_eq!(last_entry(&*stored.store).await, wanted);

    let lines = trail(&*stored.store).await.len();
    let same = orgs.set(placed("acme", "Europe/Paris")).await.unwrap();
    assert!(!same.created && !same.changed);
    assert_eq!(trail(&*stored.store).await.len(), lines, "nothing happened");

    let off = OrgWrite { enabled: Some(false), expected_revision: Some(1), ..OrgWrite::new(id("acme")) };
    assert_eq!(orgs.set(off.clone()).await.unwrap().org.revision, 2);
    let wanted = r#"ana org.update org:acme (new customer) {"enabled":true} -> {"enabled":false}"#;
    assert_eq!(last_entry(&*stored.store).await, wanted);
    let stale = orgs.set(off).await.unwrap_err();
    assert_eq!(stale.to_string(), "org `acme` is at revision 2, not 1");

    for (write, reason) in [
        (placed("bolt", "Europe/Pari"), "did you mean"),
        (OrgWrite::new(id("bolt")), "a new org needs one"),
        (OrgWrite { only_existing: true, ..placed("bolt", "UTC") }, "there is no org `bolt`"),
        (OrgWrite { name: Some("a\nb".to_owned()), ..placed("bolt", "UTC") }, "control characters"),
    ] {
        let refused = orgs.set(write).await.unwrap_err().to_string();
        assert!(refused.contains(reason), "{refused}");
    }

    assert!(matches!(orgs.delete(&id("acme"), Some(1)).await, Err(StoreError::Stale { .. })));
    orgs.delete(&id("acme"), Some(2)).await.unwrap();
    let wanted = r#"ana org.delete org:acme (new customer) {"enabled":false,"name":"Acme","settings":"{}","timezone":"Europe/Paris"}"#;
    assert_eq!(last_entry(&*stored.store).await, wanted);
    assert!(matches!(orgs.get(&id("acme")).await, Err(StoreError::NotFound { .. })));
    assert!(matches!(orgs.delete(&id("acme"), None).await, Err(StoreError::NotFound { .. })));
}

async fn timers_follow_what_is_written_at_once(stored: Stored) {
    let clock = Manual::new("12:00");
    let bell = bell(&stored, &clock).await;
    let orgs = bell.orgs();
    orgs.set(placed("acme", "Europe/Paris")).await.unwrap();
    let row = bell.jobs().create(morning("briefing")).await.unwrap();
    assert_eq!((row.job.definition.scope, row.timer), (Scope::PerOrg, None));
    assert_eq!(armed(&bell, "briefing").await, ["acme 2026-11-16T07:00:00Z"], "who was there before");
    orgs.set(placed("bolt", "Asia/Tokyo")).await.unwrap();
    assert_eq!(armed(&bell, "briefing").await, ["acme 2026-11-16T07:00:00Z", "bolt 2026-11-15T23:00:00Z"]);

    let override_write = |enabled, expression: Option<&str>| OverrideWrite {
        job_key: key("briefing"),
        enabled,
        expression: expression.map(str::to_owned),
    };
    let orgs = orgs.by("ana");
    orgs.set_override(&id("acme"), &override_write(true, Some("30 9 * * *"))).await.unwrap();
    assert_eq!(armed(&bell, "briefing").await[0], "acme 2026-11-16T08:30:00Z");
    let wanted = r#"ana org.override org:acme -> {"override:briefing":{"cronExpression":"30 9 * * *","enabled":true}}"#;
    assert_eq!(last_entry(&*stored.store).await, wanted);
    orgs.set_override(&id("acme"), &override_write(false, None)).await.unwrap();
    assert_eq!(armed(&bell, "briefing").await.len(), 1, "off for acme");
    let lines = trail(&*stored.store).await.len();
    orgs.set_override(&id("acme"), &override_write(false, None)).await.unwrap();
    assert_eq!(trail(&*stored.store).await.len(), lines, "nothing happened");
    assert_eq!(orgs.overrides(&id("acme")).await.unwrap().len(), 1);
    orgs.clear_override(&id("acme"), &key("briefing")).await.unwrap();
    assert!(last_entry(&*stored.store).await.starts_with("ana org.override_clear org:acme {\"override:briefing\""));
    assert_eq!(armed(&bell, "briefing").await.len(), 2);
    assert!(matches!(orgs.clear_override(&id("acme"), &key("briefing")).await, Err(StoreError::NotFound { .. })));
    let bad = orgs.set_override(&id("acme"), &override_write(true, Some("61 9 * * *"))).await.unwrap_err();
    assert!(bad.to_string().starts_with("cronExpression: "), "{bad}");

    // A new version, and the end.
    let edit = everbell::Edit { description: Some("again".to_owned()), ..Default::default() };
    bell.jobs().new_version("briefing", edit).await.unwrap();
    assert_eq!(armed(&bell, "briefing").await.len(), 2);
    orgs.delete(&id("bolt"), None).await.unwrap();
    assert_eq!(armed(&bell, "briefing").await.len(), 1);
    bell.jobs().retire("briefing").await.unwrap();
    assert!(armed(&bell, "briefing").await.is_empty());
    let counts = orgs.counts().await.unwrap();
    assert_eq!((counts.orgs, counts.waiting, counts.org_updates, counts.errored), (1, 0, 0, 0));
}

async fn many_orgs_are_written_or_none(stored: Stored) {
    let clock = Manual::new("12:00");
    let bell = bell(&stored, &clock).await;
    let orgs = bell.orgs().by("ana");
    let mut writes: Vec<OrgWrite> = (0..30).map(|n| placed(&format!("org-{n:02}"), "UTC")).collect();
    orgs.import(&writes[..2]).await.unwrap();
    writes[1].name = Some("second".to_owned());
    let planned = orgs.plan_import(&writes).await.unwrap();
    let count = |answers: &[everbell::OrgWritten]| {
        let count = |wanted: (bool, bool)| answers.iter().filter(|own| (own.created, own.changed) == wanted).count();
        (count((true, true)), count((false, true)), count((false, false)))
    };
    assert_eq!(count(&planned), (28, 1, 1));
    assert_eq!(orgs.list(&OrgFilter::default(), &page()).await.unwrap().items.len(), 2, "only told");
    assert_eq!(count(&orgs.import(&writes).await.unwrap()), (28, 1, 1));
    assert!(last_entry(&*stored.store).await.starts_with("ana org.import orgs -> {\"first\":[\"org-00\""));

    writes[7] = placed("org-07", "Mars/Olympus_Mons");
    writes[8] = placed("other", "UTC");
    for refused in [orgs.import(&writes).await.unwrap_err(), orgs.plan_import(&writes).await.unwrap_err()] {
        assert!(refused.to_string().starts_with("timezone: org `org-07`: "), "{refused}");
    }
    let filter = OrgFilter { text: Some("OTHER".to_owned()), ..OrgFilter::default() };
    assert!(orgs.list(&filter, &page()).await.unwrap().items.is_empty(), "none of them");
    let twice = [placed("a", "UTC"), placed("a", "UTC")];
    for refused in [orgs.import(&twice).await.unwrap_err(), orgs.plan_import(&twice).await.unwrap_err()] {
        assert_eq!(refused.to_string(), "id: org `a` is named twice");
    }
    let many: Vec<OrgWrite> = (0..=10_000).map(|n| placed(&n.to_string(), "UTC")).collect();
    assert!(orgs.import(&many).await.unwrap_err().to_string().starts_with("orgs: at most 10000 orgs at once"));
}

async fn note(run: Run) -> Result<String, everbell::RunError> {
    Ok(format!("{} {}", run.org().unwrap(), run.local_date().unwrap()))
}

#[tokio::test]
async fn one_job_fires_for_each_org_at_its_own_time() {
    let app = Everbell::builder()
        .target("note", note)
        .schedule(Schedule::cron("briefing", "0 8 * * *").per_org().target("note"));
    let mut test = TestBell::start(app, "2026-11-15T12:00:00Z").await;
    for (org, zone) in [("kiwi", "Pacific/Auckland"), ("lotus", "Asia/Tokyo"), ("lys", "Europe/Paris")] {
        test.org(org, zone).await;
    }
    test.advance_to("2026-11-16T12:00:00Z").await;
    let ran = test.assert_ran("briefing").await.times(3).with_status(RunStatus::Succeeded);
    ran.at(["2026-11-15T19:00:00Z", "2026-11-15T23:00:00Z", "2026-11-16T07:00:00Z"]);
    let runs = test.runs().list(&everbell::RunFilter::default(), &page()).await.unwrap().items;
    let said: Vec<&str> = runs.iter().rev().map(|run| run.result.as_ref().unwrap().as_str()).collect();
    assert_eq!(said, [r#""kiwi 2026-11-16""#, r#""lotus 2026-11-16""#, r#""lys 2026-11-16""#]);

    // The day is not fired twice by a move to the west.
    let lotus: Org = test.org("lotus", "America/New_York").await;
    assert_eq!(lotus.place.moved.unwrap().from, "Asia/Tokyo");
    test.advance_to("2026-11-16T18:00:00Z").await;
    test.assert_ran("briefing").await.times(3);
    assert_eq!(
        test.jobs().next_fires_for("briefing", &id("lotus"), 1).await.unwrap()[0].to_string(),
        "2026-11-17T08:00:00-05:00[America/New_York]"
    );
}

#[tokio::test]
async fn what_a_write_makes_of_timers_is_told_and_need_not_succeed() {
    let app = Everbell::builder().target("nothing", nothing).schedule(morning("briefing"));
    let mut test = TestBell::start(app, "2026-11-15T12:00:00Z").await;
    test.org("acme", "UTC").await;
    test.jobs().pause("briefing", "for a while").await.unwrap();
    test.advance_to("2026-11-17T12:00:00Z").await;
    let mut events = test.bell().events();
    test.jobs().resume("briefing").await.unwrap();
    let told = std::iter::from_fn(|| events.try_recv()).filter(|event| matches!(&**event, Event::Gap { .. }));
    assert_eq!(told.count(), 1, "the two slots of the pause");
}
