//! The timeline of a run from its creation to its end, with the duration of each step.

use everbell::{RunRecord, RunStatus};
use everbell_core::Zone;
use jiff::Timestamp;

use crate::clock::Clock;
use crate::markup::Markup;
use crate::pages::runs::row::{LATE_START_MS, lag_ms};
use everbell_wire::elapsed::took;

/// The length of a whole line, in parts.
const BAR_LENGTH: i64 = 1_000;

/// Something that happened, or is happening.
pub(super) struct Step {
    pub(super) name: &'static str,
    /// How it looks.
    pub(super) tone: &'static str,
    pub(super) at: Option<Markup>,
    /// The duration before this step.
    pub(super) span: Option<Markup>,
    /// The duration as a bar on a common scale.
    pub(super) bar: Option<Markup>,
}

pub(super) fn steps(run: &RunRecord, clock: &Clock, zone: Option<&Zone>) -> Vec<Step> {
    let line = Line::new(run, clock.now);
    let claimed = run.claimed.map(|(at, _)| at);
    let step = |name, tone, at: Timestamp, from: Option<Timestamp>, span: Option<String>| Step {
        name,
        tone,
        at: Some(clock.exact(at, zone)),
        span: span.map(|text| Markup::from_html(crate::markup::escaped(&text))),
        bar: from.map(|from| line.bar(tone, from, at)),
    };
    let mut steps = vec![step("Created", "wait", run.created_at, None, None)];
    for earlier in &run.earlier_attempts {
        let (name, tone) = match earlier.code.as_str() {
            "lost" => ("Lost", "bad"),
            "shutdown" => ("Shut down", "skip"),
            _ => ("Failed", "bad"),
        };
        let free = if earlier.counts { "" } else { ", does not count" };
        steps.push(step(name, tone, earlier.ended_at, None, Some(format!("attempt {}{free}", earlier.attempt))));
    }
    if let Some(at) = claimed {
        let also = if run.attempt > 1 { ", including earlier attempts" } else { "" };
        let waited = format!("waited {}{also}", between(run.created_at, at));
        steps.push(step("Claimed", "wait", at, Some(run.created_at), Some(waited)));
    }
    if let Some(at) = run.started_at {
        let attempt = if run.attempt > 1 { format!("attempt {}, ", run.attempt) } else { String::new() };
        let lag = lag_ms(run).unwrap_or_default();
        let tone = if lag > LATE_START_MS { "skip" } else { "wait" };
        let late = format!("{attempt}{} after its scheduled time", took(lag));
        steps.push(step("Started", tone, at, Some(run.scheduled_at), Some(late)));
    }
    if let Some(at) = run.finished_at {
        let took = run.started_at.map(|from| format!("took {}", between(from, at)));
        steps.push(step(ended(run.status), tone(run.status), at, run.started_at, took));
    }
    steps.extend(present(run, clock, &line));
    steps
}

/// Returns the current step of a run that has not ended.
fn present(run: &RunRecord, clock: &Clock, line: &Line) -> Option<Step> {
    if run.status == RunStatus::Skipped {
        return Some(Step {
            name: "Skipped",
            tone: tone(run.status),
            at: None,
            span: Some(Markup::from_html("never started")),
            bar: None,
        });
    }
    if let Some(at) = run.next_attempt_at {
        return Some(Step { name: "Retry", tone: "wait", at: None, span: Some(clock.away(at)), bar: None });
    }
    let (name, tone, since) = match (run.status, run.started_at) {
        (RunStatus::Running, Some(at)) if run.is_handed_over() => ("Running on its remote side", "run", at),
        (RunStatus::Running, Some(at)) => ("Running", "run", at),
        (RunStatus::Pending, _) if run.scheduled_at > clock.now => ("Scheduled", "wait", clock.now),
        (RunStatus::Pending, _) => ("Waiting", "wait", run.scheduled_at.max(run.created_at)),
        _ => return None,
    };
    let span = if since == clock.now { clock.away(run.scheduled_at) } else { clock.since(since) };
    Some(Step { name, tone, at: None, span: Some(span), bar: Some(line.bar(tone, since, clock.now)) })
}

const fn ended(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Failed => "Failed",
        RunStatus::Canceled => "Canceled",
        RunStatus::Succeeded => "Succeeded",
        RunStatus::Pending | RunStatus::Running | RunStatus::Skipped => "Finished",
    }
}

fn tone(status: RunStatus) -> &'static str {
    crate::badge::run_words(status).0
}

fn between(from: Timestamp, to: Timestamp) -> String {
    took((to.as_microsecond() - from.as_microsecond()) / 1_000)
}

/// The time from the first to the last that is known.
struct Line {
    first: Timestamp,
    last: Timestamp,
}

impl Line {
    fn new(run: &RunRecord, now: Timestamp) -> Line {
        let first = run.created_at.min(run.scheduled_at);
        let last = match run.finished_at {
            Some(at) => at,
            None if run.status.is_terminal() => run.created_at,
            None => now,
        };
        Line { first, last: last.max(first) }
    }

    /// A part of it, as a picture. What is too short to be seen is a dot.
    fn bar(&self, tone: &str, from: Timestamp, to: Timestamp) -> Markup {
        let since = |time: Timestamp| time.as_microsecond() - self.first.as_microsecond();
        let at = |time: Timestamp| (since(time) * BAR_LENGTH / since(self.last).max(1)).clamp(0, BAR_LENGTH);
        let length = (at(to) - at(from)).max(6);
        let begin = at(from).min(BAR_LENGTH - length);
        Markup::from_html(format!(
            "<svg class=\"bar {tone}\" viewBox=\"0 0 {BAR_LENGTH} 6\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
             <rect class=\"way\" width=\"{BAR_LENGTH}\" height=\"6\"/>\
             <rect x=\"{begin}\" width=\"{length}\" height=\"6\"/></svg>"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_lies_where_its_time_is() {
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let line = Line { first: at(0), last: at(10) };
        assert!(line.bar("ok", at(2), at(7)).as_str().contains("x=\"200\" width=\"500\""));
        assert!(line.bar("ok", at(10), at(10)).as_str().contains("x=\"994\" width=\"6\""));
        assert!(line.bar("ok", at(-5), at(20)).as_str().contains("x=\"0\" width=\"1000\""));
        assert!(Line { first: at(0), last: at(0) }.bar("ok", at(0), at(0)).as_str().contains("x=\"0\" width=\"6\""));
    }
}
