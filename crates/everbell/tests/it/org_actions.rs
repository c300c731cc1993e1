//! Actions on a job for one org, for some, or for all.

use everbell::core::GapReason;
use everbell::core::store::{GapFilter, SlotOutcome};
use everbell::{Explanation, RunFilter, RunNow, RunRecord, StoreError};

use crate::given::{Manual, Stored, last_entry, on_every_store, page, time};
use crate::orgs::{bell, id, morning, placed};

async fn world(stored: &Stored) -> (std::sync::Arc<Manual>, everbell::Everbell) {
    let clock = Manual::new("12:00");
    let bell = bell(stored, &clock).await;
    for (org, zone) in [("acme", "Europe/Paris"), ("bolt", "Asia/Tokyo"), ("cove", "UTC")] {
        bell.orgs().set(placed(org, zone)).await.unwrap();
    }
    bell.jobs().create(morning("briefing")).await.unwrap();
    bell.jobs().create(crate::given::daily("plain")).await.unwrap();
    (clock, bell)
}

async fn runs(bell: &everbell::Everbell) -> Vec<RunRecord> {
    bell.runs().list(&RunFilter::default(), &page()).await.unwrap().items
}

on_every_store!(
    a_run_by_hand_is_for_one_org_for_some_or_for_all,
    a_backfill_is_for_one_org_or_for_all,
    the_next_fire_of_one_org_is_moved_or_skipped,
    what_fires_at_once_after_a_change_is_known
);

