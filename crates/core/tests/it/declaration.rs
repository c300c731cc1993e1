//! Whether a sync changes a declared job, and which release of a program decides.

use std::collections::BTreeMap;

use everbell_core::change::{self, Edit, JobView};
use everbell_core::{
    ALIVE_FOR, App, Comparison, Declaration, DeclarationHash, Definition, Job, JobId, JobKey, ReleaseId, ReleaseStatus,
    Releases, SEEN_EVERY, compare,
};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::given;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn declared(schedule: &str) -> Definition {
    given::job(schedule, "", at(0))
}

fn app() -> App {
    App::new("billing").unwrap()
}

fn view(job: Job) -> JobView {
    let timer = change::create((*job.definition).clone()).timer.unwrap();
    JobView { job, timer, org: None, active: Vec::new(), upstream_succeeded_at: None }
}

/// A job of this schedule that was synced by a program.
fn synced(schedule: &str) -> Job {
    let definition = declared(schedule);
    let declaration = Declaration::new(app(), &definition);
    let new = change::create(definition).declared(declaration);
    Job::new(new.definition, new.state)
}

fn edited(job: Job, schedule: &str) -> Job {
    let edit = Edit { spec: declared(schedule).spec.ok(), ..Edit::default() };
    let id = JobId::new(at(9), [8; 10]);
    let new = change::new_version(&view(job), edit, id, false, "ana", at(9)).unwrap().successor.unwrap();
    Job::new(new.definition, new.state)
}

#[test]
fn only_a_changed_declaration_changes_a_job() {
    let unrecorded = |mut job: Job| {
        job.state.declaration = None;
        job
    };
    let hourly = || synced("0 * * * *");
    let cases = [
        ("the same", hourly(), "0 * * * *", Comparison::Same),
        ("an edit", edited(hourly(), "5 * * * *"), "0 * * * *", Comparison::Edited),
        ("edited back by hand", edited(edited(hourly(), "5 * * * *"), "0 * * * *"), "0 * * * *", Comparison::Same),
        ("a new declaration", hourly(), "9 * * * *", Comparison::Changed { replaces_edit: false }),
        (
            "a new declaration after an edit",
            edited(hourly(), "5 * * * *"),
            "9 * * * *",
            Comparison::Changed { replaces_edit: true },
        ),
        ("declared as it was edited", edited(hourly(), "5 * * * *"), "5 * * * *", Comparison::Unrecorded),
        ("of an old release, the same", unrecorded(hourly()), "0 * * * *", Comparison::Unrecorded),
        ("of an old release, another", unrecorded(hourly()), "9 * * * *", Comparison::Changed { replaces_edit: false }),
    ];
    for (what, job, schedule, wanted) in cases {
        assert_eq!(compare(&job, &declared(schedule)), wanted, "{what}");
    }
}

#[test]
fn a_hash_has_a_version_and_forgets_what_is_default() {
    let hash = DeclarationHash::new(&declared("0 * * * *"));
    // Golden: a change of this value makes every declaration look changed.
    assert_eq!(hash.as_str(), GOLDEN);
    assert_eq!(DeclarationHash::parse(hash.as_str()).unwrap(), hash);
    assert!(DeclarationHash::parse("2:00ff").is_ok(), "of a later release");
    for bad in ["", "1:", ":00", "00", "1:xyz", "1:00 00"] {
        assert!(DeclarationHash::parse(bad).is_err(), "{bad:?}");
    }
    let with_default = given::job("0 * * * *", "overlap=skip", at(500));
    assert_eq!(DeclarationHash::new(&with_default), hash);
}

const GOLDEN: &str = "1:b6aeafb82fc225c0d3421d86dc3c29cba8763e218a6b4978241d5127f2a93f87";

#[test]
fn going_back_restores_the_content_and_keeps_the_record() {
    let first = synced("0 * * * *");
    let job = edited(first.clone(), "5 * * * *");
    assert!(job.is_edited() && !first.is_edited());
    let id = JobId::new(at(20), [9; 10]);
    let restore =
        |job: &Job, to: &Definition| change::restore_declaration(&view(job.clone()), to, &[], id, "ana", at(20));
    let next = restore(&job, &first.definition).unwrap().successor.unwrap();
    let next = Job::new(next.definition, next.state);
    assert_eq!(next.definition.content_hash(), first.definition.content_hash());
    assert_eq!((next.definition.version, next.is_edited()), (3, false));
    assert_eq!(compare(&next, &declared("0 * * * *")), Comparison::Same);

    let refused = |job: &Job, to: &Definition| restore(job, to).unwrap_err().reason;
    assert!(refused(&first, &first.definition).starts_with("the job is as it was declared"));
    assert!(refused(&job, &job.definition).starts_with("was synced as version 1, not as 2"));
    let mut api = job.clone();
    api.state.declaration = None;
    assert!(refused(&api, &first.definition).starts_with("no program and no configuration file declares this job"));
}

