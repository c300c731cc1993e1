use std::collections::BTreeMap;

use everbell::core::change;
use everbell_core::cron::Expression;
use everbell_core::{Definition, Job, JobKey, Json, OrgId, Policies, PolicyValues, Scope, Spec, Target, Zone};
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

fn forecast(jobs: &[JobRow], freezes: &[Freeze], orgs: &[OrgFires]) -> Forecast {
    Forecast::new(&Input { jobs, freezes, orgs, now: now() }, &hours())
}

#[test]
fn every_fire_of_a_frequent_job_is_counted_to_the_edge() {
    let jobs = [plain(1, "*/2 * * * * *"), plain(2, "0 * * * *")];
    let forecast = forecast(&jobs, &[], &[]);
    // In the first hour from 12:00:32 on: what is due now is no longer to come. The hourly job fired at 12:00.
    assert_eq!(forecast.starts[0], 1_784);
    assert!(forecast.starts[1..].iter().all(|starts| *starts == 1_801), "{:?}", forecast.starts);
    assert!(!forecast.is_cut && forecast.herds.is_empty());
}

#[test]
fn slots_of_a_freeze_are_not_counted() {
    let jobs = [plain(1, "*/2 * * * * *"), plain(2, "0 * * * *")];
    let forecast = forecast(&jobs, &[freeze("2026-11-15T14:00:00Z", "2026-11-15T15:30:00Z")], &[]);
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
    assert_eq!(forecast(&jobs, &[], &[]).herds, [busiest, hourly], "the same six jobs are not named for each hour");
    assert_eq!(forecast(&jobs[..4], &[], &[]).herds, [], "four jobs are no herd");
    let peaks = forecast(&jobs, &[], &[]).peaks;
    assert_eq!((&peaks[0], &peaks[1]), (&None, &Some(herd("2026-11-15T13:00:00Z", 6, 6))));
    assert_eq!(peaks[6], Some(herd("2026-11-15T18:00:00Z", 8, 8)));
}

#[test]
fn jobs_with_jitter_are_no_herd() {
    let jitter = PolicyValues { jitter: std::time::Duration::from_mins(30), ..PolicyValues::default() };
    let jitter = Policies::new(jitter).unwrap();
    let jobs: Vec<JobRow> = (0..20).map(|number| job(number, "0 18 * * *", jitter.clone())).collect();
    let forecast = forecast(&jobs, &[], &[]);
    assert_eq!(forecast.starts.iter().sum::<u64>(), 20);
    assert_eq!(forecast.starts[6], 20, "all within half an hour after 18:00");
    assert!(forecast.herds.iter().all(|herd| herd.runs < 8), "{:?}", forecast.herds);
}

#[test]
fn orgs_count_each() {
    let mut each = plain(1, "0 18 * * *");
    let definition = everbell_core::with!(Definition { scope: Scope::PerOrg, ..(*each.job.definition).clone() });
    each.job.definition = definition.into();
    let at = at("2026-11-15T17:00:00Z");
    let org = |job| OrgFires { job, at, first_org: OrgId::new("acme").unwrap(), orgs: 40 };
    let own = each.job.definition.id;
    let orgs = [org(own), org(JobId::new(at, [99; 10]))];
    let jobs = [each];
    let found = forecast(&jobs, &[], &orgs);
    assert_eq!(found.starts[5], 40, "not those of a job that is not listed");
    assert_eq!(found.herds, [Herd { at, jobs: 1, runs: 40 }]);
    let frozen = forecast(&jobs, &[freeze("2026-11-15T16:00:00Z", "2026-11-15T18:00:00Z")], &orgs);
    assert_eq!(frozen.starts.iter().sum::<u64>(), 0);
}

#[test]
fn the_work_is_bounded_and_says_so() {
    // Each is counted by piece, of which there are a thousand.
    let jobs: Vec<JobRow> = (0..250).map(|number| plain(number, "* * * * * *")).collect();
    let bounds: Vec<Timestamp> = (0..=1_000).map(|piece| now() + SignedDuration::from_secs(piece)).collect();
    let forecast = Forecast::new(&Input { jobs: &jobs, freezes: &[], orgs: &[], now: now() }, &bounds);
    assert!(forecast.is_cut);
    assert_eq!(forecast.starts[1], 200);
}