async fn a_run_by_hand_is_for_one_org_for_some_or_for_all(stored: Stored) {
    let (_clock, bell) = world(&stored).await;
    let jobs = bell.jobs().by("ana");
    let refused = jobs.run_now("briefing").await.unwrap_err().to_string();
    assert_eq!(refused, "orgId: this job fires per org: name one in `orgId`, or all of them with `orgs`: `all`");
    let RunNow::Started(run) = jobs.run_now("briefing").for_org(&id("acme")).payload([7]).await.unwrap() else {
        panic!("nothing is in the way")
    };
    assert_eq!((run.org.as_ref(), run.payload.as_str()), (Some(&id("acme")), "[7]"));
    let wanted =
        format!(r#"ana job.run_now job:briefing -> {{"orgId":"acme","payloadOverridden":true,"runId":"{}"}}"#, run.id);
    assert_eq!(last_entry(&*stored.store).await, wanted);
    // Overlap is judged for each org alone.
    let answers = jobs.run_now_for("briefing", &[id("acme"), id("bolt"), id("nobody")]).await.unwrap();
    let told: Vec<String> = answers
        .iter()
        .map(|answer| match &answer.outcome {
            Ok(RunNow::Skipped { blocking, .. }) => format!("{} skipped {}", answer.org, *blocking == run.id),
            Ok(_) => format!("{} started", answer.org),
            Err(error) => format!("{} {error}", answer.org),
        })
        .collect();
    assert_eq!(told, ["acme skipped true", "bolt started", "nobody there is no org `nobody`"]);

    let begun = jobs.run_now_for_all("briefing").await.unwrap();
    assert!(begun.done, "three orgs are few");
    assert!(last_entry(&*stored.store).await.starts_with(r#"ana job.run_now job:briefing -> {"orgs":"all""#));
    let cove: Vec<RunRecord> = runs(&bell).await.into_iter().filter(|run| run.org == Some(id("cove"))).collect();
    assert_eq!((cove.len(), cove[0].trigger.to_string().as_str()), (1, "manual:ana"));
    let again = bell.runs().rerun(run.id).await.unwrap();
    assert_eq!((again.run().org.as_ref(), again.run().payload.as_str()), (Some(&id("acme")), "[7]"));

    for refused in [
        jobs.run_now("plain").for_org(&id("acme")).await.unwrap_err(),
        jobs.run_now_for("plain", &[id("acme")]).await.unwrap_err(),
        jobs.run_now_for_all("plain").await.unwrap_err(),
    ] {
        assert!(refused.to_string().contains("its scope is `global`"), "{refused}");
    }
    assert!(jobs.run_now_for("briefing", &[]).await.unwrap_err().to_string().starts_with("orgs: must be 1 to 100"));
    let stale = jobs.run_now("briefing").for_org(&id("acme")).if_revision(99).await.unwrap_err();
    assert!(matches!(stale, StoreError::Stale { .. }), "{stale}");
}

async fn a_backfill_is_for_one_org_or_for_all(stored: Stored) {
    let (_clock, bell) = world(&stored).await;
    let jobs = bell.jobs().by("ana");
    let (from, to) = (time("2026-11-10T00:00:00Z"), time("2026-11-12T12:00:00Z"));
    assert!(jobs.backfill("briefing", from, to).await.unwrap_err().to_string().starts_with("orgId: "));
    let plan = jobs.plan_backfill_for("briefing", &id("acme"), from, to).await.unwrap();
    assert_eq!(plan.wanted(), [10, 11, 12].map(|day| time(&format!("2026-11-{day}T07:00:00Z"))));
    assert_eq!(plan.zone.name(), "Europe/Paris");
    let begun = jobs.backfill_for("briefing", &id("acme"), from, to).await.unwrap();
    assert_eq!(begun.runs.len(), 1, "the others follow as places become free");
    assert!(begun.runs.iter().all(|run| run.org == Some(id("acme"))));
    assert_eq!(begun.runs[0].local_date.unwrap().to_string(), "2026-11-10");

    let size = jobs.plan_backfill_for_all("briefing", from, to).await.unwrap();
    assert_eq!((size.looked_at, size.more, size.with_slots, size.slots), (3, false, 3, 8));
    assert!(jobs.plan_backfill_for_all("plain", from, to).await.unwrap_err().to_string().contains("global"));
    let all = jobs.backfill_for_all("briefing", from, to).await.unwrap();
    assert!(all.org_update.done);
    let of = |runs: &[RunRecord], org: &str| runs.iter().filter(|run| run.org == Some(id(org))).count();
    let made = runs(&bell).await;
    assert_eq!((of(&made, "acme"), of(&made, "bolt"), of(&made, "cove")), (3, 2, 3), "the first of acme was there");
    let reports = jobs.backfills("briefing").await.unwrap();
    let told: Vec<_> = reports.iter().map(|report| (report.id, report.runs["pending"], report.updating_orgs)).collect();
    assert_eq!(told, [(all.id, 7, false), (begun.id, 3, false)]);
    assert_eq!(jobs.stop_backfill("briefing", all.id).await.unwrap(), 7);

    let years = jobs.backfill_for_all("briefing", time("2020-01-01T00:00:00Z"), to).await.unwrap_err();
    assert!(years.to_string().contains("at most 1000 at once"), "{years}");
}

async fn the_next_fire_of_one_org_is_moved_or_skipped(stored: Stored) {
    let (clock, bell) = world(&stored).await;
    let jobs = bell.jobs().by("ana");
    let next = async |org: &str| {
        let fires = jobs.next_fires_for("briefing", &id(org), 2).await.unwrap();
        fires.iter().map(|at| at.timestamp().to_string()).collect::<Vec<_>>()
    };
    assert!(jobs.reschedule("briefing", time("15:00")).await.unwrap_err().to_string().starts_with("orgId: "));
    jobs.reschedule("briefing", time("15:00")).for_org(&id("acme")).await.unwrap();
    assert_eq!(next("acme").await, ["2026-11-15T15:00:00Z", "2026-11-17T07:00:00Z"]);
    let wanted = r#"ana job.reschedule job:briefing {"nextRunAt":"2026-11-16T07:00:00Z"} -> {"nextRunAt":"2026-11-15T15:00:00Z","orgId":"acme"}"#;
    assert_eq!(last_entry(&*stored.store).await, wanted);
    let stale = jobs.skip_next("briefing", 1).for_org(&id("bolt")).if_revision(1).await.unwrap_err();
    assert!(matches!(stale, StoreError::Stale { .. }), "{stale}");
    jobs.skip_next("briefing", 1).for_org(&id("bolt")).await.unwrap();
    assert_eq!(next("bolt").await, ["2026-11-16T23:00:00Z", "2026-11-17T23:00:00Z"]);
    assert_eq!(next("cove").await[0], "2026-11-16T08:00:00Z", "the others are as they were");

    let skipped = jobs.explain_for("briefing", &id("bolt"), time("2026-11-15T23:00:00Z")).await.unwrap();
    assert!(matches!(skipped, Explanation::Settled(SlotOutcome::Run(run)) if run.skip.is_some()));
    let ahead = jobs.explain_for("briefing", &id("cove"), time("2026-11-16T08:00:00Z")).await.unwrap();
    assert_eq!(ahead, Explanation::Ahead);
    let other = jobs.explain_for("briefing", &id("cove"), time("2026-11-16T07:00:00Z")).await.unwrap();
    assert!(matches!(other, Explanation::NoSlot { .. }), "{other:?}");

    // A pause of the job is a gap of each org.
    jobs.pause("briefing", "for a while").await.unwrap();
    clock.set("2026-11-16T12:00:00Z");
    jobs.resume("briefing").await.unwrap();
    let filter = GapFilter { org: Some(id("cove")), ..GapFilter::default() };
    let gaps = bell.runs().gaps(&filter, &page()).await.unwrap().items;
    assert_eq!((gaps.len(), gaps[0].2.reason), (1, GapReason::Paused));
    assert!(bell.orgs().rebuild("briefing").await.unwrap().done);
    assert!(bell.orgs().org_updates().await.unwrap().is_empty());
}

#[tokio::test]
async fn what_a_move_would_do_is_told_and_not_done() {
    let stored = Stored::memory();
    let (_clock, bell) = world(&stored).await;
    let told = bell.orgs().what_if(&id("acme"), "asia/tokyo", 2).await.unwrap();
    assert_eq!(told.len(), 1);
    let what_if = &told[0].what_if;
    assert_eq!(what_if.before, ["2026-11-16T07:00:00Z", "2026-11-17T07:00:00Z"].map(time));
    assert_eq!(what_if.after, ["2026-11-15T23:00:00Z", "2026-11-16T23:00:00Z"].map(time));
    assert_eq!(told[0].there.as_ref().unwrap().zone().name(), "Asia/Tokyo");
    assert_eq!(bell.orgs().get(&id("acme")).await.unwrap().place.timezone, "Europe/Paris");
    let refused = bell.orgs().what_if(&id("acme"), "Asia/Tokio", 2).await.unwrap_err().to_string();
    assert!(refused.contains("Asia/Tokyo"), "{refused}");
}

#[tokio::test]
async fn what_is_done_for_all_orgs_is_stopped() {
    let stored = Stored::memory();
    let (_clock, bell) = world(&stored).await;
    // More than are looked at on the spot, and no engine that does the rest.
    let many: Vec<_> = (0..2_400).map(|number| placed(&format!("org-{number:04}"), "UTC")).collect();
    bell.orgs().import(&many).await.unwrap();
    bell.orgs().set(placed("last", "UTC")).await.unwrap();
    let jobs = bell.jobs().by("ana");
    let begun = jobs.run_now_for_all("briefing").await.unwrap();
    assert!(!begun.done);
    let orgs = bell.orgs().by("ana").because("too many");
    assert!(
        matches!(orgs.stop_org_update("plain", begun.id).await, Err(StoreError::NotFound { .. })),
        "it is of another job"
    );
    let seen = orgs.stop_org_update("briefing", begun.id).await.unwrap().seen;
    let wanted =
        format!(r#"ana job.stop_sweep job:briefing (too many) -> {{"sweepId":"{}","work":"run_now"}}"#, begun.id);
    assert_eq!(last_entry(&*stored.store).await, wanted);
    assert!(seen > 0 && orgs.org_updates().await.unwrap().is_empty());
    let made = bell.runs().count(&RunFilter::default(), 10_000).await.unwrap();
    assert_eq!(u64::from(made), seen, "the runs that were made stay");

    // A backfill that is stopped makes no more runs, and those that wait are canceled.
    let (from, to) = (time("2026-11-10T00:00:00Z"), time("2026-11-10T12:00:00Z"));
    let all = jobs.backfill_for_all("briefing", from, to).await.unwrap();
    assert!(!all.org_update.done);
    let made = jobs.backfills("briefing").await.unwrap()[0].runs["pending"];
    assert_eq!(jobs.stop_backfill("briefing", all.id).await.unwrap(), made);
    assert!(orgs.org_updates().await.unwrap().is_empty());
}

async fn what_fires_at_once_after_a_change_is_known(stored: Stored) {
    let (clock, bell) = world(&stored).await;
    let orgs = bell.orgs();
    clock.set("2026-11-17T15:00:00Z");
    orgs.set(placed("dune", "UTC")).await.unwrap();
    let keys = orgs.fires_now(&id("dune"), &[]).await.unwrap();
    assert_eq!(keys.iter().map(ToString::to_string).collect::<Vec<_>>(), ["briefing"], "its morning has gone by");
    orgs.set(placed("east", "America/Los_Angeles")).await.unwrap();
    assert_eq!(orgs.fires_now(&id("east"), &[]).await.unwrap(), [], "its morning is still to come");

    let before = orgs.jobs_of(&id("east")).await.unwrap();
    let earlier = everbell::OverrideWrite {
        job_key: everbell::JobKey::new("briefing").unwrap(),
        enabled: true,
        expression: Some("0 5 * * *".to_owned()),
    };
    orgs.set_override(&id("east"), &earlier).await.unwrap();
    assert_eq!(orgs.fires_now(&id("east"), &before).await.unwrap().len(), 1, "now it has gone by");
}
