//! Actions of operators while everything else goes wrong.

use everbell_core::change::{self, Edit, JobChange, JobView};
use everbell_core::plan::{Missed, RunNow};
use everbell_core::store::{JobRef, JobStore, PageRequest, RunFilter, RunStore};
use everbell_core::{Invalid, JobId, JobStatus, Overlap, Pause, RunId, RunStatus};
use jiff::{SignedDuration, Timestamp};

use super::super::lab::entry;
use super::world::World;

/// Takes a random action of an operator, which may be refused.
pub(super) async fn act(world: &mut World) {
    let now = world.now;
    let jobs = world.jobs().await;
    let Some(job) = world.dice.pick(&jobs).map(|job| job.definition.id) else { return };
    let bits = random(world);
    match world.dice.below(8) {
        0 => change(world, job, |view| change::pause(view, reason(now))).await,
        1 => {
            let missed = if world.dice.one_in(2) { Missed::Skip } else { Missed::RunOnce };
            change(world, job, |view| change::resume(view, missed, "ana", now)).await;
        }
        2 => {
            let overlap = [None, Some(Overlap::Allow), Some(Overlap::Queue)][world.dice.below(3)];
            let request =
                RunNow { id: RunId::by_hand(now, bits), actor: "ana", payload: None, overlap, trace_context: None };
            change(world, job, |view| change::run_now(view, &request, now)).await;
        }
        // The slots of a version begin with its creation, which is at no time that counts while the clock is wrong.
        3 if !world.steps => {
            let id = JobId::new(now, bits);
            let edit = || Edit { description: Some("edited".to_owned()), ..Edit::default() };
            change(world, job, |view| change::new_version(view, edit(), id, false, "ana", now)).await;
        }
        4 => {
            let to = now + SignedDuration::from_secs(world.dice.below(100) as i64);
            change(world, job, |view| change::reschedule(view, to, "ana", now)).await;
        }
        5 => {
            let count = 1 + world.dice.below(3) as u32;
            change(world, job, |view| change::skip_next(view, count, "ana", now)).await;
        }
        _ => cancel_some_run(world).await,
    }
}

/// The end of the play: nothing fires any more. A pause would hold the runs that wait.
pub(super) async fn retire_all(world: &mut World) {
    let now = world.now;
    for job in world.jobs().await {
        if job.state.status != JobStatus::Retired {
            change(world, job.definition.id, |view| change::retire(view, "ana", now)).await;
        }
    }
}

async fn cancel_some_run(world: &mut World) {
    let filter = RunFilter { status: vec![RunStatus::Pending, RunStatus::Running], ..RunFilter::default() };
    let page = world.store.list_runs(&filter, &PageRequest { limit: 100, after: None }).await.unwrap();
    if let Some(run) = world.dice.pick(&page.items) {
        world.store.cancel_run(run.id, "ana", world.now, &entry("run.cancel", world.now)).await.unwrap();
    }
}

async fn change(world: &World, job: JobId, decide: impl Fn(&JobView) -> Result<JobChange, Invalid> + Send + Sync) {
    let _may_be_refused =
        world.store.change_job(&JobRef::Id(job), None, &decide, &entry("job.change", world.now)).await;
}

fn reason(at: Timestamp) -> Pause {
    Pause { reason: "because".to_owned(), by: "ana".to_owned(), at, until: None }
}

fn random(world: &mut World) -> [u8; 10] {
    let mut bits = [0; 10];
    bits[..8].copy_from_slice(&world.dice.roll().to_be_bytes());
    bits
}
