use std::collections::BTreeMap;

use everbell::client::OrgSchedules;
use everbell::core::change;
use everbell_core::cron::Expression;
use everbell_core::freeze::Freeze;
use everbell_core::org::{OrgGroup, OrgGroups, OrgSchedule};
use everbell_core::{Definition, Job, JobId, JobKey, Json, OrgId, Policies, PolicyValues, Scope, Spec, Target, Zone};
use jiff::SignedDuration;
use uuid::Uuid;

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn now() -> Timestamp {
    at("2026-11-15T12:00:30Z")
}

fn job(number: u8, cron: &str, policies: Policies) -> JobRow {
    let created_at = at("2026-11-01T00:00:00Z");
    let definition = everbell_core::with!(Definition {
        payload: Json::parse("payload", "{}").unwrap(),
        policies,
        labels: BTreeMap::from([("env".to_owned(), "prod".to_owned())]),
        created_by: "ana".to_owned(),
        ..Definition::new(
            JobId::new(created_at, [number; 10]),
            JobKey::new(&format!("job-{number}")).unwrap(),
            Target::new("log").unwrap(),
            Ok(Spec::recurring(cron.parse::<Expression>().unwrap(), Zone::utc(), created_at)),
            created_at
        )
    });
    let new = change::create(definition);
    JobRow::new(Job::new(new.definition, new.state))
}

fn plain(number: u8, cron: &str) -> JobRow {
    job(number, cron, Policies::default())
}

fn freeze(from: &str, until: &str) -> Freeze {
    everbell_core::with!(Freeze {
        label: Some(("env".to_owned(), Some("prod".to_owned()))),
        ..Freeze::new(Uuid::nil(), at(from), at(until), "release weekend".to_owned(), "ana".to_owned(), now())
    })
}

/// Twelve hours in pieces of an hour.
fn hours() -> Vec<Timestamp> {
    (0..=12).map(|hour| at("2026-11-15T12:00:00Z") + SignedDuration::from_hours(hour)).collect()
}

fn forecast(jobs: &[JobRow], freezes: &[Freeze]) -> Forecast {
    for_orgs(jobs, freezes, &OrgSchedules::default())
}

fn for_orgs(jobs: &[JobRow], freezes: &[Freeze], orgs: &OrgSchedules) -> Forecast {
    Forecast::new(&Input { jobs, known: Known { freezes, orgs, now: now() } }, &hours())
}

#[test]
fn every_fire_of_a_frequent_job_is_counted_to_the_edge() {
    let jobs = [plain(1, "*/2 * * * * *"), plain(2, "0 * * * *")];
    let forecast = forecast(&jobs, &[]);
    // In the first hour from 12:00:32 on: what is due now is no longer to come. The hourly job fired at 12:00.
    assert_eq!(forecast.starts[0], 1_784);
    assert!(forecast.starts[1..].iter().all(|starts| *starts == 1_801), "{:?}", forecast.starts);
    assert!(!forecast.is_cut && forecast.herds.is_empty());
}

#[test]
fn slots_of_a_freeze_are_not_counted() {
    let jobs = [plain(1, "*/2 * * * * *"), plain(2, "0 * * * *")];
    let forecast = forecast(&jobs, &[freeze("2026-11-15T14:00:00Z", "2026-11-15T15:30:00Z")]);
    assert_eq!(forecast.starts[1..5], [1_801, 0, 900, 1_801]);
}

#[test]
fn minutes_in_which_many_jobs_fire_are_named_once() {
    // Six jobs at each full hour, two more at 18:00, and one that fires all the time.
    let mut jobs: Vec<JobRow> = (0..6).map(|number| plain(number, "0 * * * *")).collect();
    jobs.extend([plain(7, "0 18 * * *"), plain(8, "0 18 * * *"), plain(9, "* * * * *")]);
    let herd = |time: &str, jobs, runs| Herd { at: at(time), jobs, runs };
    let busiest = herd("2026-11-15T18:00:00Z", 8, 8);
    let hourly = herd("2026-11-15T13:00:00Z", 6, 6);
    assert_eq!(forecast(&jobs, &[]).herds, [busiest, hourly], "the same six jobs are not named for each hour");
    assert_eq!(forecast(&jobs[..4], &[]).herds, [], "four jobs are no herd");
    let peaks = forecast(&jobs, &[]).peaks;
    assert_eq!((&peaks[0], &peaks[1]), (&None, &Some(herd("2026-11-15T13:00:00Z", 6, 6))));
    assert_eq!(peaks[6], Some(herd("2026-11-15T18:00:00Z", 8, 8)));
}

