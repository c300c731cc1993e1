//! The jobs that run, fail or cost the most.

use std::time::Duration;

use askama::Template;
use tokio::time::timeout;
use tracing::warn;

use super::jobs::targets;
use crate::chart::grouped;
use crate::clock::Clock;
use crate::links::Chip;
use crate::markup::{Markup, url_part};
use crate::{Frame, Links, Section, UiRequest, UiResponse};
use everbell_http::api::top::{self, TopQuery};
use everbell_http::counted::Window;
use everbell_http::problem::Problem;
use everbell_wire::elapsed::took;
use everbell_wire::form::Field;
use everbell_wire::top::ranked;
use everbell_wire::{Top, TopBy, TopItem};

/// The query parameters, which are those of the API.
pub(crate) const QUERY: &[Field] = top::TOP;

/// The filters.
const FILTERS: [(&str, &str); 3] = [("label", "Label"), ("target", "Target"), ("failing", "Failing")];

/// The rows of the card on the first page.
const CARD_ROWS: usize = 5;

/// The card may not keep the first page waiting for longer than this.
const CARD_TIMEOUT: Duration = Duration::from_secs(2);

/// The columns that can be sorted by: the word of the query, and the head.
const COLUMNS: [(&str, &str); 5] =
    [("runs", "Runs"), ("failures", "Failed"), ("time", "Time spent"), ("p95", "p95"), ("lag", "Mean delay")];

#[derive(Template)]
#[template(path = "top.html")]
struct TopPage {
    frame: Frame,
    links: Links,
    windows: Vec<Choice>,
    columns: Vec<Choice>,
    window: &'static str,
    rows: Vec<Row>,
    /// The targets to choose from.
    targets: Vec<String>,
    /// The filters that are set.
    chips: Vec<Chip>,
    /// The list without filters, if there are some.
    clear: Option<String>,
    /// Since when all runs are counted, if that is not the whole window.
    since: Option<Markup>,
}

/// A link to another window or order.
struct Choice {
    label: &'static str,
    href: String,
    chosen: bool,
}

/// The runs of a job.
pub(crate) struct Row {
    pub(crate) name: String,
    /// The address of the job; one-time jobs of a target have none.
    pub(crate) href: Option<String>,
    pub(crate) runs: String,
    pub(crate) failed: String,
    /// The share of failed runs.
    pub(crate) rate: Option<String>,
    /// The failed runs.
    pub(crate) failed_href: Option<String>,
    pub(crate) time: String,
    pub(crate) p50: String,
    pub(crate) p95: String,
    pub(crate) delay: String,
    pub(crate) max_delay: String,
}

impl Row {
    fn new(item: &TopItem) -> Row {
        let time = |millis: Option<i64>| millis.map_or_else(|| "–".to_owned(), took);
        let part = item.job_key.as_deref().map(url_part);
        Row {
            name: item.name().to_owned(),
            href: part.as_ref().map(|part| format!("/jobs/{part}")),
            runs: grouped(item.runs),
            failed: grouped(item.failed),
            rate: item.failure_rate.filter(|_| item.failed > 0).map(|rate| format!("{:.1}%", rate * 100.0)),
            failed_href: part.filter(|_| item.failed > 0).map(|part| format!("/runs?jobKey={part}&status=failed")),
            time: took(item.time_spent_ms),
            p50: time(item.p50_ms),
            p95: time(item.p95_ms),
            delay: time(item.mean_delay_ms),
            max_delay: time(item.max_delay_ms),
        }
    }
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let query = TopQuery::from_request(&request.to_api_request());
    let counted = top::top(&request.app, &query).await?;
    let (clock, links) = (request.clock(), Links::new("/top", &request.query));
    let chips = links.chips(&FILTERS);
    // The order and the window are no filters.
    let mut kept = request.query.as_object().cloned().unwrap_or_default();
    kept.retain(|name, _| !FILTERS.iter().any(|(filter, _)| filter == name));
    let kept = Links::new("/top", &serde_json::Value::Object(kept));
    let chosen: Vec<&str> = query.target.iter().map(String::as_str).collect();
    let window = |window: Window| Choice {
        label: window.label(),
        href: links.with("window", window.as_str()),
        chosen: window == query.window,
    };
    let column = |(word, label): (&str, &'static str)| Choice {
        label,
        href: links.with("by", word),
        chosen: query.by.as_str() == word,
    };
    let page = TopPage {
        frame: request.frame(Section::Top, "Top").await,
        windows: Window::ALL.into_iter().map(window).collect(),
        columns: COLUMNS.into_iter().map(column).collect(),
        window: query.window.label(),
        rows: counted.items.iter().map(Row::new).collect(),
        since: since(&counted, &clock),
        targets: targets(&request, &chosen).await?,
        clear: (!chips.is_empty()).then(|| kept.here()),
        chips,
        links,
    };
    UiResponse::page(&page)
}

fn since(counted: &Top, clock: &Clock) -> Option<Markup> {
    (!counted.complete).then(|| clock.at(counted.counted_since, None))
}

/// The card of the first page: the jobs that failed most in 24 hours, or else those that cost most time.
#[derive(Template)]
#[template(path = "overview/top_card.html")]
struct TopCard {
    failing: bool,
    rows: Vec<Row>,
}

/// Returns the card of the first page. Nothing if the role may not read runs, if there is nothing to show, or if the
/// counters cannot be read: the page does without it then.
pub(crate) async fn card(request: &UiRequest) -> Markup {
    let empty = || Markup::from_html(String::new());
    if !request.may_read_runs() {
        return empty();
    }
    let counted = match timeout(CARD_TIMEOUT, request.app.counters(Window::Day)).await {
        Ok(Ok(counted)) => counted,
        Ok(Err(error)) => {
            warn!(%error, "cannot read the counters of runs for the overview");
            return empty();
        }
        Err(_) => {
            warn!("the counters of runs take too long to read for the overview");
            return empty();
        }
    };
    let items = || counted.counters.iter().map(|(key, counters)| TopItem::new(key, counters)).collect();
    let failing = ranked(items(), &TopBy::Failures, CARD_ROWS);
    let card = TopCard {
        failing: !failing.is_empty(),
        rows: if failing.is_empty() { ranked(items(), &TopBy::Time, CARD_ROWS) } else { failing }
            .iter()
            .map(Row::new)
            .collect(),
    };
    if card.rows.is_empty() { empty() } else { card.render().map_or_else(|_| empty(), Markup::from_html) }
}
