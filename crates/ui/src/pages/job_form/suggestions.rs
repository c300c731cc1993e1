//! [`Suggestions`]: targets, time zones and templates to choose from, and the jobs that run next.

use std::collections::{BTreeMap, BTreeSet};

use everbell::{JobFilter, JobRow, JobStatus, PageRequest};
use everbell_core::Zone;
use everbell_core::store::{JobSort, Page};
use jiff::{SignedDuration, Timestamp};

use crate::request::UiRequest;
use everbell_http::problem::Problem;
use everbell_wire::Template;

/// How many of the next jobs are looked at. What is further away is not worth the wait.
const MAX_UPCOMING_JOBS: u32 = 200;

/// The suggestions of a form.
pub(crate) struct Suggestions {
    /// Labels, and who serves each.
    pub(crate) targets: Vec<(String, String)>,
    /// One's own, those in use, then all.
    pub(crate) zones: Vec<&'static str>,
    pub(crate) templates: Vec<Template>,
}

impl Suggestions {
    pub(crate) async fn load(request: &UiRequest, around: &UpcomingJobs) -> Result<Suggestions, Problem> {
        let mut zones = vec![request.choices.mine.name(), "UTC"];
        zones.extend(around.zones());
        let mut seen = BTreeSet::new();
        zones.extend(Zone::names());
        zones.retain(|name| seen.insert(*name));
        Ok(Suggestions { targets: targets(request).await?, zones, templates: request.app.options().templates.clone() })
    }

    /// Whether this target is one to choose; one that is not is written.
    pub(crate) fn serves(&self, target: &str) -> bool {
        self.targets.iter().any(|(label, _)| label == target)
    }
}

/// The labels that live instances serve, and where.
pub(crate) async fn targets(request: &UiRequest) -> Result<Vec<(String, String)>, Problem> {
    let since = request.app.bell.alive_since();
    let instances = request.app.bell.instances().await?;
    let mut served: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for instance in instances.into_iter().filter(|instance| instance.heartbeat_at >= since) {
        for target in instance.targets {
            served.entry(target.to_string()).or_default().insert(instance.host.clone());
        }
    }
    let who = |hosts: BTreeSet<String>| match hosts.len() {
        0..=2 => hosts.into_iter().collect::<Vec<_>>().join(", "),
        many => format!("{many} hosts"),
    };
    Ok(served.into_iter().map(|(label, hosts)| (label, who(hosts))).collect())
}

/// The jobs that fire next.
pub(crate) struct UpcomingJobs(Page<JobRow>);

impl UpcomingJobs {
    pub(crate) async fn load(request: &UiRequest) -> Result<UpcomingJobs, Problem> {
        let filter = JobFilter {
            status: vec![JobStatus::Active, JobStatus::Paused],
            sort: JobSort::NextRunAt,
            ..JobFilter::default()
        };
        Ok(UpcomingJobs(request.jobs().list(&filter, &PageRequest { limit: MAX_UPCOMING_JOBS, after: None }).await?))
    }

    fn zones(&self) -> impl Iterator<Item = &'static str> {
        let specs = self.0.items.iter().filter_map(|row| row.job.definition.spec.as_ref().ok());
        specs.map(|spec| spec.zone().name())
    }

    /// How many others fire in the same minute; nothing if that is beyond what was looked at.
    pub(crate) fn together(&self, fire: Timestamp, key: &str) -> Option<usize> {
        let nexts = || self.0.items.iter().map(|row| (row, row.timer.as_ref().and_then(|timer| timer.next_run_at)));
        let minute = |at: Timestamp| at.as_second().div_euclid(60);
        let end = fire.checked_add(SignedDuration::from_mins(1)).ok()?;
        let is_whole = self.0.next.is_none() || nexts().any(|(_, next)| next.is_none_or(|next| next >= end));
        let same = nexts().filter(|(row, next)| {
            row.job.definition.key.as_str() != key && next.is_some_and(|next| minute(next) == minute(fire))
        });
        is_whole.then(|| same.count())
    }
}
