//! Routes of the history and the next runs of a job: a part of the table in `lib.rs`.

use axum::http::Method;
use everbell_wire as wire;

use super::access::Role::Viewer;
use super::api::{job_history, top};
use super::problem::Kind::NotFound;
use super::route::Access::{Role, RunHistory};
use super::route::{Route, route};

/// The history and the next runs of a job.
#[rustfmt::skip]
pub(super) fn job_history_routes() -> Vec<Route> {
    let get = Method::GET;
    vec![
        route(get.clone(), "/jobs/{jobId}/next", Role(Viewer), job_history::next).does("listNextFires", "List the next times at which a job fires").query(job_history::NEXT)
            .details("A job with scope `per_org` is listed for all its orgs, those that fire at the same time as one item with their number; with `orgId` for this org alone.")
            .returns::<wire::Fires>(200, "The next times").problems(&[NotFound]),
        route(get.clone(), "/jobs/{jobId}/explain", RunHistory, job_history::explain).does("explainJob", "Explain what happened at a given time").query(job_history::EXPLAIN)
            .returns::<wire::Explanation>(200, "The run, the gap, or the reason for neither").problems(&[NotFound]),
        route(get.clone(), "/jobs/{jobId}/chain", RunHistory, job_history::chain).does("getJobChain", "Show the jobs before and after a job")
            .details("A job that starts after several others also has the groups of runs that it waits for.")
            .returns::<wire::job::Chain>(200, "The jobs of the chain, each after the jobs whose runs start it").problems(&[NotFound]),
        route(get.clone(), "/jobs/{jobId}/gaps", RunHistory, job_history::gaps).does("listGaps", "List a job's slots that got no run").query(job_history::GAPS)
            .returns_page::<wire::Gap>("A page of gaps").problems(&[NotFound]),
        route(get, "/jobs/{jobId}/stats", RunHistory, job_history::stats).does("getJobStats", "Show job statistics").query(job_history::STATS)
            .returns::<wire::Stats>(200, "Counts, durations and lags").problems(&[NotFound]),
        route(Method::GET, "/top", RunHistory, top::list).does("listTopJobs", "List the jobs that run, fail or cost the most").query(top::TOP)
            .details("Counts every run that ended in the window, from hourly counters. All versions and orgs of a job are counted together; one-time jobs are counted by target.")
            .returns::<wire::Top>(200, "The jobs, the largest value first"),
    ]
}
