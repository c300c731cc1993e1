//! Canceling or rerunning selected runs. Each is a separate API call.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::{PageRequest, RunFilter, RunStatus};

use super::row::{Hosts, Row};
use crate::pages::action::{Reason, Refusal, expect_operator};
use crate::request::{Content, Flash, UiRequest, UiResponse, safe_return_path};
use crate::{Frame, Section};
use everbell_http::internal_call::InternalCall;
use everbell_http::problem::{Kind, Problem};
use everbell_wire as wire;
use everbell_wire::form::{Field, Kind as Member, TEXT, optional};
use everbell_wire::run::{CancelOutcome, RunNowOutcome};

pub(crate) const QUERY: &[Field] = &[
    optional("run", Member::List { of: &TEXT, max: 200 }, "The ids of the selected runs."),
    optional("do", Member::Word(&["cancel", "rerun"]), "The action."),
    optional("back", Member::Text { min: 1, max: 4_000 }, "The address of the list to return to."),
];

/// The most active runs that are looked through for those that were picked.
const MAX_ACTIVE_RUNS: u32 = 1_000;

#[derive(Template)]
#[template(path = "runs/selection.html")]
struct SelectionPage {
    frame: Frame,
    selected: Vec<String>,
    rerun: bool,
    /// Those that can be canceled.
    active: Vec<Row>,
    /// Whether there are too many active runs to check all of them.
    unsure: bool,
    back: String,
    reason: String,
    refusal: Refusal,
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let form = request.query(QUERY);
    let selected = form.list("run").into_iter().map(str::to_owned).collect();
    let back = form.text("back").map_or("/runs", safe_return_path).to_owned();
    page(&request, selected, form.text("do") == Some("rerun"), back, None).await
}

async fn page(
    request: &UiRequest,
    selected: Vec<String>,
    rerun: bool,
    back: String,
    problem: Option<&Problem>,
) -> Result<UiResponse, Problem> {
    if selected.is_empty() {
        let flash = Some(Flash { good: false, text: "No runs selected.".to_owned() });
        return Ok(UiResponse::new(Content::Redirect { to: back, flash }));
    }
    let filter = RunFilter { status: vec![RunStatus::Pending, RunStatus::Running], ..RunFilter::default() };
    let found = request.runs().list(&filter, &PageRequest { limit: MAX_ACTIVE_RUNS, after: None }).await?;
    let clock = request.clock();
    let mut active = Vec::new();
    for run in found.items.iter().filter(|run| selected.contains(&run.id.to_string())) {
        active.push(Row::new(run, &clock, request.app.zone_of(run).await?.as_ref(), &Hosts::default()));
    }
    let title = if rerun { "Run again" } else { "Cancel runs" };
    let page = SelectionPage {
        frame: request.frame(Section::Runs, title).await,
        unsure: found.next.is_some(),
        reason: request.sent("reason").unwrap_or_default().to_owned(),
        refusal: Refusal::from_problem(problem, &["reason"]),
        selected,
        rerun,
        active,
        back,
    };
    UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let selected: Vec<String> = request.sent_all("run").into_iter().map(str::to_owned).collect();
    let rerun = request.sent("do") == Some("rerun");
    let back = request.sent("back").map_or("/runs", safe_return_path).to_owned();
    let mut counts = OutcomeCounts::default();
    for id in &selected {
        match one(&request, id, rerun).await {
            // The reason is that of all, so nothing was done yet.
            Err(problem) if Refusal::from_problem(Some(&problem), &["reason"]).at("reason").is_some() => {
                return page(&request, selected, rerun, back, Some(&problem)).await;
            }
            outcome => counts.add(&outcome),
        }
    }
    let flash = Some(Flash { good: counts.refused.is_none(), text: counts.summary() });
    Ok(UiResponse::new(Content::Redirect { to: back, flash }))
}

/// Cancels or reruns a run, and returns the outcome in words.
async fn one(request: &UiRequest, id: &str, rerun: bool) -> Result<&'static str, Problem> {
    let body = Reason::sent(request);
    let route = if rerun { "/runs/{runId}/rerun" } else { "/runs/{runId}/cancel" };
    let path = [("runId", id)];
    // The whole form is sent once, so each of its runs is.
    let once = request.sent("once").map(|once| format!("{once}:{id}"));
    let call = InternalCall { once: once.as_deref(), ..InternalCall::new(Method::POST, route, &path) };
    if rerun {
        let answer: wire::RunNow = request.ask(call, &body).await?;
        return Ok(match answer.outcome {
            RunNowOutcome::Queued => "queued",
            RunNowOutcome::Skipped => "skipped",
            _ => "started",
        });
    }
    let answer: wire::Canceled = request.ask(call, &body).await?;
    Ok(if answer.outcome == CancelOutcome::Requested { "asked to stop" } else { "canceled" })
}

/// The number of runs by outcome, in order of first occurrence.
#[derive(Default)]
struct OutcomeCounts {
    outcomes: Vec<(&'static str, usize)>,
    /// The first that was refused, and why.
    refused: Option<String>,
}

impl OutcomeCounts {
    fn add(&mut self, outcome: &Result<&'static str, Problem>) {
        let word = match outcome {
            Ok(word) => *word,
            Err(problem) if problem.kind == Kind::OverlapSkipped => "skipped because other runs are active",
            Err(problem) if problem.members().is_ok_and(|members| members.run_status.is_some()) => "had already ended",
            Err(problem) => {
                self.refused.get_or_insert_with(|| problem.detail.clone());
                "refused"
            }
        };
        match self.outcomes.iter_mut().find(|(own, _)| *own == word) {
            Some((_, count)) => *count += 1,
            None => self.outcomes.push((word, 1)),
        }
    }

    fn summary(&self) -> String {
        let parts: Vec<String> = self.outcomes.iter().map(|(word, count)| format!("{count} {word}")).collect();
        let why = self.refused.as_ref().map(|why| format!(" {why}")).unwrap_or_default();
        format!("{}.{why}", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_counted() {
        let mut counts = OutcomeCounts::default();
        for outcome in [
            Ok("canceled"),
            Err(Problem::new(Kind::Conflict, "It has ended.").with("runStatus", "failed")),
            Ok("canceled"),
        ] {
            counts.add(&outcome);
        }
        assert_eq!((counts.summary().as_str(), counts.refused.is_none()), ("2 canceled, 1 had already ended.", true));
        counts.add(&Err(Problem::new(Kind::NotFound, "There is no run `x`.")));
        assert_eq!(counts.summary(), "2 canceled, 1 had already ended, 1 refused. There is no run `x`.");
        assert!(counts.refused.is_some());
    }
}
