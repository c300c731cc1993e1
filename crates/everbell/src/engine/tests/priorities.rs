//! Jobs with priorities: which of those that are due start first.

use super::lab::{Lab, job, with};
use super::starts::with_places;
use crate::engine::Step;

#[tokio::test]
async fn of_jobs_with_priorities_the_most_urgent_starts_first_however_few_places_there_are() {
    let mut lab = Lab::new();
    for (key, minute, priority) in [("late", 30, 0), ("early", 10, 0), ("urgent", 50, 3), ("patient", 5, -1)] {
        let definition = job(key, &format!("{minute} 1 * * *"), "log");
        lab.create(with(definition, |policies| policies.priority = priority)).await;
    }
    with_places(&mut lab, 1);
    lab.engine.claimer.step().await.unwrap();
    lab.set("02:00");
    lab.engine.planner.step().await.unwrap();
    assert_eq!(lab.runs("urgent").await, ["01:50:00 running"]);
    assert_eq!(lab.runs("early").await, ["01:10:00 pending"], "the others can be chosen from");
    lab.settle().await;
    // A job that falls due now need not wait either.
    lab.create(with(job("new", "1 2 * * *", "log"), |policies| policies.priority = 9)).await;
    lab.set("02:01");
    lab.engine.planner.step().await.unwrap();
    for _ in 0..5 {
        lab.settle().await;
        lab.turn().await;
    }
    let log = lab.log.lock().unwrap().clone();
    assert_eq!(log, ["log 01:50:00", "log 02:01:00", "log 01:10:00", "log 01:30:00", "log 01:05:00"]);
}
