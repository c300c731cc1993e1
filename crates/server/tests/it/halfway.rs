//! A server on which something is done for every org and never comes to its end: nobody schedules.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::fmt::Write;

use serde_json::{Value, json};

use crate::api::orgs::import;
use crate::server::Server;

/// More than are looked at on the spot.
const ORGS: usize = 2_600;

/// Runs by hand of the job `brief` are being made.
pub(crate) fn halfway() -> Server {
    let server = Server::start();
    server.job("brief", &json!({ "scope": "per_org", "cronExpression": "0 8 * * *" }));
    let mut lines = String::new();
    for number in 0..ORGS {
        writeln!(lines, "{}", json!({ "id": format!("org-{number:04}"), "timezone": "UTC" })).unwrap();
    }
    import(&server, "", &lines).expect(200);
    let nobody = |list: &Value| list["items"].as_array().unwrap().is_empty();
    server.until("/jobs/key:brief/orgs?armed=false&limit=1", nobody);
    let token = server.token.clone();
    let mut api = Server::in_folder(server.take_folder(), &["--role", "api"], &[]);
    api.token = token;
    let begun = api.post("/jobs/key:brief/run-now", &json!({ "orgs": "all" })).expect(202);
    assert_eq!(begun["sweep"]["done"], false, "{begun}");
    api
}
