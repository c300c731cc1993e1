//! Routes of targets: a part of the table in `lib.rs`.

use axum::http::Method;
use everbell_wire as wire;
use everbell_wire::body::target::TARGET_INPUT;
use everbell_wire::example::tried_target;

use super::access::Role::{Admin, Operator, Viewer};
use super::api::{target_edits, targets};
use super::problem::Kind::{Conflict, NotFound};
use super::route::Access::Role;
use super::route::{Route, route};

/// The work that jobs do.
#[rustfmt::skip]
pub(super) fn target_routes() -> Vec<Route> {
    vec![
        route(Method::GET, "/targets", Role(Viewer), targets::list).does("listTargets", "List targets and the instances that serve them")
            .details("Each target has its runs of the last 24 hours, from hourly counters. Admins also get its `[[target]]` block.")
            .returns::<wire::Targets>(200, "The targets"),
        route(Method::GET, "/targets/{target}", Role(Viewer), targets::get).does("getTarget", "Get a target")
            .returns::<wire::Target>(200, "The target").problems(&[NotFound]),
        route(Method::PUT, "/targets/{target}", Role(Admin), target_edits::put).does("putTarget", "Create or replace a target").query(target_edits::WRITE).own_body("TargetInput", TARGET_INPUT).revised()
            .details("Only for types that `targets.editable` in the configuration lists. Secrets are given as references to variables and files that `targets.secret_env` and `targets.secret_dir` allow, and each instance looks them up. The instance that responds serves the target at once, others within seconds; runs in flight keep the definition with which they started.")
            .returns::<wire::TargetWritten>(200, "The target, and whether this instance can serve it").problems(&[Conflict]),
        route(Method::DELETE, "/targets/{target}", Role(Admin), target_edits::delete).does("deleteTarget", "Delete a target that is not in the configuration").query(target_edits::DELETE).revised()
            .details("Refused while current jobs name it, unless `force` is set.")
            .returns_nothing(204, "The target is deleted").problems(&[NotFound, Conflict]),
        route(Method::POST, "/targets/{target}/try", Role(Operator), targets::try_once).does("tryTarget", "Run a target once, without a job").body("TryTargetRequest", targets::TRY)
            .returns_example::<wire::RunNow>(202, "The run", tried_target).problems(&[NotFound]),
    ]
}
