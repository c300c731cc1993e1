//! Orgs, overrides, org updates and plans in random order, on a store and on the model: both answer the same.

use everbell_core::change::{self, Edit};
use everbell_core::org::{OrgTask, OrgWrite, OverrideWrite};
use everbell_core::plan::Missed;
use everbell_core::store::{
    GapFilter, JobFilter, JobRef, JobSort, OrgFilter, PageRequest, PlanDue, RunFilter, RunStore, Store, StoreResult,
};
use everbell_core::{JobKey, Json};
use jiff::{SignedDuration, Timestamp};

use super::Fresh;
use super::dice::Dice;
use super::given::{at, audit, core_plan, job_at, job_id, kind, org_id, page, per_org};
use super::world::{by_key, pause_of, targets};
use crate::memory::MemoryStore;

const STEPS: u32 = 300;
const ORGS: [&str; 6] = ["acme", "Beta", "gamma", "délta", "ε", "zeta"];
const ZONES: [&str; 7] = [
    "UTC",
    "Asia/Tokyo",
    "America/Los_Angeles",
    "Pacific/Kiritimati",
    "Pacific/Honolulu",
    "Asia/Kathmandu",
    "Europe/Lisbon",
];
const KEYS: [&str; 2] = ["brief", "report"];
const TIMES: [&str; 4] = ["0 9 * * *", "30 2 * * *", "0 */6 * * *", "0 17 * * mon-fri"];

