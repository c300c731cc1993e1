//! The jobs before and after a job: those whose runs start it, and those that its runs start.

use everbell_core::Spec;
use everbell_core::after::ChainOn;
use everbell_core::chain::{ChainJob, ChainLink, RunGroup, related};
use everbell_core::fan_in::FanIn;
use everbell_http::problem::Problem;

use crate::UiRequest;
use crate::chart::{ChainArrow, ChainBox, ChainPicture, Condition, chain};
use crate::clock::Clock;
use crate::markup::{Markup, url_part};
use crate::pages::action::Subject;

/// The most jobs of a chain that are shown.
const MAX_JOBS: usize = 24;

/// The most groups of runs that are looked at, and that are shown.
const MAX_GROUPS: u32 = 50;
const MAX_SHOWN_GROUPS: usize = 5;

/// The chain of a job.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// Whether the job is in a chain.
    pub(super) picture: Option<Markup>,
    /// The rule by which the job starts.
    pub(super) rule: Option<String>,
    /// The runs that it waits for.
    pub(super) waits: Vec<Wait>,
}

/// A group of runs that the job waits for.
#[derive(Debug)]
pub(super) struct Wait {
    /// The slot or the local date.
    pub(super) name: String,
    pub(super) until: Markup,
    pub(super) missing: String,
}

impl Chain {
    pub(super) async fn load(request: &UiRequest, subject: &Subject, clock: &Clock) -> Result<Chain, Problem> {
        let job = subject.definition();
        let links: Vec<ChainLink> = request.jobs().chain_links().await?;
        let jobs = related(&job.key, &links, MAX_JOBS);
        let spec = job.spec.as_ref().ok();
        let fan_in = spec.and_then(Spec::fan_in);
        let groups = match fan_in {
            Some(_) => request.jobs().run_groups(&job.key, MAX_GROUPS).await?,
            None => Vec::new(),
        };
        let waits = fan_in.map(|fan_in| waits(&groups, fan_in, clock, subject)).unwrap_or_default();
        let rule = spec.and_then(Spec::describe_parents);
        Ok(Chain { picture: (!jobs.is_empty()).then(|| picture(job.key.as_str(), &jobs)), rule, waits })
    }
}

fn waits(groups: &[RunGroup], fan_in: &FanIn, clock: &Clock, subject: &Subject) -> Vec<Wait> {
    let open = groups.iter().filter(|group| group.closed_at.is_none()).take(MAX_SHOWN_GROUPS);
    let wait = |group: &RunGroup| Wait {
        name: group.name.clone(),
        until: clock.at(group.deadline, Some(&subject.zone)),
        missing: group.missing(fan_in).join(", "),
    };
    open.map(wait).collect()
}

fn picture(job: &str, jobs: &[ChainJob]) -> Markup {
    let arrows = |one: &ChainJob| {
        let arrow = |after: &everbell_core::after::After| {
            let from = jobs.iter().position(|parent| parent.job_key == after.job_key)?;
            let condition = match after.on {
                ChainOn::Success => Condition::Success,
                ChainOn::Failure => Condition::Failure,
                ChainOn::Any => Condition::Any,
            };
            Some(ChainArrow { from, condition })
        };
        one.parents.iter().filter_map(arrow).collect()
    };
    let one = |job: &ChainJob| ChainBox {
        key: job.job_key.to_string(),
        href: format!("/jobs/{}", url_part(job.job_key.as_str())),
        arrows: arrows(job),
    };
    let boxes: Vec<ChainBox> = jobs.iter().map(one).collect();
    Markup::from_html(chain(&ChainPicture { id: "chain-picture", job, boxes: &boxes }))
}
