//! Instances, and the state of the database.

pub(crate) mod drain;

use askama::Template;
use everbell_core::Zone;
use everbell_core::store::{Instance, StoreStatus};

use crate::clock::Clock;
use crate::markup::Markup;
use crate::{Frame, Section, UiRequest, UiResponse};
use everbell_http::access::Role;
use everbell_http::problem::Problem;
use everbell_observe::Report;

/// The minimum clock skew that is highlighted.
const MIN_SHOWN_SKEW_MS: i64 = 1_000;

#[derive(Template)]
#[template(path = "cluster.html")]
struct ClusterPage {
    frame: Frame,
    instances: Vec<Line>,
    alive: usize,
    /// Live instances are not all of one release.
    mixed: bool,
    store: StoreStatus,
    size: Option<String>,
    oldest_transaction: Option<Markup>,
    ready: Report,
    tz_data: &'static str,
    retention: Option<String>,
    no_admin: Option<String>,
}

impl ClusterPage {
    /// Returns the label of a readiness check.
    #[expect(clippy::unused_self, reason = "templates ask their page")]
    fn check_label(&self, check: &'static str) -> &'static str {
        match check {
            "database" => "Database",
            "schema" => "Schema",
            "scheduler" => "Scheduler",
            "heartbeat" => "Heartbeat",
            "due" => "Due timers",
            "clock" => "Clock",
            "zoneData" => "Time zones",
            "draining" => "Accepting work",
            other => other,
        }
    }
}

struct Line {
    id: String,
    host: String,
    pid: u32,
    version: String,
    roles: String,
    targets: Vec<String>,
    started: Markup,
    heard: Markup,
    alive: bool,
    draining: bool,
    skew: String,
    skewed: bool,
}

impl Line {
    fn new(instance: &Instance, clock: &Clock, alive_since: jiff::Timestamp) -> Line {
        Line {
            id: instance.id.to_string(),
            host: instance.host.clone(),
            pid: instance.pid,
            version: instance.version.clone(),
            roles: instance.roles.join(", "),
            targets: instance.targets.iter().map(ToString::to_string).collect(),
            started: clock.since(instance.started_at),
            heard: clock.away(instance.heartbeat_at),
            alive: instance.heartbeat_at >= alive_since,
            draining: instance.draining,
            skew: format!("{:+} ms", instance.clock_skew_ms),
            skewed: instance.clock_skew_ms.abs() >= MIN_SHOWN_SKEW_MS,
        }
    }
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let bell = &request.app.bell;
    let (instances, store, ready, frame) = tokio::join!(
        bell.instances(),
        bell.store().status(),
        request.app.readiness(),
        request.frame(Section::Cluster, "Cluster"),
    );
    let (clock, since) = (request.clock(), bell.alive_since());
    let instances: Vec<Line> = instances?.iter().map(|one| Line::new(one, &clock, since)).collect();
    let living = || instances.iter().filter(|line| line.alive);
    let first = living().next().map(|line| line.version.clone());
    let store = store?;
    let page = ClusterPage {
        alive: living().count(),
        mixed: living().any(|line| Some(&line.version) != first.as_ref()),
        size: store.size_bytes.map(size),
        oldest_transaction: store.oldest_transaction_at.map(|at| clock.away(at)),
        tz_data: Zone::data_version(),
        retention: request.app.options().keep.map(|keep| everbell_wire::elapsed::wait(keep.as_secs() as i64)),
        no_admin: request.barred(Role::Admin),
        instances,
        store,
        ready,
        frame,
    };
    UiResponse::page(&page)
}

/// Bytes as people read them.
fn size(bytes: u64) -> String {
    let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let unit = units.into_iter().find(|(_, unit)| bytes >= *unit);
    unit.map_or_else(
        || format!("{bytes} bytes"),
        |(name, unit)| format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        let shown = [12, 2_048, 5 << 20, (3 << 30) + (1 << 29)].map(size);
        assert_eq!(shown, ["12 bytes", "2.0 KiB", "5.0 MiB", "3.5 GiB"]);
    }
}
