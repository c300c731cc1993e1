//! However a run is stopped, nothing of its program stays alive.

use std::time::Duration;

use everbell::{Event, Everbell, RunId, RunStatus};
use rustix::process::{Pid, test_kill_process};

use super::given::{Folder, bell, failure, heard, script, until, within};
use crate::targets::{CommandSettings, Kind};

/// Whether a process runs. A zombie does not.
pub(super) fn is_alive(process: i32) -> bool {
    match std::fs::read_to_string(format!("/proc/{process}/stat")) {
        Ok(stat) => !stat.rsplit(") ").next().is_some_and(|state| state.starts_with(['Z', 'X'])),
        Err(_) => !cfg!(target_os = "linux") && test_kill_process(Pid::from_raw(process).unwrap()).is_ok(),
    }
}

/// A program and its child that both ignore SIGTERM, and write their process ids to a file.
fn stubborn(folder: &Folder) -> CommandSettings {
    let text = "trap '' TERM; sleep 1000 & echo $$ $! > pids.new; mv pids.new pids; wait; sleep 1000";
    CommandSettings { cwd: Some(folder.0.clone()), ..script(text) }
}

/// Returns the process ids, once the program has written them.
async fn processes(folder: &Folder) -> Vec<i32> {
    let file = folder.0.join("pids");
    let text = until(|| std::fs::read_to_string(&file).ok()).await;
    let processes: Vec<i32> = text.split_whitespace().map(|id| id.parse().unwrap()).collect();
    assert!(processes.len() == 2 && processes.iter().all(|id| is_alive(*id)), "{processes:?}");
    processes
}

async fn are_gone(processes: Vec<i32>) {
    until(|| processes.iter().all(|id| !is_alive(*id)).then_some(())).await;
}

async fn begin(bell: &Everbell) -> RunId {
    bell.jobs().run_now("job").await.unwrap().run().id
}

async fn finished(bell: &Everbell) {
    heard(&mut bell.events(), |event| matches!(event, Event::Finished { .. })).await;
}

#[tokio::test]
async fn a_timeout_kills_the_program_and_its_children() {
    let folder = Folder::new();
    let bell = bell(Kind::Command(stubborn(&folder)), |schedule| schedule.timeout(Duration::from_secs(4))).await;
    let id = begin(&bell).await;
    let story = async {
        let (processes, ()) = tokio::join!(processes(&folder), finished(&bell));
        are_gone(processes).await;
    };
    within(bell.run_until(story)).await.unwrap();
    let run = bell.runs().get(id).await.unwrap();
    assert_eq!(failure(&run), ("timeout", "stopped after 4 s"));
}

#[tokio::test]
async fn a_program_that_is_asked_to_stop_can_do_so_itself() {
    let folder = Folder::new();
    let text = "trap 'echo bye; exit 0' TERM; sleep 1000 & echo $$ $! > pids.new; mv pids.new pids; wait";
    let command = CommandSettings { cwd: Some(folder.0.clone()), ..script(text) };
    let bell = bell(Kind::Command(command), |schedule| schedule).await;
    let id = begin(&bell).await;
    let story = async {
        let processes = processes(&folder).await;
        let runs = bell.runs();
        let (canceled, ()) = tokio::join!(runs.cancel(id), finished(&bell));
        canceled.unwrap();
        are_gone(processes).await;
    };
    within(bell.run_until(story)).await.unwrap();
    let run = bell.runs().get(id).await.unwrap();
    assert_eq!((run.status, run.output.as_deref()), (RunStatus::Canceled, Some("bye\n")));
}

#[tokio::test]
async fn a_shutdown_kills_the_program_and_its_children() {
    let folder = Folder::new();
    let bell = bell(Kind::Command(stubborn(&folder)), |schedule| schedule).await;
    let id = begin(&bell).await;
    let mut seen = Vec::new();
    let story = async { seen = processes(&folder).await };
    within(bell.run_until(story)).await.unwrap();
    are_gone(seen).await;
    assert_eq!(failure(&bell.runs().get(id).await.unwrap()).0, "shutdown");
}

#[tokio::test]
async fn an_engine_that_is_dropped_kills_the_program_and_its_children() {
    let folder = Folder::new();
    let bell = bell(Kind::Command(stubborn(&folder)), |schedule| schedule).await;
    begin(&bell).await;
    let seen = tokio::select! {
        seen = processes(&folder) => seen,
        ended = bell.run_until(std::future::pending()) => panic!("{ended:?}"),
    };
    are_gone(seen).await;
}
