//! The last sync of a declared job, and the releases of programs.

use everbell_core::change::{self, Edit, JobView};
use everbell_core::store::JobRef;
use everbell_core::{App, Declaration, DeclarationHash, JobKey, ReleaseId, ReleaseStatus, Releases, Source};

use super::Fresh;
use super::given::{at, audit, job, job_id};
use super::world::World;

fn app(name: &str) -> App {
    App::new(name).unwrap()
}

fn release(name: &str) -> ReleaseId {
    ReleaseId::from_jobs([(&JobKey::new(name).unwrap(), &DeclarationHash::new(&job(name, "0 * * * *")))])
}

pub async fn a_declaration_is_written_with_its_job_and_stays_in_the_next_version(fresh: Fresh) {
    let world = World::new(&fresh);
    let definition = job("hourly", "0 * * * *");
    let first = Declaration::new(app("billing \"and\" more"), &definition);
    let new = change::create(definition).declared(first.clone());
    let row = world.store.create_job(&new, &audit("job.create", "job:hourly", at("00:00"))).await.unwrap();
    assert_eq!(row.job.state.declaration, Some(first.clone()));

    let edit = || Edit { description: Some("edited".to_owned()), ..Edit::default() };
    let id = job_id("hourly", 2);
    let decide = |view: &JobView| change::new_version(view, edit(), id, false, "ana", at("01:00"));
    world.try_change("hourly", at("01:00"), decide).await.unwrap();
    let row = world.store.get_job(&JobRef::Id(id)).await.unwrap();
    assert_eq!(row.job.state.declaration, Some(first.clone()));
    assert!(row.job.is_edited());

    let second = first.at_version(2);
    let decide = |view: &JobView| change::record_declaration(view, second.clone(), "sync", at("02:00"));
    world.try_change("hourly", at("02:00"), decide).await.unwrap();
    let after = world.store.get_job(&JobRef::Id(id)).await.unwrap();
    assert_eq!(after.job.state.declaration, Some(second));
    assert_eq!(after.job.state.revision, row.job.state.revision + 1);
    assert_eq!(after.timer, row.timer, "nothing else changes");
    let old = world.store.get_job(&JobRef::Version(after.job.definition.key.clone(), 1)).await.unwrap();
    assert_eq!(old.job.state.declaration.unwrap().version, 1);
}

pub async fn a_job_that_nobody_declares_has_no_declaration(fresh: Fresh) {
    let world = World::new(&fresh);
    assert_eq!(world.create(job("hourly", "0 * * * *")).await.job.state.declaration, None);
}

pub async fn a_release_that_was_replaced_waits_while_the_other_is_running(fresh: Fresh) {
    let world = World::new(&fresh);
    let (billing, old, new) = (app("billing"), release("old"), release("new"));
    let declare = async |release: &ReleaseId, time: &str| {
        world.store.declare_release(Source::Code, &billing, release, at(time)).await.unwrap()
    };
    assert_eq!(world.store.releases(Source::Code, &billing).await.unwrap(), Releases::default());
    assert_eq!(declare(&old, "01:00").await, ReleaseStatus::Current);
    assert_eq!(declare(&new, "02:00").await, ReleaseStatus::Current);
    assert_eq!(declare(&old, "02:01").await, ReleaseStatus::Outdated { since: at("02:00") });
    world.store.see_release(Source::Code, &billing, &new, at("02:02")).await.unwrap();
    assert_eq!(declare(&old, "02:03").await, ReleaseStatus::Outdated { since: at("02:00") });
    let seen = world.store.releases(Source::Code, &billing).await.unwrap();
    let seen: Vec<_> = seen.all().iter().map(|release| (release.id.clone(), release.since, release.seen_at)).collect();
    assert_eq!(seen, [(old.clone(), at("01:00"), at("02:03")), (new.clone(), at("02:00"), at("02:02"))]);
    assert_eq!(declare(&old, "02:04").await, ReleaseStatus::Current, "a rollback");
    assert_eq!(declare(&new, "02:05").await, ReleaseStatus::Outdated { since: at("02:04") });
}

pub async fn programs_and_sources_have_releases_of_their_own(fresh: Fresh) {
    let world = World::new(&fresh);
    let owners = [(Source::Code, app("billing")), (Source::Code, app("mail")), (Source::Config, app("billing"))];
    for (number, (source, app)) in owners.iter().enumerate() {
        let own = release(&format!("r{number}"));
        world.store.see_release(*source, app, &own, at("01:00")).await.unwrap();
        assert_eq!(world.store.releases(*source, app).await.unwrap(), Releases::default(), "only a start declares");
        let status = world.store.declare_release(*source, app, &own, at("01:00")).await.unwrap();
        assert_eq!(status, ReleaseStatus::Current);
    }
    for (number, (source, app)) in owners.iter().enumerate() {
        let releases = world.store.releases(*source, app).await.unwrap();
        assert_eq!(releases.all().len(), 1);
        assert_eq!(releases.all()[0].id, release(&format!("r{number}")));
    }
}
