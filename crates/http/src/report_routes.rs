//! Routes of reports over all jobs: a part of the table in `lib.rs`.

use axum::http::Method;
use everbell_wire as wire;

use super::access::Role::Viewer;
use super::api::{feed, reports};
use super::route::Access::{Feed, Role, RunHistory};
use super::route::{Route, route};

/// A calendar without events.
const FEED: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//everbell//next fires//EN\r\nEND:VCALENDAR\r\n";

/// The past and the future of all jobs.
#[rustfmt::skip]
pub(super) fn report_routes() -> Vec<Route> {
    let get = Method::GET;
    vec![
        route(get.clone(), "/gaps", RunHistory, reports::gaps).does("listAllGaps", "List slots that got no run, for all jobs").query(reports::GAPS)
            .details("Sorted by the first slot of the gap, latest first.")
            .returns_page::<wire::Gap>("A page of gaps"),
        route(get.clone(), "/outages", RunHistory, reports::outages).does("listOutages", "List outages and their effect on jobs").query(reports::OUTAGES)
            .details("The latest first, at most 100, with the jobs whose slots passed and what catch-up did. An outage begins with the last heartbeat of the last instance and ends with the first heartbeat of the next one. It lasts at least 20 seconds.")
            .returns_items::<wire::Outage>("The outages"),
        route(get.clone(), "/next", Role(Viewer), reports::next).does("listNextFiresOfAll", "List the next times at which jobs fire").query(reports::NEXT)
            .details("Times on days that a calendar excludes are left out, and times in a freeze are marked. A job with scope `per_org` is listed for all its orgs: those with the same time are one item, with their number, and `spreadMs` is how long jitter spreads their runs.")
            .returns::<wire::NextFires>(200, "The next times"),
        route(get.clone(), "/next/calendar.ics", Feed(Viewer), feed::next).does("getCalendarFeed", "Subscribe to the next runs in a calendar").query(feed::NEXT_ICS)
            .details("For calendar programs that subscribe to a URL. Programs that support only a user name and a password send any user name, and a token as the password. Runs during a freeze are shown as canceled events. The orgs for which a job fires at the same time are one event, with their number.")
            .returns_text(200, "The next runs, at most 5,000", "text/calendar", FEED),
        route(get.clone(), "/backfills", RunHistory, reports::backfills).does("listAllBackfills", "List the backfills of all jobs, newest first").query(reports::BACKFILLS)
            .returns_page::<wire::BackfillReport>("A page of backfills and their progress"),
        route(get, "/stats", RunHistory, reports::stats).does("getStats", "Show statistics of all jobs").query(reports::STATS)
            .returns::<wire::ClusterStats>(200, "Counts of runs and gaps, and lags"),
    ]
}
