//! Every page that is looked at.

use jiff::SignedDuration;

use super::Amount;
use super::visitor::Visitor;
use crate::engine::Outcome;

/// A page, and how to get there.
pub(super) struct BenchPage {
    pub(super) name: String,
    path: String,
    /// The body of a form.
    body: Option<String>,
}

impl BenchPage {
    fn at(name: &str, path: impl Into<String>) -> BenchPage {
        BenchPage { name: name.to_owned(), path: path.into(), body: None }
    }

    /// The page as it is sent.
    pub(super) fn visit(&self, visitor: &Visitor<'_>) -> Outcome<String> {
        match &self.body {
            None => visitor.page(&self.path),
            Some(body) => visitor.send(&self.path, body),
        }
    }
}

pub(super) fn all(visitor: &Visitor<'_>, amount: Amount) -> Outcome<Vec<BenchPage>> {
    let mut pages = vec![BenchPage::at("overview", "/")];
    pages.extend(jobs(visitor)?);
    pages.extend(runs(visitor, amount)?);
    pages.extend(others(visitor)?);
    Ok(pages)
}

fn jobs(visitor: &Visitor<'_>) -> Outcome<Vec<BenchPage>> {
    let queries = [
        ("jobs", ""),
        ("jobs by key", "sort=jobKey"),
        ("jobs by creation", "sort=-createdAt"),
        ("jobs by target", "sort=target"),
        ("jobs by last run", "sort=-lastRunAt"),
        ("jobs, failing", "failing=true"),
        ("jobs, paused", "status=paused"),
        ("jobs, retired", "status=retired"),
        ("jobs, errored", "errored=true"),
        ("jobs without a next fire", "scheduled=false"),
        ("jobs of a target", "target=target-3"),
        ("jobs with a label", "label=team%3D3"),
        ("jobs with a text", "q=number+77"),
        ("jobs with a text that none has", "q=nowhere"),
        ("jobs whose last run succeeded", "lastRunStatus=succeeded"),
        ("jobs whose last run failed", "lastRunStatus=failed"),
        ("jobs whose last run was canceled, by key", "lastRunStatus=canceled&sort=jobKey"),
        ("jobs whose last run was skipped, by last run", "lastRunStatus=skipped&sort=-lastRunAt"),
        ("jobs, 200 on a page", "limit=200"),
    ];
    let mut pages: Vec<BenchPage> =
        queries.map(|(name, query)| BenchPage::at(name, format!("/jobs?{query}"))).into_iter().collect();
    pages.push(BenchPage::at("jobs, page 2", second(&visitor.page("/jobs")?, "/jobs?")?));
    let by_last_run = visitor.page("/jobs?sort=-lastRunAt")?;
    pages.push(BenchPage::at("jobs by last run, page 2", second(&by_last_run, "/jobs?")?));
    Ok(pages)
}

