//! The backfills of a job: how far each is, and ways to pause, change and stop it.

use askama::Template;
use axum::http::Method;
use everbell::client::{BackfillDetails, BackfillReport};
use everbell_core::backfill::{BackfillOrder, BackfillStatus};

use super::{Moment, Subject, expect_operator};
use crate::clock::Clock;
use crate::markup::{Markup, url_part};
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::access::Role;
use everbell_http::problem::Problem;
use everbell_wire as wire;

const ONE: &str = "/jobs/{jobId}/backfills/{backfillId}";
const PAUSE: &str = "/jobs/{jobId}/backfills/{backfillId}/pause";
const RESUME: &str = "/jobs/{jobId}/backfills/{backfillId}/resume";
const STOP: &str = "/jobs/{jobId}/backfills/{backfillId}/stop";

#[derive(Template)]
#[template(path = "action/backfills.html")]
struct BackfillsPage {
    frame: Frame,
    subject: Subject,
    rows: Vec<Row>,
    /// The reason why the actor may not act.
    no_act: Option<String>,
}

/// A backfill.
struct Row {
    id: String,
    by: String,
    asked: Moment,
    reason: Option<String>,
    from: Markup,
    to: Markup,
    progress: Progress,
    /// How it runs, and when it will be done.
    notes: Vec<String>,
    done_at: Option<Moment>,
    status: BackfillStatus,
    /// Whether its settings can change: not if all runs were created at once.
    has_settings: bool,
    parallel: String,
    rate: String,
    /// The form to request the range again.
    repeat: String,
}

impl Row {
    fn is_running(&self) -> bool {
        self.status == BackfillStatus::Running
    }

    fn is_paused(&self) -> bool {
        self.status == BackfillStatus::Paused
    }

    fn is_stopped(&self) -> bool {
        self.status == BackfillStatus::Stopped
    }
}

/// How far a backfill is.
#[derive(Debug, PartialEq, Eq)]
struct Progress {
    good: u64,
    bad: u64,
    running: u64,
    waiting: u64,
}

impl Progress {
    /// `count` returns the number of runs with a status.
    fn from_counts(count: impl Fn(&str) -> u64) -> Progress {
        Progress {
            good: count("succeeded"),
            bad: count("failed") + count("canceled") + count("skipped"),
            running: count("running"),
            waiting: count("pending"),
        }
    }

    fn all(&self) -> u64 {
        self.good + self.bad + self.running + self.waiting
    }

    fn is_done(&self) -> bool {
        self.running + self.waiting == 0
    }

    /// The parts of a bar of 100: class, beginning and length.
    fn parts(&self) -> Vec<(&'static str, u64, u64)> {
        let all = self.all().max(1);
        let mut before = 0;
        let parts = [("ok", self.good), ("bad", self.bad), ("run", self.running)];
        let part = |(class, count): (&'static str, u64)| {
            let begin = before * 100 / all;
            before += count;
            (class, begin, before * 100 / all - begin)
        };
        parts.into_iter().map(part).filter(|(.., length)| *length > 0).collect()
    }
}

impl Row {
    fn new(report: &BackfillReport, subject: &Subject, clock: &Clock) -> Row {
        let details = report.details.as_deref();
        let settings = details.map(|details| &details.backfill.settings);
        Row {
            id: report.id.to_string(),
            by: report.asked_by.clone(),
            asked: (clock.at(report.asked_at, None), clock.away(report.asked_at)),
            reason: report.reason.clone(),
            from: clock.at(report.from, Some(&subject.zone)),
            to: clock.at(report.to, Some(&subject.zone)),
            progress: Progress::from_counts(|status| report.runs.get(status).copied().unwrap_or(0)),
            notes: details.map(notes).unwrap_or_default(),
            done_at: details
                .and_then(|details| details.progress.done_at)
                .map(|at| (clock.at(at, None), clock.away(at))),
            status: report.status(),
            has_settings: details.is_some(),
            parallel: settings.and_then(|settings| settings.parallel).map(|n| n.to_string()).unwrap_or_default(),
            rate: settings.and_then(|settings| settings.rate).map(|rate| rate.to_string()).unwrap_or_default(),
            repeat: repeat(report, details, subject),
        }
    }
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let subject = Subject::load(&request).await?;
    let reports = request.jobs().backfills(subject.key.as_str()).await?;
    let clock = request.clock();
    let page = BackfillsPage {
        frame: request.frame(Section::Jobs, format!("Backfills of {}", subject.key)).await,
        rows: reports.iter().map(|report| Row::new(report, &subject, &clock)).collect(),
        no_act: request.barred(Role::Operator),
        subject,
    };
    UiResponse::page(&page)
}

