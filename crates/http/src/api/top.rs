//! The jobs that run most often, fail most often or cost most time.

use std::collections::BTreeSet;

use everbell::core::store::PageRequest;
use everbell::{JobFilter, JobStatus};
use everbell_core::store::CounterKey;
use everbell_wire as wire;
use everbell_wire::form::{Field, Kind as Value, TEXT, optional};
use everbell_wire::top::ranked;
use everbell_wire::{TopBy, TopItem};

use super::jobs::label;
use crate::App;
use crate::counted::Window;
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResponse};

/// The orders.
pub const ORDERS: &[&str] = &["runs", "failures", "time", "p95", "lag"];

/// The parameters of the list.
pub const TOP: &[Field] = &[
    optional("window", Value::Word(Window::WORDS), "The window, which ends now. Default: 24h."),
    optional("by", Value::Word(ORDERS), "The order. Default: time."),
    optional("label", TEXT, "Only jobs with this label: `name` or `name=value`."),
    optional("limit", Value::Integer { min: 1, max: 1_000 }, "The most jobs to list. Default: 20."),
];

/// The most jobs that a label may select.
const MAX_LABELED_JOBS: usize = 20_000;
const DEFAULT_LIMIT: usize = 20;

/// The selection of a list.
#[derive(Clone, Debug)]
pub struct TopQuery {
    /// How far back.
    pub window: Window,
    /// The order.
    pub by: TopBy,
    /// `name` or `name=value`.
    pub label: Option<String>,
    /// The most jobs.
    pub limit: usize,
}

impl TopQuery {
    /// Reads the parameters of a request.
    pub fn from_request(request: &ApiRequest) -> TopQuery {
        let form = request.query(TOP);
        TopQuery {
            window: form.text("window").and_then(Window::from_word).unwrap_or_default(),
            by: form.text("by").map_or(TopBy::Time, TopBy::from_word),
            label: form.text("label").map(str::to_owned),
            limit: form.count("limit").map_or(DEFAULT_LIMIT, |limit| limit as usize),
        }
    }
}

pub(crate) async fn list(request: ApiRequest) -> Result<ApiResponse, Problem> {
    ApiResponse::ok(&top(&request.app, &TopQuery::from_request(&request)).await?)
}

/// Returns the jobs of a window in order.
pub async fn top(app: &App, query: &TopQuery) -> Result<wire::Top, Problem> {
    let counted = app.counters(query.window).await?;
    let wanted = match &query.label {
        Some(label) => Some(labeled(app, label).await?),
        None => None,
    };
    let is_wanted = |key: &CounterKey| match (&wanted, key) {
        (None, _) => true,
        (Some(wanted), CounterKey::Job(key)) => wanted.contains(key.as_str()),
        (Some(_), CounterKey::OneTime(_)) => false,
    };
    let items = counted.counters.iter().filter(|(key, _)| is_wanted(key));
    let items: Vec<TopItem> = items.map(|(key, counters)| TopItem::new(key, counters)).collect();
    Ok(wire::Top {
        from: counted.from,
        counted_since: counted.counted_since,
        complete: counted.complete,
        items: ranked(items, &query.by, query.limit),
        by: query.by.clone(),
    })
}

/// The keys of current jobs with a label.
async fn labeled(app: &App, text: &str) -> Result<BTreeSet<String>, Problem> {
    let filter = JobFilter {
        status: vec![JobStatus::Active, JobStatus::Paused],
        label: Some(label(text)),
        ..JobFilter::default()
    };
    let (mut keys, mut after) = (BTreeSet::new(), None);
    loop {
        let page = app.bell.jobs().list(&filter, &PageRequest { limit: 1_000, after }).await?;
        keys.extend(page.items.iter().map(|row| row.job.definition.key.to_string()));
        if keys.len() > MAX_LABELED_JOBS {
            let reason = format!("selects more than {MAX_LABELED_JOBS} jobs: give a value, as in `name=value`");
            return Err(Problem::at("parameter", "label", reason));
        }
        after = page.next;
        if after.is_none() {
            return Ok(keys);
        }
    }
}
