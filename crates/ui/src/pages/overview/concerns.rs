//! The sentence of the overview, and lines of what others noticed: the scheduler itself, and the rules.

use everbell_core::alert::{Kind, Problem};

use super::ProblemLine;
use super::causes::{Cause, Health, untold};
use super::read::OverviewData;
use crate::clock::Clock;
use crate::frame::Stuck;
use crate::markup::url_part;

/// How well all is, with jobs that cannot fire beyond those that are listed.
pub(super) fn health(
    read: &OverviewData,
    lines: usize,
    errored: u64,
    jobs: Option<u64>,
    runs: Option<(u64, u64, u64)>,
) -> Health {
    let unlisted = errored.saturating_sub(read.errored.len() as u64);
    // Numbers may be some seconds old, and then only say that there are more.
    let problems = lines as u64 + if read.more_errored { unlisted } else { 0 };
    Health { problems, more: read.more || (read.more_errored && unlisted == 0), jobs, runs }
}

/// Timers that are due and do not fire. If targets are unserved, those are the reason, and have lines of their own.
pub(super) fn stuck_line(read: &OverviewData, stuck: Option<&Stuck>) -> Option<ProblemLine> {
    let stuck = stuck.filter(|_| read.unserved.is_empty())?;
    let (href, name) = stuck.link;
    Some(ProblemLine::new(("bad", "Not firing"), name.to_owned(), href.to_owned(), stuck.text.clone()))
}

/// The open problems of rules that no other line shows.
pub(super) fn open_lines(read: &OverviewData, causes: &[Cause], clock: &Clock) -> Vec<ProblemLine> {
    let open = read.history.as_ref().map_or(&[][..], |own| &own.open);
    untold(open, causes, &read.errored).into_iter().map(|problem| open_line(problem, clock)).collect()
}

/// A problem that a rule found.
fn open_line(problem: &Problem, clock: &Clock) -> ProblemLine {
    let key = problem.subject.to_string();
    let href = problem.job().map_or_else(|| "/cluster".to_owned(), |job| format!("/jobs/{}", url_part(job.as_str())));
    let reason = format!("{}: {}", problem.kind.summary(), problem.reason);
    let word = match problem.kind {
        Kind::Failed => "Failing",
        Kind::NoSuccess => "No success",
        Kind::JobError => "Cannot fire",
        Kind::AutoPaused => "Paused",
        Kind::Missed => "Missed",
        Kind::Skipped => "Skipped",
        Kind::LateStart => "Late",
        Kind::TooLong => "Too long",
        Kind::InstanceLost => "Lost",
    };
    ProblemLine::new(("warn", word), key, href, reason).since(Some(problem.since), clock)
}
