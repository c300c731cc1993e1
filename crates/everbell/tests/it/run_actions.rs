//! Actions on runs, and the targets that are served.

use std::sync::Arc;

use everbell::core::store::{Canceled, Instance, Store};
use everbell::core::{InstanceId, Target};
use everbell::{Everbell, Json, RunFilter, RunNow, RunStatus};

use crate::given::{Manual, Stored, at, daily, last_entry, nothing, on_every_store, page, time, trail};

async fn bell(stored: &Stored, clock: &Arc<Manual>) -> Everbell {
    at(stored, clock).target("nothing", nothing).build().await.unwrap()
}

/// An instance that was heard of then.
async fn instance(store: &dyn Store, targets: &[&str], heard: &str, draining: bool) -> InstanceId {
    let id = InstanceId::new(time(heard), [u8::from(draining); 10]);
    let targets = targets.iter().map(|target| Target::new(target).unwrap()).collect();
    let instance = everbell_core::with!(Instance {
        roles: vec![],
        targets,
        draining,
        ..Instance::new(id, "host".to_owned(), 1, "1".to_owned(), time(heard))
    });
    store.heartbeat(&instance, None, false).await.unwrap();
    id
}

on_every_store!(a_run_is_canceled_and_repeated, a_target_is_tried_where_somebody_serves_it);

async fn a_run_is_canceled_and_repeated(stored: Stored) {
    let clock = Manual::new("12:00");
    let bell = bell(&stored, &clock).await;
    bell.jobs().create(daily("a")).await.unwrap();
    let runs = bell.runs().by("ana").because("wrong org");
    let first = bell.jobs().run_now("a").payload([1]).await.unwrap().run().id;
    assert_eq!(runs.cancel(first).await.unwrap(), Canceled::AtOnce);
    let wanted = format!(r#"ana run.cancel run:{first} (wrong org) {{"status":"pending"}} -> {{"status":"canceled"}}"#);
    assert_eq!(last_entry(&*stored.store).await, wanted);
    let lines = trail(&*stored.store).await.len();
    assert_eq!(runs.cancel(first).await.unwrap(), Canceled::TooLate(RunStatus::Canceled));
    assert_eq!(trail(&*stored.store).await.len(), lines, "nothing happened");

    clock.set("12:01");
    let RunNow::Started(second) = runs.rerun(first).await.unwrap() else { panic!("nothing is in the way") };
    assert_eq!((second.payload.as_str(), second.trigger.to_string().as_str()), ("[1]", "manual:ana"));
    let wanted = format!(r#"ana run.rerun run:{first} (wrong org) -> {{"runId":"{}"}}"#, second.id);
    assert_eq!(last_entry(&*stored.store).await, wanted);
    assert!(matches!(runs.rerun(first).await.unwrap(), RunNow::Skipped { blocking, .. } if blocking == second.id));

    let pending = RunFilter { status: vec![RunStatus::Pending], ..RunFilter::default() };
    assert_eq!(runs.list(&pending, &page()).await.unwrap().items, [runs.get(second.id).await.unwrap()]);
    let unknown = everbell::RunId::by_hand(time("12:00"), [9; 10]);
    assert_eq!(runs.cancel(unknown).await.unwrap_err().to_string(), format!("there is no run `{unknown}`"));
}

async fn a_target_is_tried_where_somebody_serves_it(stored: Stored) {
    let clock = Manual::new("12:00");
    let bell = bell(&stored, &clock).await;
    let runs = bell.runs().by("ana");
    let refusal = async |target: &str| runs.try_target(target, ()).await.unwrap_err().to_string();
    let wanted = "target: no live instance serves `nothing` at this moment; start one";
    assert_eq!(refusal("nothing").await, wanted);
    instance(&*stored.store, &["nothing", "mail"], "11:58", false).await;
    instance(&*stored.store, &["nothing"], "12:00", true).await;
    assert_eq!(refusal("nothing").await, wanted, "one is silent, the other takes no more work");

    instance(&*stored.store, &["mail", "nothing"], "12:00", false).await;
    assert_eq!(refusal("mial").await, "target: unknown target `mial`; known: `mail`, `nothing`");
    let run = runs.try_target("mail", ["x"]).await.unwrap();
    assert_eq!((run.job_id, run.status, run.payload), (None, RunStatus::Pending, Json::parse("", r#"["x"]"#).unwrap()));
    assert_eq!(run.trigger.to_string(), "ad_hoc:ana");
    let wanted = format!(r#"ana target.try run:{0} -> {{"runId":"{0}","target":"mail"}}"#, run.id);
    assert_eq!(last_entry(&*stored.store).await, wanted);
    let again = runs.rerun(run.id).await.unwrap();
    assert_eq!((again.run().target.as_str(), again.run().payload.as_str()), ("mail", r#"["x"]"#));
    // Whom a live instance serves may also be scheduled here.
    bell.jobs().create(everbell::Schedule::cron("a", "@daily").target("mail")).await.unwrap();
}

#[tokio::test]
async fn a_target_can_be_tried_from_the_start_of_its_instance() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let bell = bell(&stored, &clock).await;
    let starting = bell.run_until(std::future::pending());
    assert!(stored.store.list_instances().await.unwrap().is_empty(), "it has not said so yet");
    assert_eq!(bell.runs().try_target("nothing", ()).await.unwrap().status, RunStatus::Pending);
    drop(starting);
    let refused = bell.runs().try_target("nothing", ()).await.unwrap_err().to_string();
    assert_eq!(refused, "target: no live instance serves `nothing` at this moment; start one");
}

#[tokio::test]
async fn targets_that_nobody_serves_are_told_with_their_jobs() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let bell = bell(&stored, &clock).await;
    for key in ["b", "a"] {
        bell.jobs().create(daily(key)).await.unwrap();
    }
    let report = bell.targets().await.unwrap();
    assert!(report.served.is_empty());
    assert_eq!(report.unserved.len(), 1);
    assert_eq!((report.unserved[0].target.as_str(), report.unserved[0].count), ("nothing", 2));
    assert_eq!(report.unserved[0].jobs.iter().map(everbell::JobKey::as_str).collect::<Vec<_>>(), ["a", "b"]);

    let id = instance(&*stored.store, &["nothing"], "12:00", false).await;
    let report = bell.targets().await.unwrap();
    assert_eq!((report.served[0].target.as_str(), report.served[0].instances.as_slice()), ("nothing", [id].as_slice()));
    assert_eq!((report.served[0].jobs, report.unserved.len()), (2, 0));
    assert_eq!(bell.instances().await.unwrap().len(), 1);
}