/// Returns where the same range can be requested again.
fn repeat(report: &BackfillReport, details: Option<&BackfillDetails>, subject: &Subject) -> String {
    let (from, to) = (url_part(&report.from.to_string()), url_part(&report.to.to_string()));
    let org = details.and_then(|details| details.backfill.org.as_ref());
    let org = org.map(|org| format!("&orgId={}", url_part(org.as_str()))).unwrap_or_default();
    format!("{}/backfill?from={from}&to={to}{org}", subject.path())
}

/// How a backfill runs, in words.
fn notes(details: &BackfillDetails) -> Vec<String> {
    let (settings, counts) = (&details.backfill.settings, &details.progress.counts);
    let mut notes = Vec::new();
    notes.extend(details.waits_for.map(|why| format!("waits: {why}")));
    notes.extend(details.backfill.stopped_because.as_ref().map(|why| format!("stopped: {why}")));
    notes.extend(settings.parallel.map(|parallel| format!("{parallel} at once")));
    notes.extend(settings.rate.map(|rate| format!("at most {rate}")));
    notes.extend((settings.order == BackfillOrder::Newest).then(|| "newest first".to_owned()));
    notes.extend(settings.paused_ok.then(|| "continues while the job is paused".to_owned()));
    notes.extend((counts.existing > 0).then(|| format!("{} already had a run", counts.existing)));
    notes.extend(details.progress.per_hour.map(|runs| format!("{runs} runs per hour")));
    notes
}

/// Sends an action on a backfill that has no settings of its own.
async fn act(request: UiRequest, route: &'static str, done: &str) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let subject = Subject::load(&request).await?;
    let path = [("jobId", subject.name.as_str()), ("backfillId", request.part("id"))];
    let _: wire::BackfillReport = request.perform(Method::POST, route, &path, &()).await?;
    Ok(UiResponse::done(format!("{}/backfills", subject.path()), done.to_owned()))
}

pub(crate) async fn pause(request: UiRequest) -> Result<UiResponse, Problem> {
    act(request, PAUSE, "The backfill is paused. Runs that have started continue.").await
}

pub(crate) async fn resume(request: UiRequest) -> Result<UiResponse, Problem> {
    act(request, RESUME, "The backfill runs again.").await
}

/// Changes how many runs are open at once, and the rate; an empty field is the default.
pub(crate) async fn set(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let subject = Subject::load(&request).await?;
    let path = [("jobId", subject.name.as_str()), ("backfillId", request.part("id"))];
    let parallel = request.sent("parallel").map_or_else(|| 0.into(), super::backfill::number);
    let body = serde_json::json!({ "parallel": parallel, "rate": request.sent("rate").unwrap_or("off") });
    let _: wire::BackfillReport = request.perform(Method::PATCH, ONE, &path, &body).await?;
    let text = "The settings apply from the next run on.".to_owned();
    Ok(UiResponse::done(format!("{}/backfills", subject.path()), text))
}

/// Withdraws the runs that have not begun.
pub(crate) async fn stop(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let subject = Subject::load(&request).await?;
    let path = [("jobId", subject.name.as_str()), ("backfillId", request.part("id"))];
    let wire::StoppedBackfill { canceled, .. } = request.perform(Method::POST, STOP, &path, &()).await?;
    let text = if canceled == 1 {
        "The backfill is stopped. 1 slot will not run.".to_owned()
    } else {
        format!("The backfill is stopped. {canceled} slots will not run.")
    };
    Ok(UiResponse::done(format!("{}/backfills", subject.path()), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_what_is_done() {
        let progress = Progress { good: 1, bad: 1, running: 1, waiting: 0 };
        assert_eq!(progress.parts(), [("ok", 0, 33), ("bad", 33, 33), ("run", 66, 34)]);
        let waiting = Progress { good: 3, bad: 0, running: 0, waiting: 3 };
        assert_eq!(waiting.parts(), [("ok", 0, 50)]);
        assert!(!waiting.is_done());
        let nothing = Progress::from_counts(|_| 0);
        assert!(nothing.is_done() && nothing.parts().is_empty());
        assert_eq!(Progress::from_counts(|status| u64::from(status == "canceled")).bad, 1);
    }
}
