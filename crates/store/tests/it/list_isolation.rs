//! A row that somebody broke is left out of a list and named, and is corrupt where it is asked for.

use everbell_core::org::{OrgWrite, OverrideWrite};
use everbell_core::plan::Missed;
use everbell_core::store::{
    GapFilter, Instance, JobFilter, JobOrgFilter, JobRef, NewToken, OrgFilter, Page, PageRequest, RunFilter, StoreError,
};
use everbell_core::{InstanceId, JobKey, OrgId, Pause, change};

use super::broken::{Broken, on_both};
use super::org_isolation::{org_update, orgs, per_org};
use super::sqlite_world::{at, audit, create, plan_due, target};

on_both!(
    a_job_among_jobs,
    a_run_among_runs,
    a_gap_among_gaps,
    an_entry_of_the_audit_trail_among_others,
    an_instance_among_instances,
    an_org_update_among_org_updates,
    a_token_among_tokens,
    an_org_among_orgs,
    an_org_among_those_of_a_job,
    a_job_among_those_of_an_org,
    an_override_among_overrides,
);

/// Whole pages and pages of one: a bad row is named on its own page, and the next goes on behind it.
const LIMITS: [u32; 2] = [100, 1];

fn page(limit: u32) -> PageRequest {
    PageRequest { limit, after: None }
}

/// Everything that a list has, in pages of this size, and what it names as unreadable.
async fn all<T, F>(limit: u32, list: impl Fn(PageRequest) -> F) -> (Vec<T>, Vec<String>)
where
    F: Future<Output = Result<Page<T>, StoreError>>,
{
    let (mut items, mut unreadable, mut next) = (Vec::new(), Vec::new(), page(limit));
    loop {
        let found = list(next).await.unwrap();
        items.extend(found.items);
        unreadable.extend(found.unreadable);
        match found.next {
            Some(after) => next = PageRequest { limit, after: Some(after) },
            None => return (items, unreadable),
        }
    }
}

fn org(name: &str) -> OrgId {
    OrgId::new(name).unwrap()
}

fn is_corrupt<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    let error = answer.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
}

async fn a_job_among_jobs(database: Broken) {
    let store = database.open().await;
    let bad = create(&*store, "bad", "0 * * * *").await;
    create(&*store, "good", "0 * * * *").await;
    database.run("update everbell.jobs set policies = '{' where job_key = 'bad'").await;
    let store = database.open().await;
    for limit in LIMITS {
        let (jobs, unreadable) =
            all(limit, |page| async { store.list_jobs(&JobFilter::default(), &{ page }).await }).await;
        assert_eq!((jobs.len(), unreadable), (1, vec![bad.to_string()]));
    }
    is_corrupt(store.get_job(&JobRef::Id(bad)).await);
}

async fn a_run_among_runs(database: Broken) {
    let store = database.open().await;
    create(&*store, "bad", "0 * * * *").await;
    create(&*store, "good", "0 * * * *").await;
    let planned = plan_due(&*store, at("01:00:00"), 10).await.unwrap();
    let bad = planned.runs.iter().find(|run| run.job.key.as_str() == "bad").unwrap().id;
    database.run("update everbell.runs set trigger = '?' where job_id = (select id from everbell.jobs where job_key = 'bad')").await;
    for limit in LIMITS {
        let (runs, unreadable) =
            all(limit, |page| async { store.list_runs(&RunFilter::default(), &{ page }).await }).await;
        assert_eq!((runs.len(), unreadable), (1, vec![bad.to_string()]));
    }
    is_corrupt(store.get_run(bad).await);
}

async fn a_gap_among_gaps(database: Broken) {
    let store = database.open().await;
    for key in ["bad", "good"] {
        create(&*store, key, "0 * * * *").await;
        let job = JobRef::Key(JobKey::new(key).unwrap());
        let (by, reason) = ("ana".to_owned(), "rest".to_owned());
        let pause = Pause { reason, by, at: at("00:00:00"), until: None };
        let number = u128::from(key.len() as u8) * 10;
        store.change_job(&job, None, &|view| change::pause(view, pause.clone()), &audit(number)).await.unwrap();
        let resume = |view: &change::JobView| change::resume(view, Missed::Skip, "ana", at("03:30:00"));
        store.change_job(&job, None, &resume, &audit(number + 1)).await.unwrap();
    }
    database
        .run(
            "update everbell.gaps set org_id = ' ' where job_id = (select id from everbell.jobs where job_key = 'bad')",
        )
        .await;
    for limit in LIMITS {
        let (gaps, unreadable) =
            all(limit, |page| async { store.list_gaps(&GapFilter::default(), &{ page }).await }).await;
        assert_eq!((gaps.len(), unreadable.len()), (1, 1));
    }
}

async fn an_entry_of_the_audit_trail_among_others(database: Broken) {
    let store = database.open().await;
    for (number, actor) in [(1, "bad"), (2, "good")] {
        let entry = everbell_core::store::AuditEntry { actor: actor.to_owned(), ..audit(number) };
        store.append_audit(&entry).await.unwrap();
    }
    database.run("update everbell.audit set before = '{' where actor = 'bad'").await;
    for limit in LIMITS {
        let (entries, unreadable) = all(limit, |page| async { store.list_audit(None, &{ page }).await }).await;
        assert_eq!((entries.len(), unreadable), (1, vec![audit(1).id.to_string()]));
    }
}