fn release(name: &str) -> ReleaseId {
    let key = JobKey::new(name).unwrap();
    ReleaseId::from_jobs([(&key, &DeclarationHash::new(&declared("0 * * * *")))])
}

/// Plays a story: `start 1` and `see 1` of a release at a time, and what a start is answered.
fn play(story: &[(i64, &str, &str)]) {
    let mut releases = Releases::default();
    for (seconds, what, wanted) in story {
        let (verb, name) = what.split_once(' ').unwrap();
        let id = release(name);
        if verb == "see" {
            releases = releases.see(&id, at(*seconds));
            continue;
        }
        let (next, status) = releases.declare(&id, at(*seconds));
        releases = next;
        let status = if status.is_current() { "syncs" } else { "waits" };
        assert_eq!(status, *wanted, "{what} at {seconds}");
    }
}

#[test]
fn the_newest_release_that_is_running_decides() {
    // A rolling deployment, in which an old instance restarts.
    play(&[
        (0, "start 1", "syncs"),
        (1_000, "start 2", "syncs"),
        (1_001, "start 1", "waits"),
        (1_030, "see 2", ""),
        (1_080, "start 1", "waits"),
        (1_090, "start 2", "syncs"),
    ]);
    // A rollback: the new instances end, and old ones start.
    play(&[
        (0, "start 1", "syncs"),
        (1_000, "start 2", "syncs"),
        (1_060, "see 2", ""),
        (1_070, "start 1", "waits"),
        (1_149, "start 1", "waits"),
        (1_150, "start 1", "syncs"),
        (1_151, "start 2", "waits"),
        // And the next deployment.
        (2_000, "start 3", "syncs"),
        (2_010, "start 1", "waits"),
    ]);
    // A step of a deployment that only syncs, long before the instances are replaced.
    play(&[
        (0, "start 1", "syncs"),
        (1_000, "start 2", "syncs"),
        (1_500, "see 1", ""),
        (2_000, "start 2", "syncs"),
        (2_001, "start 1", "waits"),
    ]);
    // Everything stopped, and the old release started.
    play(&[(0, "start 1", "syncs"), (10, "start 2", "syncs"), (9_999, "start 1", "syncs")]);
    // A clock that was ahead blocks nobody for long.
    play(&[(0, "start 1", "syncs"), (99_999, "start 2", "syncs"), (100, "start 1", "syncs")]);
}

#[test]
fn releases_are_remembered_up_to_a_bound() {
    let mut releases = Releases::default();
    for number in 0..100 {
        let (next, status) = releases.declare(&release(&format!("r{number}")), at(number));
        releases = next;
        assert_eq!(status, ReleaseStatus::Current);
    }
    assert_eq!(releases.all().len(), 32);
    assert_eq!(releases.all().last().unwrap().id, release("r99"));
}

proptest! {
    /// Instances of some releases start, beat and end at random. Jobs change hands at most once for each release that is
    /// new, and each time that the releases which are running have all been replaced; and when one release is left alone,
    /// it decides.
    #[test]
    fn releases_take_turns_and_the_last_one_decides(
        starts in prop::collection::vec((0_u8..4, 0_i64..600, 1_i64..400), 1..24),
    ) {
        // (release, start, end): each beats every SEEN_EVERY, and starts again if it had to wait.
        let every = SEEN_EVERY.as_secs() as i64;
        let mut events: Vec<(i64, usize, bool)> = Vec::new();
        for (index, (_, start, lasts)) in starts.iter().enumerate() {
            let beats = (0..).map(|n| start + n * every).take_while(|time| *time <= start + lasts);
            events.extend(beats.enumerate().map(|(n, time)| (time, index, n == 0)));
        }
        events.sort_unstable();
        let mut releases = Releases::default();
        let mut waits: BTreeMap<usize, bool> = BTreeMap::new();
        let mut seen_at: BTreeMap<u8, i64> = BTreeMap::new();
        let mut current: Option<u8> = None;
        for (time, index, is_start) in events {
            let name = starts[index].0;
            let id = release(&format!("r{name}"));
            releases = releases.see(&id, at(time));
            if is_start || waits.get(&index).copied().unwrap_or(false) {
                let (next, status) = releases.declare(&id, at(time));
                releases = next;
                waits.insert(index, !status.is_current());
                let alive = current.is_some_and(|current| {
                    time - seen_at.get(&current).copied().unwrap_or(i64::MIN / 2) < ALIVE_FOR.as_secs() as i64
                });
                if let Some(current) = current.filter(|current| *current != name) {
                    let is_known = seen_at.contains_key(&name);
                    prop_assert_eq!(status.is_current(), !is_known || !alive, "{} against {}", name, current);
                }
                if status.is_current() {
                    current = Some(name);
                }
            }
            seen_at.insert(name, time);
        }
        // The last one alone.
        let last = release("r0");
        let end = at(2_000).checked_add(SignedDuration::try_from(ALIVE_FOR).unwrap()).unwrap();
        prop_assert_eq!(releases.declare(&last, end).1, ReleaseStatus::Current);
    }
}
