//! Every org: its zone, what time it is there, whether jobs fire for it.

use askama::Template;
use everbell::Org;
use everbell_core::Zone;

use super::{called, local_now};
use crate::clock::Clock;
use crate::markup::{Markup, url_part};
use crate::{Frame, Links, Section, UiRequest, UiResponse};
use everbell_http::access::Role;
use everbell_http::api::orgs;
use everbell_http::page;
use everbell_http::problem::Problem;
use everbell_wire::form::Field;

/// The query parameters, which are those of the API.
pub(crate) const QUERY: &[Field] = orgs::LIST;

#[derive(Template)]
#[template(path = "orgs/list.html")]
struct ListPage {
    frame: Frame,
    links: Links,
    rows: Vec<Row>,
    zones: Vec<&'static str>,
    /// How many timers of orgs cannot fire.
    errored: u32,
    /// The number of orgs whose timers are not updated yet.
    waiting: u32,
    /// Orgs of this page that cannot be read.
    unreadable: Vec<String>,
    first: Option<String>,
    next: Option<String>,
    /// The reason why the actor may not act.
    no_act: Option<String>,
}

/// An org in the list.
struct Row {
    part: String,
    id: String,
    called: String,
    timezone: String,
    /// The local time, or the error of the time zone.
    now: Result<Markup, String>,
    enabled: bool,
    updated: Markup,
    by: String,
}

impl Row {
    fn new(org: &Org, clock: &Clock) -> Row {
        let zone = Zone::get(&org.place.timezone);
        Row {
            part: url_part(org.id.as_str()),
            id: org.id.to_string(),
            called: called(org),
            timezone: org.place.timezone.clone(),
            now: zone.map(|zone| local_now(clock, &zone)).map_err(|error| error.to_string()),
            enabled: org.place.enabled,
            updated: clock.away(org.updated_at),
            by: org.updated_by.clone(),
        }
    }
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let api_request = request.to_api_request();
    let form = api_request.query(QUERY);
    let (filter, page_request) = (orgs::filter(&form), page::from_query(&api_request)?);
    let orgs = request.orgs();
    let (frame, page, counts) =
        tokio::join!(request.frame(Section::Orgs, "Orgs"), orgs.list(&filter, &page_request), orgs.counts());
    let (page, counts, clock) = (page?, counts?, request.clock());
    let links = Links::new("/orgs", &request.query);
    let template = ListPage {
        frame,
        rows: page.items.iter().map(|org| Row::new(org, &clock)).collect(),
        zones: Zone::names().collect(),
        errored: counts.errored,
        waiting: counts.waiting,
        unreadable: page.unreadable,
        first: form.has("cursor").then(|| links.here()),
        next: page::next(&api_request, page.next.as_ref()).map(|cursor| links.with("cursor", &cursor)),
        no_act: request.barred(Role::Operator),
        links,
    };
    UiResponse::page(&template)
}
