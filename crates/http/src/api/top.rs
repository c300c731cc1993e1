//! The jobs that run most often, fail most often or cost most time.

use std::collections::BTreeSet;

use everbell::core::store::PageRequest;
use everbell::{JobFilter, JobStatus, Target};
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
    optional("target", Value::List { of: &TEXT, max: 50 }, "Only jobs with one of these targets."),
    optional("failing", Value::Flag, "Only jobs that have failed since their last success, or only the others."),
    optional("limit", Value::Integer { min: 1, max: 1_000 }, "The maximum number of jobs to list. Default: 20."),
];

/// The most jobs that the filters may select.
const MAX_SELECTED_JOBS: usize = 20_000;
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
    /// One of these targets; any if empty.
    pub target: Vec<String>,
    /// Whether the jobs failed since their last success.
    pub failing: Option<bool>,
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
            target: form.list("target").into_iter().map(str::to_owned).collect(),
            failing: form.answer("failing"),
            limit: form.count("limit").map_or(DEFAULT_LIMIT, |limit| limit as usize),
        }
    }
}

impl TopQuery {
    /// Whether no filter leaves out a job.
    fn is_for_all(&self) -> bool {
        self.label.is_none() && self.target.is_empty() && self.failing.is_none()
    }
}

pub(crate) async fn list(request: ApiRequest) -> Result<ApiResponse, Problem> {
    ApiResponse::ok(&top(&request.app, &TopQuery::from_request(&request)).await?)
}

/// Returns the jobs of a window in order.
pub async fn top(app: &App, query: &TopQuery) -> Result<wire::Top, Problem> {
    let counted = app.counters(query.window).await?;
    let wanted = if query.is_for_all() { None } else { Some(selected(app, query).await?) };
    // One-time jobs are counted together, so neither labels nor their last runs select any.
    let counts_one_time = query.label.is_none() && query.failing.is_none();
    let is_wanted = |key: &CounterKey| match (&wanted, key) {
        (None, _) => true,
        (Some(wanted), CounterKey::Job(key)) => wanted.contains(key.as_str()),
        (Some(_), CounterKey::OneTime(target)) => {
            counts_one_time && query.target.iter().any(|wanted| wanted == target.as_str())
        }
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

/// The keys of the current jobs with a label, for lists whose rows know the key only.
pub async fn labeled(app: &App, label: &str) -> Result<BTreeSet<String>, Problem> {
    let query = TopQuery {
        window: Window::default(),
        by: TopBy::Time,
        label: Some(label.to_owned()),
        target: Vec::new(),
        failing: None,
        limit: 0,
    };
    selected(app, &query).await
}

/// The keys of the current jobs that a query selects.
async fn selected(app: &App, query: &TopQuery) -> Result<BTreeSet<String>, Problem> {
    let targets: Result<_, _> = query.target.iter().map(|label| Target::new(label)).collect();
    let filter = JobFilter {
        status: vec![JobStatus::Active, JobStatus::Paused],
        label: query.label.as_deref().map(label),
        target: targets.map_err(|invalid: everbell::Invalid| Problem::at("parameter", "target", invalid.reason))?,
        failing: query.failing,
        ..JobFilter::default()
    };
    let (mut keys, mut after) = (BTreeSet::new(), None);
    loop {
        let page = app.bell.jobs().list(&filter, &PageRequest { limit: 1_000, after }).await?;
        keys.extend(page.items.iter().map(|row| row.job.definition.key.to_string()));
        if keys.len() > MAX_SELECTED_JOBS {
            let reason =
                format!("with the other filters selects more than {MAX_SELECTED_JOBS} jobs: use a narrower one");
            let name = if query.label.is_some() { "label" } else { "target" };
            return Err(Problem::at("parameter", name, reason));
        }
        after = page.next;
        if after.is_none() {
            return Ok(keys);
        }
    }
}