/// Something that happens, as data: it happens to both.
#[derive(Clone, Debug)]
enum Event {
    Put(Vec<OrgWrite>),
    Delete(&'static str, Option<u64>),
    SetOverride(&'static str, OverrideWrite),
    ClearOverride(&'static str, &'static str),
    Create(&'static str, &'static str, u32),
    Pause(&'static str),
    Resume(&'static str, Missed),
    NewVersion(&'static str, &'static str, u32),
    Retire(&'static str),
    ForAll(&'static str, OrgTask),
    OrgUpdate(u32),
    OrgUpdateAll,
    Plan,
}

struct Story {
    dice: Dice,
    now: Timestamp,
    versions: u32,
}

impl Story {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.dice.below(from.len())]
    }

    fn next(&mut self) -> Event {
        let minutes = [0, 1, 30, 120, 400, 1_000][self.dice.below(6)];
        self.now += SignedDuration::from_mins(minutes);
        let (org, key) = (self.pick(&ORGS), self.pick(&KEYS));
        match self.dice.below(28) {
            0..4 => Event::Put(self.orgs()),
            4 => Event::Delete(org, self.dice.one_in(3).then_some(2)),
            5..7 => {
                let expression = self.dice.one_in(2).then(|| self.pick(&TIMES).to_owned());
                let enabled = !self.dice.one_in(3);
                Event::SetOverride(org, OverrideWrite { job_key: JobKey::new(key).unwrap(), enabled, expression })
            }
            7 => Event::ClearOverride(org, key),
            8 | 9 => {
                self.versions += 1;
                Event::Create(key, self.pick(&TIMES), self.versions)
            }
            10 => Event::Pause(key),
            11 => Event::Resume(key, if self.dice.one_in(2) { Missed::RunOnce } else { Missed::Skip }),
            12 => {
                self.versions += 1;
                Event::NewVersion(key, self.pick(&TIMES), self.versions)
            }
            13 if self.dice.one_in(2) => Event::Retire(key),
            13 => Event::ForAll(key, OrgTask::Arm),
            14 => {
                Event::ForAll(key, OrgTask::RunNow { payload: Some(Json::empty()), overlap: None, trace_context: None })
            }
            15 => Event::Resume(key, Missed::Skip),
            16..20 => Event::Plan,
            20..24 => Event::OrgUpdate(1 + self.dice.below(4) as u32),
            _ => Event::OrgUpdateAll,
        }
    }

    fn orgs(&mut self) -> Vec<OrgWrite> {
        let count = 1 + self.dice.below(3);
        let first = self.dice.below(ORGS.len());
        (0..count)
            .map(|n| OrgWrite {
                timezone: (!self.dice.one_in(4)).then(|| self.pick(&ZONES).to_owned()),
                enabled: self.dice.one_in(4).then(|| self.dice.one_in(2)),
                name: self.dice.one_in(5).then(|| "A name".to_owned()),
                ..OrgWrite::new(org_id(ORGS[(first + n) % ORGS.len()]))
            })
            .collect()
    }
}

fn describe<T: std::fmt::Debug>(answer: StoreResult<T>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => format!("error: {}", kind(&error)),
    }
}

async fn happen(store: &dyn Store, event: &Event, entry: &everbell_core::store::AuditEntry, now: Timestamp) -> String {
    let job = |key: &str| by_key(key);
    match event {
        Event::Put(writes) => describe(store.write_orgs(writes, entry).await),
        Event::Delete(org, revision) => describe(store.delete_org(&org_id(org), *revision, entry).await),
        Event::SetOverride(org, write) => describe(store.write_override(&org_id(org), write, entry).await),
        Event::ClearOverride(org, key) => {
            describe(store.delete_override(&org_id(org), &JobKey::new(key).unwrap(), entry).await)
        }
        Event::Create(key, schedule, version) => {
            let mut definition = per_org(job_at(key, schedule, now));
            definition.id = job_id(key, *version);
            definition.version = *version;
            describe(store.create_job(&change::create(definition), entry).await)
        }
        Event::Pause(key) => {
            describe(store.change_job(&job(key), None, &|view| change::pause(view, pause_of(now)), entry).await)
        }
        Event::Resume(key, missed) => {
            describe(store.change_job(&job(key), None, &|view| change::resume(view, *missed, "ana", now), entry).await)
        }
        Event::NewVersion(key, schedule, version) => {
            let edit = Edit { spec: Some(job_at(key, schedule, now).spec.unwrap()), ..Edit::default() };
            let id = job_id(key, *version);
            // Versions count up by themselves; ids distinguish them.
            let decide = |view: &change::JobView| change::new_version(view, edit.clone(), id, false, "ana", now);
            describe(store.change_job(&job(key), None, &decide, entry).await)
        }
        Event::Retire(key) => {
            describe(store.change_job(&job(key), None, &|view| change::retire(view, "ana", now), entry).await)
        }
        Event::ForAll(key, work) => {
            let decide = |view: &change::JobView| change::for_all_orgs(view, work.clone());
            describe(store.change_job(&job(key), None, &decide, entry).await)
        }
        Event::OrgUpdate(limit) => {
            describe(store.reconcile_orgs(now, *limit).await.map(|progress| (progress.orgs, progress.more)))
        }
        Event::OrgUpdateAll => {
            let (mut orgs, mut rounds) = (0, 0);
            while let Ok(progress) = store.reconcile_orgs(now, 3).await
                && rounds < 500
            {
                orgs += progress.orgs;
                rounds += 1;
                if !progress.more {
                    break;
                }
            }
            format!("{orgs} orgs in {rounds} rounds")
        }
        Event::Plan => {
            let planned = store.plan_due(&PlanDue::new(now, 1_000, &targets()), &core_plan).await;
            describe(planned.map(|planned| (planned.timers, planned.runs.len(), planned.next_due_at)))
        }
    }
}

/// Everything that there is about orgs.
async fn look(store: &dyn Store) -> Vec<String> {
    let mut seen = vec![
        describe(store.list_orgs(&OrgFilter::default(), &page(1_000)).await),
        describe(store.count_orgs().await),
        describe(store.list_org_updates().await),
    ];
    let jobs = JobFilter { sort: JobSort::Key, ..JobFilter::default() };
    for row in store.list_jobs(&jobs, &page(1_000)).await.unwrap().items {
        let id = row.job.definition.id;
        let orgs = store.job_orgs(id, &everbell_core::store::JobOrgFilter::default(), &page(1_000)).await;
        seen.push(format!(
            "{id}: {}",
            describe(orgs.map(|orgs| {
                orgs.items.into_iter().map(|row| (row.org.id, row.override_, row.timer, row.error)).collect::<Vec<_>>()
            }))
        ));
        seen.push(describe(store.get_job(&JobRef::Id(id)).await.map(|row| (row.job.state, row.timer))));
    }
    let (mut after, mut runs) = (None, Vec::new());
    loop {
        let page = store.list_runs(&RunFilter::default(), &PageRequest { limit: 1_000, after }).await.unwrap();
        runs.extend(page.items.into_iter().map(|run| (run.id, run.org, run.local_date, run.status, run.slot_at)));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    seen.extend(runs.into_iter().map(|run| format!("{run:?}")));
    let gaps = store.list_gaps(&GapFilter::default(), &page(1_000)).await.unwrap().items;
    seen.extend(gaps.into_iter().map(|gap| format!("{gap:?}")));
    seen.push(describe(store.list_audit(None, &page(1_000)).await.map(|page| page.items)));
    seen
}

async fn compare(fresh: &Fresh, seed: u64) {
    let (store, model) = (fresh.store(), MemoryStore::new());
    let mut teller = Story { dice: Dice::new(seed), now: at("00:00"), versions: 0 };
    let mut past = Vec::new();
    for step in 0..STEPS {
        let event = teller.next();
        let entry = audit("test", "orgs", teller.now);
        past.push(format!("{} {event:?}", teller.now));
        let answer = happen(&*store, &event, &entry, teller.now).await;
        let expected = happen(&model, &event, &entry, teller.now).await;
        assert_eq!(answer, expected, "seed {seed}, step {step}, after\n{}", past.join("\n"));
        if step % 5 == 4 {
            let (found, expected) = (look(&*store).await, look(&model).await);
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found, expected, "seed {seed}, step {step}, after\n{}", past.join("\n"));
            }
            assert_eq!(found.len(), expected.len(), "seed {seed}, step {step}, after\n{}", past.join("\n"));
        }
    }
    let runs = model.list_runs(&RunFilter::default(), &page(1_000)).await.unwrap().items;
    assert!(runs.iter().filter(|run| run.local_date.is_some()).count() > 20, "a story in which nothing happens");
}

pub async fn random_lives_of_orgs_are_those_of_the_model(fresh: Fresh) {
    compare(&fresh, 1).await;
}

pub async fn other_random_lives_of_orgs_are_those_of_the_model(fresh: Fresh) {
    compare(&fresh, 2).await;
}

pub async fn more_random_lives_of_orgs_are_those_of_the_model(fresh: Fresh) {
    compare(&fresh, 3).await;
}
