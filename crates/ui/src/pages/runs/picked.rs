//! What is done to many runs at once: canceled, or run again. Each goes through the API on its own.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::{PageRequest, RunFilter, RunStatus};

use super::row::{Hosts, Row};
use crate::pages::action::{Reason, Refusal, expect_operator};
use crate::visit::{Content, Flash, Reply, Visit, safe_place};
use crate::{Frame, Section};
use everbell_http::internal_call::InternalCall;
use everbell_http::problem::{Kind, Problem};
use everbell_wire as wire;
use everbell_wire::form::{Field, Kind as Member, TEXT, optional};
use everbell_wire::run::{CancelOutcome, RunNowOutcome};

pub(crate) const QUERY: &[Field] = &[
    optional("run", Member::List { of: &TEXT, max: 200 }, "Which."),
    optional("do", Member::Word(&["cancel", "rerun"]), "What is to be done."),
    optional("back", Member::Text { min: 1, max: 4_000 }, "The list that it was picked from."),
];

/// The most active runs that are looked through for those that were picked.
const MOST_ACTIVE: u32 = 1_000;

#[derive(Template)]
#[template(path = "run/picked.html")]
struct PickedPage {
    frame: Frame,
    picked: Vec<String>,
    rerun: bool,
    /// Those that can be canceled.
    active: Vec<Row>,
    /// Whether there are too many active runs to tell.
    unsure: bool,
    back: String,
    reason: String,
    refusal: Refusal,
}

pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    let form = visit.query(QUERY);
    let picked = form.list("run").into_iter().map(str::to_owned).collect();
    let back = form.text("back").map_or("/runs", safe_place).to_owned();
    page(&visit, picked, form.text("do") == Some("rerun"), back, None).await
}

async fn page(
    visit: &Visit,
    picked: Vec<String>,
    rerun: bool,
    back: String,
    problem: Option<&Problem>,
) -> Result<Reply, Problem> {
    if picked.is_empty() {
        let flash = Some(Flash { good: false, text: "No run was picked.".to_owned() });
        return Ok(Reply::of(Content::Go { to: back, flash }));
    }
    let filter = RunFilter { status: vec![RunStatus::Pending, RunStatus::Running], ..RunFilter::default() };
    let found = visit.runs().list(&filter, &PageRequest { limit: MOST_ACTIVE, after: None }).await?;
    let clock = visit.clock();
    let mut active = Vec::new();
    for run in found.items.iter().filter(|run| picked.contains(&run.id.to_string())) {
        active.push(Row::of(run, &clock, visit.app.zone_of(run).await?.as_ref(), &Hosts::default()));
    }
    let title = if rerun { "Run again" } else { "Cancel runs" };
    let page = PickedPage {
        frame: visit.frame(Section::Runs, title).await,
        unsure: found.next.is_some(),
        reason: visit.sent("reason").unwrap_or_default().to_owned(),
        refusal: Refusal::of(problem, &["reason"]),
        picked,
        rerun,
        active,
        back,
    };
    Reply::refused(&page, problem.map_or(StatusCode::OK, Problem::status))
}

pub(crate) async fn send(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    let picked: Vec<String> = visit.sent_all("run").into_iter().map(str::to_owned).collect();
    let rerun = visit.sent("do") == Some("rerun");
    let back = visit.sent("back").map_or("/runs", safe_place).to_owned();
    let mut tally = Tally::default();
    for id in &picked {
        match one(&visit, id, rerun).await {
            // The reason is that of all, so nothing was done yet.
            Err(problem) if Refusal::of(Some(&problem), &["reason"]).at("reason").is_some() => {
                return page(&visit, picked, rerun, back, Some(&problem)).await;
            }
            outcome => tally.add(&outcome),
        }
    }
    let flash = Some(Flash { good: tally.refused.is_none(), text: tally.told() });
    Ok(Reply::of(Content::Go { to: back, flash }))
}

/// Cancels or reruns a run, and returns the outcome in words.
async fn one(visit: &Visit, id: &str, rerun: bool) -> Result<&'static str, Problem> {
    let body = Reason::sent(visit);
    let route = if rerun { "/runs/{runId}/rerun" } else { "/runs/{runId}/cancel" };
    let path = [("runId", id)];
    // The whole form is sent once, so each of its runs is.
    let once = visit.sent("once").map(|once| format!("{once}:{id}"));
    let call = InternalCall { once: once.as_deref(), ..InternalCall::new(Method::POST, route, &path) };
    if rerun {
        let answer: wire::RunNow = visit.ask(call, &body).await?;
        return Ok(match answer.outcome {
            RunNowOutcome::Queued => "waiting for others",
            RunNowOutcome::Skipped => "skipped",
            _ => "started",
        });
    }
    let answer: wire::Canceled = visit.ask(call, &body).await?;
    Ok(if answer.outcome == CancelOutcome::Requested { "asked to stop" } else { "canceled" })
}

/// What became of them, in the order in which it first happened.
#[derive(Default)]
struct Tally {
    outcomes: Vec<(&'static str, usize)>,
    /// The first that was refused, and why.
    refused: Option<String>,
}

impl Tally {
    fn add(&mut self, outcome: &Result<&'static str, Problem>) {
        let word = match outcome {
            Ok(word) => *word,
            Err(problem) if problem.kind == Kind::OverlapSkipped => "skipped, because others are active",
            Err(problem) if problem.members().is_ok_and(|members| members.run_status.is_some()) => "had ended",
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

    fn told(&self) -> String {
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
        let mut tally = Tally::default();
        for outcome in [
            Ok("canceled"),
            Err(Problem::new(Kind::Conflict, "It has ended.").with("runStatus", "failed")),
            Ok("canceled"),
        ] {
            tally.add(&outcome);
        }
        assert_eq!((tally.told().as_str(), tally.refused.is_none()), ("2 canceled, 1 had ended.", true));
        tally.add(&Err(Problem::new(Kind::NotFound, "There is no run `x`.")));
        assert_eq!(tally.told(), "2 canceled, 1 had ended, 1 refused. There is no run `x`.");
        assert!(tally.refused.is_some());
    }
}