async fn an_instance_among_instances(database: Broken) {
    let store = database.open().await;
    for (number, host) in [(1, "bad"), (2, "good")] {
        let instance = everbell_core::with!(Instance {
            targets: vec![target()],
            ..Instance::new(
                InstanceId::new(at("00:00:00"), [number; 10]),
                host.to_owned(),
                1,
                "0.1.0".to_owned(),
                at("00:00:00")
            )
        });
        store.heartbeat(&instance, None, false).await.unwrap();
    }
    database.run("update everbell.instances set roles = '{' where host = 'bad'").await;
    let hosts: Vec<String> = store.list_instances().await.unwrap().into_iter().map(|one| one.host).collect();
    assert_eq!(hosts, ["good"]);
}

async fn an_org_update_among_org_updates(database: Broken) {
    let store = database.open().await;
    orgs(&*store).await;
    let bad = per_org(&*store, "bad").await;
    per_org(&*store, "good").await;
    database.run("update everbell.sweeps set detail = '{' where job_key = 'bad'").await;
    let org_updates = store.list_org_updates().await.unwrap();
    assert_eq!(org_updates.iter().map(|org_update| org_update.job_key.as_str()).collect::<Vec<_>>(), ["good"]);
    is_corrupt(store.stop_org_update(audit(bad.as_uuid().as_u128()).id, &audit(3)).await);
    org_update(&*store).await;
    let error = store.get_job(&JobRef::Id(bad)).await.unwrap().job.state.error;
    assert!(error.is_some_and(|why| why.contains("sweeps")), "it is shown");
}

async fn a_token_among_tokens(database: Broken) {
    let store = database.open().await;
    for (number, name) in [(1, "bad"), (2, "good")] {
        let (name, role) = (name.to_owned(), "viewer".to_owned());
        let token = NewToken { name, hash: [number; 32], role, created_at: at("00:00:00"), expires_at: None };
        store.create_token(&token, &audit(u128::from(number))).await.unwrap();
    }
    // Whatever is in the row of a token, the store can read it: what a role allows is judged by who asks.
    database.run("update everbell.tokens set role = '?' where name = 'bad'").await;
    let roles: Vec<String> = store.list_tokens().await.unwrap().into_iter().map(|token| token.role).collect();
    assert_eq!(roles, ["?", "viewer"]);
}

async fn an_org_among_orgs(database: Broken) {
    let store = database.open().await;
    orgs(&*store).await;
    database.run("update everbell.orgs set settings = '{' where id = 'b'").await;
    for limit in LIMITS {
        let (found, unreadable) =
            all(limit, |page| async { store.list_orgs(&OrgFilter::default(), &{ page }).await }).await;
        let ids: Vec<&str> = found.iter().map(|org| org.id.as_str()).collect();
        assert_eq!((ids, unreadable), (vec!["a", "c"], vec!["b".to_owned()]));
    }
    is_corrupt(store.get_org(&org("b")).await);
    is_corrupt(store.write_orgs(&[OrgWrite::new(org("b"))], &audit(2)).await);
}

async fn an_org_among_those_of_a_job(database: Broken) {
    let store = database.open().await;
    orgs(&*store).await;
    let job = per_org(&*store, "brief").await;
    org_update(&*store).await;
    database.run("update everbell.orgs set settings = '{' where id = 'b'").await;
    database.run("update everbell.timers set last_local_date = 'soon' where org_id = 'c'").await;
    for limit in LIMITS {
        let list = |page| async { store.job_orgs(job, &JobOrgFilter::default(), &{ page }).await };
        let (found, unreadable) = all(limit, list).await;
        let [a, c] = &found[..] else { panic!("{found:?}") };
        assert_eq!((a.org.id.as_str(), c.org.id.as_str(), unreadable), ("a", "c", vec!["b".to_owned()]));
        assert_eq!((a.timer.is_some(), &a.error, c.timer.is_some()), (true, &None, false));
        assert!(c.error.as_ref().is_some_and(|why| why.contains("timers")), "{c:?}");
    }
}

async fn a_job_among_those_of_an_org(database: Broken) {
    let store = database.open().await;
    orgs(&*store).await;
    for key in ["bad", "good", "worse"] {
        per_org(&*store, key).await;
    }
    org_update(&*store).await;
    database.run("update everbell.jobs set policies = '{' where job_key = 'bad'").await;
    database
        .run("update everbell.timers set last_local_date = 'soon' where job_id = (select id from everbell.jobs where job_key = 'worse')")
        .await;
    let store = database.open().await;
    let jobs = store.org_jobs(&org("a")).await.unwrap();
    let [good, worse] = &jobs[..] else { panic!("{jobs:?}") };
    assert_eq!((good.job.definition.key.as_str(), good.timer.is_some()), ("good", true));
    assert!(worse.timer.is_none() && worse.error.as_ref().is_some_and(|why| why.contains("timers")), "{worse:?}");
}

async fn an_override_among_overrides(database: Broken) {
    let store = database.open().await;
    orgs(&*store).await;
    for (number, key) in [(2, "bad"), (3, "good")] {
        let write = OverrideWrite { job_key: JobKey::new(key).unwrap(), enabled: false, expression: None };
        store.write_override(&org("a"), &write, &audit(number)).await.unwrap();
    }
    database.run("update everbell.org_overrides set job_key = ' ' where job_key = 'bad'").await;
    let found = store.list_overrides(&org("a")).await.unwrap();
    assert_eq!(found.iter().map(|one| one.job_key.as_str()).collect::<Vec<_>>(), ["good"]);
}
