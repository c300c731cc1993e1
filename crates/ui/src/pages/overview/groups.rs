//! The jobs of the overview, counted by the values of a label.

use std::collections::BTreeMap;

use everbell::{JobFilter, JobRow, JobStatus};
use everbell_core::store::{CounterKey, PageRequest};

use crate::label_groups::{group_name, groups};
use crate::markup::url_part;
use crate::request::UiRequest;
use everbell_http::counted::Window;
use everbell_http::problem::Problem;

/// The most jobs that are counted, and how many are read at once.
const MAX_COUNTED_JOBS: usize = 5_000;
const READ_ROWS: u32 = 500;

/// A line for each value of a label.
pub(super) struct GroupCard {
    pub(super) label: String,
    pub(super) rows: Vec<GroupRow>,
    /// Whether there are more jobs than are counted.
    pub(super) is_cut: bool,
    /// Whether the role may read runs.
    pub(super) has_runs: bool,
}

/// The jobs with one value of the label, or without the label.
pub(super) struct GroupRow {
    pub(super) name: String,
    /// The label as a part of an address; nothing for the jobs without it.
    pub(super) part: Option<String>,
    pub(super) jobs: usize,
    pub(super) paused: usize,
    pub(super) failing: usize,
    /// Runs of the last 24 hours, and those of them that failed.
    pub(super) runs: u64,
    pub(super) failed: u64,
}

impl GroupCard {
    /// Counts the current jobs by the values of a label.
    pub(super) async fn load(request: &UiRequest, label: &str) -> Result<GroupCard, Problem> {
        let filter = JobFilter { status: vec![JobStatus::Active, JobStatus::Paused], ..JobFilter::default() };
        let (mut jobs, mut after): (Vec<JobRow>, _) = (Vec::new(), None);
        loop {
            let page = request.jobs().list(&filter, &PageRequest { limit: READ_ROWS, after }).await?;
            jobs.extend(page.items);
            after = page.next;
            if after.is_none() || jobs.len() >= MAX_COUNTED_JOBS {
                break;
            }
        }
        let has_runs = request.may_read_runs();
        let counted = if has_runs { Some(request.app.counters(Window::Day).await?) } else { None };
        let runs_of: BTreeMap<&str, (u64, u64)> = counted
            .iter()
            .flat_map(|counted| counted.counters.iter())
            .filter_map(|(key, counters)| match key {
                CounterKey::Job(key) => Some((key.as_str(), (counters.runs(), counters.failed))),
                CounterKey::OneTime(_) => None,
            })
            .collect();
        let row = |(value, places): (Option<String>, Vec<usize>)| {
            let name = group_name(label, value.as_deref());
            let mut row = GroupRow {
                part: value.map(|_| url_part(&name)),
                name,
                jobs: places.len(),
                paused: 0,
                failing: 0,
                runs: 0,
                failed: 0,
            };
            for job in places.into_iter().map(|place| &jobs[place].job) {
                row.paused += usize::from(job.state.status == JobStatus::Paused);
                row.failing += usize::from(job.state.consecutive_failures > 0);
                let (runs, failed) = runs_of.get(job.definition.key.as_str()).copied().unwrap_or_default();
                row.runs += runs;
                row.failed += failed;
            }
            row
        };
        let rows = groups(&jobs, |job| job.job.definition.labels.get(label).cloned()).into_iter().map(row).collect();
        Ok(GroupCard { label: label.to_owned(), rows, is_cut: after.is_some(), has_runs })
    }
}