#[test]
fn jobs_with_jitter_are_no_herd() {
    let jitter = PolicyValues { jitter: std::time::Duration::from_mins(30), ..PolicyValues::default() };
    let jitter = Policies::new(jitter).unwrap();
    let jobs: Vec<JobRow> = (0..20).map(|number| job(number, "0 18 * * *", jitter.clone())).collect();
    let forecast = forecast(&jobs, &[]);
    assert_eq!(forecast.starts.iter().sum::<u64>(), 20);
    assert_eq!(forecast.starts[6], 20, "all within half an hour after 18:00");
    assert!(forecast.herds.iter().all(|herd| herd.runs < 8), "{:?}", forecast.herds);
}

/// A per-org job, and its schedule for these orgs.
fn each(number: u8, cron: &str, policies: Policies, zones: &[(&str, u64)]) -> (JobRow, OrgSchedules) {
    let mut row = job(number, cron, policies);
    row.job.definition =
        everbell_core::with!(Definition { scope: Scope::PerOrg, ..(*row.job.definition).clone() }).into();
    let groups = zones.iter().map(|(timezone, orgs)| OrgGroup {
        timezone: (*timezone).to_owned(),
        override_: None,
        orgs: *orgs,
        first_org: OrgId::new("acme").unwrap(),
    });
    let schedule = OrgSchedule::new(&row.job.definition, &row.job.state, &OrgGroups::new(groups), now()).unwrap();
    let schedules = OrgSchedules::from_iter([(row.id(), schedule)]);
    (row, schedules)
}

#[test]
fn every_org_counts_at_every_slot() {
    let zones = [("UTC", 40), ("Europe/Berlin", 7), ("Asia/Tokyo", 3)];
    // Six in the evening and midnight: 18:00 and 00:00 in London, 17:00 and 23:00 in Berlin, 15:00 and 21:00 in Tokyo.
    let (row, orgs) = each(1, "0 */6 * * *", Policies::default(), &zones);
    let jobs = [row];
    let found = for_orgs(&jobs, &[], &orgs);
    // The pieces begin at 12:00; what fires at midnight is in the next.
    assert_eq!(found.starts, [0, 0, 0, 3, 0, 7, 40, 0, 0, 3, 0, 7]);
    let herd = |time: &str, runs| Herd { at: at(time), jobs: 1, runs };
    assert_eq!(found.herds, [herd("2026-11-15T18:00:00Z", 40)], "the same job is named once");
    assert_eq!(found.peaks[11], Some(herd("2026-11-15T23:00:00Z", 7)));
    let frozen = for_orgs(&jobs, &[freeze("2026-11-15T16:00:00Z", "2026-11-15T23:00:00Z")], &orgs);
    assert_eq!(frozen.starts, [0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 7]);
}

#[test]
fn orgs_of_a_frequent_job_are_counted_by_arithmetic() {
    let (row, orgs) = each(1, "* * * * *", Policies::default(), &[("UTC", 40), ("Asia/Tokyo", 2)]);
    let found = for_orgs(&[row], &[], &orgs);
    assert_eq!(found.starts[1..], [60 * 42; 11]);
    assert!(found.herds.is_empty() && !found.is_cut);
}

#[test]
fn jitter_spreads_the_orgs_of_a_herd() {
    let jitter = PolicyValues { jitter: std::time::Duration::from_mins(30), ..PolicyValues::default() };
    let (row, orgs) = each(1, "50 17 * * *", Policies::new(jitter).unwrap(), &[("UTC", 600)]);
    let found = for_orgs(&[row], &[], &orgs);
    assert_eq!(found.starts[5..7], [200, 400], "ten minutes before six, twenty after");
    assert_eq!(found.herds, [Herd { at: at("2026-11-15T17:50:00Z"), jobs: 1, runs: 20 }]);
}

#[test]
fn the_work_is_bounded_and_says_so() {
    // Each is counted by piece, of which there are a thousand.
    let jobs: Vec<JobRow> = (0..250).map(|number| plain(number, "* * * * * *")).collect();
    let bounds: Vec<Timestamp> = (0..=1_000).map(|piece| now() + SignedDuration::from_secs(piece)).collect();
    let orgs = OrgSchedules::default();
    let known = Known { freezes: &[], orgs: &orgs, now: now() };
    let forecast = Forecast::new(&Input { jobs: &jobs, known }, &bounds);
    assert!(forecast.is_cut);
    assert_eq!(forecast.starts[1], 200);
}
