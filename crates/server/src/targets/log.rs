//! The `log` target: prints the payload. For a first try, and to see that schedules fire.

use std::sync::Arc;

use everbell::core::settle::Outcome;
use everbell::{Action, JobKey, Run};
use tracing::info;

pub(super) fn action() -> Action {
    Arc::new(|run| {
        print(&run);
        Box::pin(std::future::ready(Outcome::Succeeded { result: None }))
    })
}

/// One line in the log of the server, and the payload as the output of the run.
fn print(run: &Run) {
    let job = run.job_key().map_or("-", JobKey::as_str);
    let slot = run.slot_utc().map(tracing::field::display);
    let org = run.org().map(tracing::field::display);
    let payload = run.payload().to_single_line();
    info!(run = %run.id(), job, org, slot, target_label = %run.target(), payload, "log");
    run.log(run.payload().as_str());
}
