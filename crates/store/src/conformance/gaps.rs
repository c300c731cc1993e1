//! Gaps: lists, and outcomes of slots.

use std::collections::BTreeSet;

use everbell_core::plan::{Missed, Plan};
use everbell_core::store::{Due, GapFilter, PageRequest, PlanDue, SlotOutcome};
use everbell_core::{Gap, GapReason, JobKey, OrgId};

use super::Fresh;
use super::given::{at, core_plan, job, job_id, page};
use super::world::{World, success, targets};

fn gap(first: &str, last: &str, slots: u64, reason: GapReason) -> Gap {
    Gap::new(at(first), at(last), slots, reason)
}

/// Writes gaps to every job whose timer is due.
async fn write(world: &World, gaps: &[Gap]) {
    let plan = |due: &Due, _| Plan { gaps: gaps.to_vec(), ..Plan::nothing(&due.timer) };
    world.store.plan_due(&PlanDue::new(at("23:00"), 100, &targets()), &plan).await.unwrap();
}

fn crowd() -> Vec<Gap> {
    vec![
        gap("01:00", "02:00", 2, GapReason::Missed),
        gap("03:00", "03:00", 1, GapReason::Paused),
        gap("04:00", "06:00", 3, GapReason::Coalesced),
        gap("07:00", "09:00", 3, GapReason::Missed),
    ]
}

pub async fn gaps_are_listed_latest_first(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    write(&world, &crowd()).await;
    let mut expected = crowd();
    expected.reverse();
    assert_eq!(world.gaps(&GapFilter::default()).await, expected);
    for limit in [1, 2, 7] {
        let rows = world.gaps_in_pages(&GapFilter::default(), limit).await;
        assert_eq!(rows.into_iter().map(|(_, _, gap)| gap).collect::<Vec<_>>(), expected, "pages of {limit}");
    }
}

pub async fn gaps_are_found_by_reason_and_time(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    write(&world, &crowd()).await;
    let none = GapFilter::default();
    let found = async |filter: &GapFilter| {
        let gaps = world.gaps(filter).await;
        gaps.iter().map(|gap| gap.first_slot_at.strftime("%H").to_string()).collect::<Vec<_>>()
    };
    assert_eq!(found(&GapFilter { reason: Some(GapReason::Missed), ..none.clone() }).await, ["07", "01"]);
    assert_eq!(found(&GapFilter { reason: Some(GapReason::DstGap), ..none.clone() }).await, [""; 0]);
    assert_eq!(found(&GapFilter { from: Some(at("06:00")), ..none.clone() }).await, ["07", "04"], "ends at or after");
    assert_eq!(found(&GapFilter { to: Some(at("04:00")), ..none.clone() }).await, ["03", "01"], "begins before");
    let inside = GapFilter { from: Some(at("05:00")), to: Some(at("05:30")), ..none.clone() };
    assert_eq!(found(&inside).await, ["04"], "one that spans the time asked for");
    let both = GapFilter { reason: Some(GapReason::Missed), from: Some(at("03:00")), ..none };
    assert_eq!(found(&both).await, ["07"]);
}

pub async fn gaps_are_found_by_job_and_org(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("a", "0 * * * *")).await;
    world.create(job("b", "0 * * * *")).await;
    world.create_for("acme", job("c", "0 * * * *")).await;
    write(&world, &[gap("01:00", "02:00", 2, GapReason::Missed)]).await;
    let none = GapFilter::default();
    let acme = OrgId::new("acme").unwrap();
    let owners = async |filter: &GapFilter, limit| {
        let rows = world.gaps_in_pages(filter, limit).await;
        let count = rows.len();
        let owners: BTreeSet<_> = rows.into_iter().map(|(job, org, _)| (job, org)).collect();
        assert_eq!(owners.len(), count, "none twice");
        owners
    };
    let of = |key, org: Option<&OrgId>| (job_id(key, 1), org.cloned());
    let all = BTreeSet::from([of("a", None), of("b", None), of("c", Some(&acme))]);
    for limit in [1, 2, 7] {
        assert_eq!(owners(&none, limit).await, all, "equal times, in pages of {limit}");
    }
    let by_job = GapFilter { job_id: Some(job_id("b", 1)), ..none.clone() };
    assert_eq!(owners(&by_job, 10).await, BTreeSet::from([of("b", None)]));
    let by_key = |key: &str| GapFilter { job_key: Some(JobKey::new(key).unwrap()), ..none.clone() };
    let both = GapFilter { job_id: Some(job_id("a", 1)), ..by_key("b") };
    assert_eq!(world.gaps(&by_key("b")).await, world.gaps(&by_job).await);
    assert_eq!((world.gaps(&by_key("nobody")).await, world.gaps(&both).await), (vec![], vec![]));
    let by_org = GapFilter { org: Some(acme.clone()), ..none.clone() };
    assert_eq!(owners(&by_org, 10).await, BTreeSet::from([of("c", Some(&acme))]));
}

