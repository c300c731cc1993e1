//! Routes for the remote sides of runs: a part of the table in `lib.rs`.

use axum::http::Method;
use everbell_wire as wire;

use super::api::remote;
use super::problem::Kind::{Conflict, NotFound};
use super::route::Access::RunToken;
use super::route::{Route, route};

/// Reports about a run that was handed over: by its remote side with the run token, or by an operator.
#[rustfmt::skip]
pub(super) fn async_routes() -> Vec<Route> {
    let post = Method::POST;
    vec![
        route(post.clone(), "/runs/{runId}/heartbeat", RunToken, remote::heartbeat).does("heartbeatRun", "Report that the remote side of a run is still working").body("RunHeartbeat", remote::HEARTBEAT)
            .details("Extends the lease of the run, unless it was asked to stop.")
            .returns::<wire::RemoteRun>(200, "The run").problems(&[NotFound, Conflict]),
        route(post.clone(), "/runs/{runId}/progress", RunToken, remote::progress).does("reportRunProgress", "Report how far a run has come").body("RunProgressReport", remote::PROGRESS)
            .details("Counts as a heartbeat, and replaces what was reported before.")
            .returns::<wire::RemoteRun>(200, "The run").problems(&[NotFound, Conflict]),
        route(post.clone(), "/runs/{runId}/log", RunToken, remote::log).does("appendRunLog", "Add text to the output of a run").body("RunLog", remote::LOG)
            .details("Counts as a heartbeat. The last 64 KiB of output are kept.")
            .returns::<wire::RemoteRun>(200, "The run").problems(&[NotFound, Conflict]),
        route(post.clone(), "/runs/{runId}/complete", RunToken, remote::complete).does("completeRun", "End a run with success").body("RunComplete", remote::COMPLETE)
            .details("Sending the same report again is accepted; any other report about an attempt that has ended is refused.")
            .returns::<wire::RemoteRun>(200, "The run").problems(&[NotFound, Conflict]),
        route(post, "/runs/{runId}/fail", RunToken, remote::fail).does("failRun", "End the attempt of a run with a failure").body("RunFail", remote::FAIL)
            .details("The policies of the job decide whether another attempt follows. A run that was asked to stop is canceled.")
            .returns::<wire::RemoteRun>(200, "The run").problems(&[NotFound, Conflict]),
    ]
}
