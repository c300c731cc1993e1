//! Routes of backfills: a part of the table in `lib.rs`.

use axum::http::Method;
use everbell_wire as wire;
use everbell_wire::example::planned_backfill;

use super::access::Role::Operator;
use super::api::{backfills, org_updates};
use super::problem::Kind::{Conflict, JobRetired, NotFound};
use super::route::Access::{Role, RunHistory};
use super::route::{Route, route};

/// Runs of a job for past slots.
#[rustfmt::skip]
pub(super) fn backfill_routes() -> Vec<Route> {
    let (get, post, patch) = (Method::GET, Method::POST, Method::PATCH);
    vec![
        route(post.clone(), "/jobs/{jobId}/backfills", Role(Operator), backfills::create).does("createBackfill", "Create runs for past slots that have none").body("BackfillRequest", backfills::CREATE)
            .details("The range may be of any length: the first runs are created at once, the others as earlier ones end. They do not affect scheduled runs.")
            .returns::<wire::Backfill>(202, "The backfill").returns_example::<wire::Backfill>(200, "The plan, for a dry run", planned_backfill).problems(&[NotFound, Conflict, JobRetired]),
        route(get.clone(), "/jobs/{jobId}/backfills", RunHistory, backfills::list).does("listBackfills", "List the backfills of a job, newest first")
            .returns_items::<wire::BackfillReport>("The backfills and their progress").problems(&[NotFound]),
        route(get, "/jobs/{jobId}/backfills/{backfillId}", RunHistory, backfills::show).does("getBackfill", "Get a backfill")
            .returns::<wire::BackfillReport>(200, "The backfill and its progress").problems(&[NotFound]),
        route(patch, "/jobs/{jobId}/backfills/{backfillId}", Role(Operator), backfills::set).does("updateBackfill", "Change how a backfill runs").body("BackfillSettings", backfills::SET)
            .details("Takes effect with its next run. Runs that are running continue.")
            .returns::<wire::BackfillReport>(200, "The backfill and its progress").problems(&[NotFound, Conflict]),
        route(post.clone(), "/jobs/{jobId}/backfills/{backfillId}/pause", Role(Operator), backfills::pause).does("pauseBackfill", "Pause a backfill").body("ReasonRequest", org_updates::WHY)
            .details("Runs that have not started are withdrawn until it is resumed. Runs that have started continue.")
            .returns::<wire::BackfillReport>(200, "The backfill and its progress").problems(&[NotFound, Conflict]),
        route(post.clone(), "/jobs/{jobId}/backfills/{backfillId}/resume", Role(Operator), backfills::resume).does("resumeBackfill", "Resume a backfill").body("ReasonRequest", org_updates::WHY)
            .returns::<wire::BackfillReport>(200, "The backfill and its progress").problems(&[NotFound, Conflict, JobRetired]),
        route(post, "/jobs/{jobId}/backfills/{backfillId}/stop", Role(Operator), backfills::stop).does("stopBackfill", "Stop a backfill")
            .details("Withdraws its runs that have not started, as if they had never been created, so that the same range can be requested again. Runs that have started continue.")
            .returns::<wire::StoppedBackfill>(200, "The number of slots that will not run").problems(&[NotFound, Conflict]),
    ]
}