fn runs(visitor: &Visitor<'_>, amount: Amount) -> Outcome<Vec<BenchPage>> {
    let ago = |hours| (amount.end - SignedDuration::from_hours(hours)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let (day, week) = (format!("from={}", ago(24)), format!("from={}&to={}", ago(21 * 24), ago(14 * 24)));
    let queries = [
        ("runs", ""),
        ("runs, pending", "status=pending"),
        ("runs, running", "status=running"),
        ("runs, succeeded", "status=succeeded"),
        ("runs, failed", "status=failed"),
        ("runs, canceled", "status=canceled"),
        ("runs, skipped", "status=skipped"),
        ("runs, failed or skipped", "status=failed&status=skipped"),
        ("runs by schedule", "triggerType=scheduled"),
        ("runs by hand", "triggerType=manual"),
        ("runs of no job", "triggerType=ad_hoc"),
        ("runs of an instance", "instanceId=00000000-0000-0000-0000-000000000002"),
        ("runs of an unknown instance", "instanceId=00000000-0000-0000-0000-0000000000ff"),
        ("runs with a code", "failureCode=timeout"),
        ("runs with a code that none has", "failureCode=nothing"),
        ("runs of a target", "target=target-3"),
        ("runs of an unknown target", "target=nothing"),
        ("runs of a busy job", "jobKey=job-00002"),
        ("runs of a busy job, failed", "jobKey=job-00002&status=failed"),
        ("runs of a busy job, canceled", "jobKey=job-00002&status=canceled"),
        ("runs of a quiet job", "jobKey=job-05000"),
        ("runs of 24 hours", day.as_str()),
        ("runs of a week long ago", week.as_str()),
        ("runs, 200 on a page", "limit=200"),
    ];
    let mut pages: Vec<BenchPage> =
        queries.iter().map(|(name, query)| BenchPage::at(name, format!("/runs?{query}"))).collect();
    let first = visitor.page("/runs?status=succeeded")?;
    pages.push(BenchPage::at("runs, page 2", second(&visitor.page("/runs")?, "/runs?")?));
    pages.push(BenchPage::at("runs, succeeded, page 2", second(&first, "/runs?")?));
    let of_target = visitor.page("/runs?target=target-3")?;
    pages.push(BenchPage::at("runs of a target, page 2", second(&of_target, "/runs?")?));
    pages.push(BenchPage::at("a run", format!("/runs/{}", first_run(&first)?)));
    let failed = visitor.page("/runs?status=failed")?;
    pages.push(BenchPage::at("a failed run", format!("/runs/{}", first_run(&failed)?)));
    pages.push(BenchPage::at(
        "a run that goes on",
        format!("/runs/{}", first_run(&visitor.page("/runs?status=running")?)?),
    ));
    Ok(pages)
}

fn others(visitor: &Visitor<'_>) -> Outcome<Vec<BenchPage>> {
    let mut pages: Vec<BenchPage> = [
        ("a busy job", "/jobs/job-00002"),
        ("a quiet job", "/jobs/job-05000"),
        ("pause a busy job", "/jobs/job-00002/pause"),
        ("run a busy job now", "/jobs/job-00002/run-now"),
        ("retire a busy job", "/jobs/job-00002/retire"),
        ("a new version", "/jobs/job-00002/new-version"),
        ("pause all of a target", "/bulk/pause?all=true&target=target-3"),
        ("timeline of 1 hour", "/timeline?range=1h"),
        ("timeline of 6 hours", "/timeline?range=6h"),
        ("timeline of 24 hours", "/timeline?range=24h"),
        ("timeline of 7 days", "/timeline?range=7d"),
        ("timeline of 7 days, busy jobs", "/timeline?range=7d&q=job-0000"),
        ("cluster", "/cluster"),
        ("targets", "/targets"),
        ("audit trail", "/audit"),
        ("audit trail of a job", "/audit?object=job%3A7"),
        ("settings", "/settings"),
        ("new job", "/new"),
        ("import", "/import"),
    ]
    .map(|(name, path)| BenchPage::at(name, path))
    .into_iter()
    .collect();
    let csrf = between(&visitor.page("/import")?, "name=\"csrf\" value=\"", "\"")?.to_owned();
    let line = |number| format!("{number}+3+*+*+*+%2Fbin%2Fwork+{number}");
    let lines = (0..50).map(line).collect::<Vec<_>>().join("%0A");
    let body = Some(format!("csrf={csrf}&once=bench&zone=UTC&target=target-1&reads=yes&text={lines}"));
    pages.push(BenchPage { body, ..BenchPage::at("import of 50 lines", "/import") });
    Ok(pages)
}

/// Returns the address of the second page of a list.
fn second(page: &str, begin: &str) -> Outcome<String> {
    let links = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let next = links.filter(|link| link.starts_with(begin)).find(|link| link.contains("cursor="));
    Ok(next.ok_or("there is no second page")?.replace("&#38;", "&").replace("&amp;", "&"))
}

fn first_run(page: &str) -> Outcome<&str> {
    let ids = page.split("href=\"/runs/").skip(1).filter_map(|rest| rest.split(['"', '/', '?']).next());
    ids.into_iter().find(|id| id.len() == 36).ok_or_else(|| "there is no run".into())
}

fn between<'p>(page: &'p str, begin: &str, end: &str) -> Outcome<&'p str> {
    let found = page.split_once(begin).and_then(|(_, rest)| rest.split_once(end));
    found.map(|(part, _)| part).ok_or_else(|| format!("there is no {begin}").into())
}
