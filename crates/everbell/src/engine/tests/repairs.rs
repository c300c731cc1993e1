//! Jobs that would never fire again are found and brought back.

use std::time::Duration;

use everbell_core::change::{JobChange, JobView, PendingRuns};
use everbell_core::plan::{Plan, disarm};
use everbell_core::store::{AccessStore, PageRequest};
use everbell_core::{Definition, JobId, JobStatus};

use super::lab::{Lab, at, job};
use crate::engine::{Step, Wait};

/// Damages a job: active, and without a next fire.
fn damaged(view: &JobView) -> JobChange {
    JobChange {
        state: view.job.state.clone(),
        plan: Plan::nothing(&disarm(&view.timer)),
        successor: None,
        org_task: None,
        pending: PendingRuns::Leave,
        backfill: None,
    }
}

#[tokio::test]
async fn a_job_that_lost_its_next_fire_is_repaired_at_the_first_look() {
    let mut lab = Lab::new();
    lab.create(job("lost", "0 * * * *", "log")).await;
    lab.create(job("well", "0 * * * *", "log")).await;
    lab.turn_at("01:00").await;
    lab.change("lost", |view| Ok(damaged(view))).await.unwrap();
    lab.turn_at("03:30").await;
    assert_eq!(lab.runs("lost").await, ["01:00:00 succeeded"], "nobody wakes it");
    lab.heard();

    assert_eq!(lab.engine.repairer.step().await.unwrap(), Wait::For(Duration::from_mins(5)));
    assert_eq!(lab.heard(), ["Repaired"]);
    lab.turn().await;
    assert_eq!(
        lab.runs("lost").await,
        ["01:00:00 succeeded", "03:00:00 succeeded"],
        "what was missed is caught up once"
    );
    let audit = lab.store_audit().await;
    assert_eq!(audit, ["job.repaired job:lost everbell"]);

    lab.heard();
    lab.engine.repairer.step().await.unwrap();
    assert_eq!(lab.heard(), [""; 0], "nothing is left to repair");
    lab.turn_at("04:00").await;
    assert_eq!(lab.runs("lost").await.len(), 3);
    assert_eq!(lab.job("lost").await.job.state.status, JobStatus::Active);
}

#[tokio::test]
async fn many_jobs_are_looked_through_in_pages() {
    let mut lab = Lab::new();
    for number in 0..450_u16 {
        let key = format!("job-{number:03}");
        let id = JobId::new(at("00:00"), [0, 0, 0, 0, 0, 0, 0, 0, (number >> 8) as u8, number as u8]);
        lab.create(everbell_core::with!(Definition { id, ..job(&key, "0 * * * *", "log") })).await;
        lab.change(&key, |view| Ok(damaged(view))).await.unwrap();
    }
    lab.set("00:30");
    let mut waits = Vec::new();
    for _ in 0..3 {
        let Wait::For(wait) = lab.engine.repairer.step().await.unwrap() else { panic!("it knows when") };
        waits.push(wait);
    }
    assert_eq!(waits, [Duration::from_millis(200), Duration::from_millis(200), Duration::from_mins(5)]);
    assert_eq!(lab.job("job-000").await.timer.unwrap().next_run_at, Some(at("01:00")));
    assert_eq!(lab.job("job-449").await.timer.unwrap().next_run_at, Some(at("01:00")));
}

impl Lab {
    /// Returns the instance's own audit entries: `<action> <object> <actor>`.
    async fn store_audit(&self) -> Vec<String> {
        let page = self.store.list_audit(None, &PageRequest { limit: 100, after: None }).await.unwrap();
        let own = page.items.iter().filter(|entry| entry.action == "job.repaired");
        own.map(|entry| format!("{} {} {}", entry.action, entry.object, entry.actor)).collect()
    }
}
