//! Messages about many problems at once: how many, of what, and why.

use std::collections::{BTreeMap, BTreeSet};

use everbell_core::alert::{Change, Kind, Problem, Summary};
use everbell_core::{Json, storable_text};
use serde_json::json;

use super::message::{Links, document, name, stored};

/// How many causes a message names, and how many jobs of each.
const MAX_CAUSES: usize = 10;
const MAX_NAMES: usize = 10;
/// How many problems it has for programs.
const MAX_PROBLEMS: usize = 100;
/// How much of a reason.
const MAX_REASON_BYTES: usize = 300;

/// Returns the message of a summary.
pub(super) fn compose_summary(summary: &Summary, links: &Links) -> Json {
    let problems: Vec<&Problem> = summary.notices.iter().map(|notice| &notice.problem).collect();
    let causes = causes(&problems);
    let title = title(summary.change, &problems, causes.len());
    let mut paragraphs: Vec<String> = causes.iter().take(MAX_CAUSES).map(|cause| line(cause)).collect();
    if causes.len() > MAX_CAUSES {
        paragraphs.push(format!("And {} other causes", causes.len() - MAX_CAUSES));
    }
    paragraphs.push("Details: everbell problems".to_owned());
    let rules: BTreeSet<&str> = summary.notices.iter().map(|notice| notice.rule.as_str()).collect();
    let shown = problems.iter().take(MAX_PROBLEMS);
    stored(&json!({
        "change": summary.change.as_str(),
        "title": title,
        "text": paragraphs.join("\n"),
        "url": links.page("/problems", ""),
        "command": "everbell problems",
        "rule": rules.into_iter().collect::<Vec<_>>().join("; "),
        "problem": null,
        "count": problems.len(),
        "problems": shown.map(|problem| document(problem, &reason(problem))).collect::<Vec<_>>(),
    }))
}

fn reason(problem: &Problem) -> String {
    storable_text(problem.reason.trim(), MAX_REASON_BYTES)
}

/// Problems of one kind whose reasons differ in numbers only, most problems first.
fn causes<'p>(problems: &[&'p Problem]) -> Vec<Vec<&'p Problem>> {
    let mut causes: BTreeMap<(Kind, String), Vec<&Problem>> = BTreeMap::new();
    for problem in problems {
        let cause: String = problem.reason.chars().filter(|c| !c.is_ascii_digit()).collect();
        causes.entry((problem.kind, cause)).or_default().push(problem);
    }
    let mut causes: Vec<_> = causes.into_values().collect();
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.len()));
    causes
}

/// `9 × exit_code: ended with code 1: a, b and 7 more`
fn line(cause: &[&Problem]) -> String {
    let names: Vec<String> = cause.iter().take(MAX_NAMES).map(|problem| name(problem)).collect();
    let more = cause.len().saturating_sub(MAX_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let first = cause.first().map(|problem| reason(problem)).unwrap_or_default();
    format!("{} × {first}: {}{more}", cause.len(), names.join(", "))
}

/// `14 jobs are failing since 2026-11-15T06:00:00Z, same cause`
fn title(change: Change, problems: &[&Problem], causes: usize) -> String {
    let kinds: BTreeSet<Kind> = problems.iter().map(|problem| problem.kind).collect();
    let subjects = problems.iter().map(|problem| &problem.subject).collect::<BTreeSet<_>>().len();
    let about_jobs = kinds.iter().filter(|kind| kind.is_about_jobs()).count();
    let nouns = match about_jobs {
        0 => "instances",
        all if all == kinds.len() => "jobs",
        _ => "jobs and instances",
    };
    if change == Change::Recovered {
        return format!("{subjects} {nouns} have recovered");
    }
    let since = problems.iter().map(|problem| problem.since).min();
    let since = since.map_or_else(String::new, |since| format!(" since {since:.0}"));
    let still = if change == Change::Reminded { "still " } else { "" };
    let same = if causes == 1 { ", same cause" } else { "" };
    match kinds.first().filter(|_| kinds.len() == 1) {
        Some(kind) => format!("{subjects} {nouns} {still}{}{since}{same}", plural(*kind)),
        None => format!("{} problems of {subjects} {nouns} {still}open{since}", problems.len()),
    }
}

fn plural(kind: Kind) -> &'static str {
    match kind {
        Kind::Failed => "are failing",
        Kind::NoSuccess => "have not succeeded in time",
        Kind::JobError => "cannot fire",
        Kind::AutoPaused => "were paused automatically",
        Kind::Missed => "missed their schedule",
        Kind::Skipped => "skipped slots",
        Kind::LateStart => "have not started in time",
        Kind::TooLong => "take too long",
        Kind::InstanceLost => "are lost",
    }
}

#[cfg(test)]
mod tests {
    use everbell_core::JobKey;
    use everbell_core::alert::{Notice, Subject};
    use jiff::Timestamp;
    use serde_json::Value;
    use uuid::Uuid;

    use super::*;

    fn problem(number: u128, kind: Kind, reason: &str) -> Problem {
        let at: Timestamp = "2026-11-15T06:00:00Z".parse().unwrap();
        Problem {
            id: Uuid::from_u128(number),
            kind,
            subject: Subject::Job(JobKey::new(&format!("job-{number}")).unwrap()),
            opened_at: at,
            closed_at: None,
            closed_because: None,
            since: at,
            mark_at: at,
            count: 1,
            reason: reason.to_owned(),
            run: None,
            told: Vec::new(),
            acknowledged: None,
            muted: None,
        }
    }

    fn composed(change: Change, problems: Vec<Problem>) -> Value {
        let available_at = problems[0].opened_at;
        let notice = |problem: Problem| Notice {
            id: problem.id,
            problem,
            rule: "all".to_owned(),
            channel: "ops".to_owned(),
            change,
            available_at,
        };
        let notices = problems.into_iter().map(notice).collect();
        let summary = Summary { id: Uuid::nil(), channel: "ops".to_owned(), change, available_at, notices };
        let links = Links { public_url: Some("https://bell.example".to_owned()) };
        serde_json::from_str(compose_summary(&summary, &links).as_str()).unwrap()
    }

    #[test]
    fn a_summary_says_how_many_of_what_and_why() {
        let many = (1..=14).map(|number| problem(number, Kind::Failed, &format!("connect: port {number} refused")));
        let message = composed(Change::Opened, many.collect());
        assert_eq!(message["title"], "14 jobs are failing since 2026-11-15T06:00:00Z, same cause");
        let text = message["text"].as_str().unwrap();
        assert!(text.starts_with("14 × connect: port 1 refused: job-1, job-2, "), "{text}");
        assert!(text.contains("job-10 and 4 more\n"), "{text}");
        assert_eq!((&message["url"], &message["count"]), (&json!("https://bell.example/problems"), &json!(14)));
        assert_eq!(message["problems"][13]["jobKey"], "job-14");
    }

    #[test]
    fn problems_of_several_kinds_are_counted_and_grouped() {
        let mut many: Vec<Problem> = (1..=3).map(|number| problem(number, Kind::Failed, "exit: code 1")).collect();
        many.push(problem(1, Kind::NoSuccess, "the last success was long ago"));
        let message = composed(Change::Opened, many.clone());
        assert_eq!(message["title"], "4 problems of 3 jobs open since 2026-11-15T06:00:00Z");
        assert_eq!(message["text"].as_str().unwrap().lines().count(), 3);
        assert_eq!(composed(Change::Recovered, many)["title"], "3 jobs have recovered");
    }
}
