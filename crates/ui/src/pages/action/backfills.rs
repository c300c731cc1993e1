//! The backfills of a job: how far each is, and a way to stop it.

use askama::Template;
use axum::http::Method;
use everbell::client::BackfillReport;

use super::{Moment, Subject, expect_operator};
use crate::clock::Clock;
use crate::markup::Markup;
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::access::Role;
use everbell_http::problem::Problem;
use everbell_wire as wire;

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
        Row {
            id: report.id.to_string(),
            by: report.asked.actor.clone(),
            asked: (clock.at(report.asked.at, None), clock.away(report.asked.at)),
            reason: report.asked.reason.clone(),
            from: clock.at(report.from, Some(&subject.zone)),
            to: clock.at(report.to, Some(&subject.zone)),
            progress: Progress::from_counts(|status| report.runs.get(status).copied().unwrap_or(0)),
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

/// Cancels the runs that have not begun.
pub(crate) async fn stop(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let subject = Subject::load(&request).await?;
    let path = [("jobId", subject.name.as_str()), ("backfillId", request.part("id"))];
    let wire::StoppedBackfill { canceled, .. } = request.perform(Method::POST, STOP, &path, &()).await?;
    let text = if canceled == 1 {
        "1 run that had not started was canceled.".to_owned()
    } else {
        format!("{canceled} runs that had not started were canceled.")
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