pub async fn a_page_of_gaps_goes_on_where_the_last_ended(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    write(&world, &crowd()).await;
    let first = world.store.list_gaps(&GapFilter::default(), &page(2)).await.unwrap();
    write(&world, &[gap("11:00", "12:00", 2, GapReason::Missed), gap("02:30", "02:30", 1, GapReason::DstGap)]).await;
    let rest = PageRequest { limit: 10, after: first.next };
    let rest = world.store.list_gaps(&GapFilter::default(), &rest).await.unwrap();
    let firsts: Vec<_> = rest.items.iter().map(|(_, _, gap)| gap.first_slot_at).collect();
    assert_eq!(firsts, [at("03:00"), at("02:30"), at("01:00")]);
}

pub async fn a_slot_ends_in_a_run_or_a_gap(fresh: Fresh) {
    let world = World::new(&fresh);
    let row = world.create(job("hourly", "0 * * * *")).await;
    let id = row.job.definition.id;
    world.plan(at("03:00:10")).await;
    let outcome = async |slot: &str| world.store.slot_outcome(id, None, at(slot)).await.unwrap();
    let Some(SlotOutcome::Run(run)) = outcome("03:00").await else { panic!("no run") };
    assert_eq!(run, Box::new(world.runs().await[0].clone()));
    let expected = gap("01:00", "02:00", 2, GapReason::Coalesced);
    assert_eq!(outcome("01:00").await, Some(SlotOutcome::Gap(expected.clone())), "its first");
    assert_eq!(outcome("02:00").await, Some(SlotOutcome::Gap(expected)), "and its last");
    assert_eq!(outcome("04:00").await, None, "not yet");
    assert_eq!(outcome("00:59").await, None, "before its time");
    assert_eq!(world.store.slot_outcome(job_id("other", 1), None, at("03:00")).await.unwrap(), None);
}

pub async fn a_run_inside_a_gap_is_the_outcome_of_its_slot(fresh: Fresh) {
    let world = World::new(&fresh);
    let row = world.create(job("hourly", "0 * * * *")).await;
    world.run_due(&success(), at("01:00")).await;
    // The range of a gap may span slots that have another outcome, and narrower gaps.
    write(&world, &[gap("00:30", "05:00", 3, GapReason::Missed), gap("02:00", "02:00", 1, GapReason::DstGap)]).await;
    let outcome =
        async |slot: &str| match world.store.slot_outcome(row.job.definition.id, None, at(slot)).await.unwrap() {
            Some(SlotOutcome::Run(_)) => "run",
            Some(SlotOutcome::Gap(gap)) => gap.reason.as_str(),
            None => "nothing",
        };
    assert_eq!(outcome("01:00").await, "run");
    assert_eq!(outcome("02:00").await, "dst_gap", "the narrowest");
    assert_eq!(outcome("03:00").await, "missed");
}

pub async fn a_gap_keeps_who_made_it(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    let by_ana = everbell_core::with!(Gap {
        actor: Some("ana \"the\" operator".to_owned()),
        ..gap("01:00", "01:00", 1, GapReason::Missed)
    });
    let many = everbell_core::with!(Gap { slots: 3_155_760_000, ..gap("02:00", "22:00", 1, GapReason::Expired) });
    write(&world, &[by_ana.clone(), many.clone()]).await;
    assert_eq!(world.gaps(&GapFilter::default()).await, [many, by_ana]);
}

pub async fn a_pause_that_begins_again_makes_two_gaps(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    for (pause, resume) in [("00:30", "02:30"), ("03:30", "05:30")] {
        world.pause("hourly", at(pause)).await;
        world.resume("hourly", Missed::Skip, at(resume)).await;
        let next = at(resume).checked_add(jiff::SignedDuration::from_mins(30)).unwrap();
        world.store.plan_due(&PlanDue::new(next, 10, &targets()), &core_plan).await.unwrap();
        let claims = world.start(next).await;
        world.finish(&claims, &success(), next).await;
    }
    let gaps = world.gaps(&GapFilter::default()).await;
    assert_eq!(gaps, [gap("04:00", "05:00", 2, GapReason::Paused), gap("01:00", "02:00", 2, GapReason::Paused)]);
}
