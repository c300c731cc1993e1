//! The order in which jobs start that fall due at the same time, as their handler sees it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use everbell::{Everbell, Payload, State, TargetOptions};
use everbell_store::testing::TestDatabase;

use crate::given::within;
use crate::inbox::until;

/// The priorities of the runs, in the order in which they started.
#[derive(Clone, Default)]
struct Started(Arc<Mutex<Vec<i32>>>);

async fn note(Payload(priority): Payload<i32>, State(started): State<Started>) {
    started.0.lock().unwrap().push(priority);
}

/// Fifty jobs for one place: the most urgent one starts first, and the others in the order of their priorities.
async fn jobs_that_are_due_together_start_by_priority(url: &str) {
    let started = Started::default();
    let builder = Everbell::builder().database(url).state(started.clone());
    let one_place = TargetOptions::default().concurrency(1);
    let bell = builder.target_with("note", note, one_place).build().await.unwrap();
    let jobs = bell.jobs();
    let count = || started.0.lock().unwrap().len();
    let running = bell.start();
    within(async {
        // One that has run: the instance knows by then that nothing waits.
        jobs.enqueue("note", &100).await.unwrap();
        until(|| async { count() == 1 }).await;
        let at = bell.now() + Duration::from_secs(3);
        for number in 0..50 {
            let priority = number * 7 % 50 - 25;
            jobs.enqueue("note", &priority).at(at).priority(priority).await.unwrap();
        }
        assert!(bell.now() < at, "all of them are due at the same time");
        until(|| async { count() == 51 }).await;
    })
    .await;
    running.shutdown().await.unwrap();
    let started = started.0.lock().unwrap();
    assert!(started.is_sorted_by(|a, b| a >= b), "{started:?}");
}

#[tokio::test]
async fn jobs_that_are_due_together_start_by_priority_on_postgres() {
    let database = TestDatabase::create().await;
    jobs_that_are_due_together_start_by_priority(database.url()).await;
}

#[tokio::test]
async fn jobs_that_are_due_together_start_by_priority_on_sqlite() {
    let folder = std::env::temp_dir().join(format!("everbell-priorities-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let url = format!("sqlite:{}", folder.join("everbell.db").display());
    jobs_that_are_due_together_start_by_priority(&url).await;
    std::fs::remove_dir_all(folder).unwrap();
}
