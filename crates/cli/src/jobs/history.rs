//! The history of the slots of a job: `everbell jobs explain`, `everbell jobs gaps` and `everbell jobs stats`.

use std::time::Duration;

use clap::Args;
use everbell_client::GapQuery;
use everbell_core::Zone;
use everbell_wire as wire;
use everbell_wire::gap::ExplanationOutcome;
use jiff::Timestamp;

use super::actions::{get_job, parse_time, zone_for};
use crate::error::RefusalContext;
use crate::gaps::{self, GapFilterArgs, Shown};
use crate::online::{ZoneArgs, duration};
use crate::output::{Mark, Output, aligned, counted, printable};
use crate::times::{away, exact, spoken};
use crate::words::filled;
use crate::{CliError, Exit, OnlineArgs, Session};
use everbell_wire::elapsed::took;
use everbell_wire::shell;
use everbell_wire::time_input::TimeReader;

pub(super) const EXPLAIN_EXAMPLES: &str = "\
Examples:
  everbell jobs explain daily-briefing \"2026-11-16 08:00\"
  everbell jobs explain daily-briefing 2026-11-16T07:00:00Z --tz UTC
  everbell jobs explain daily-briefing \"today 08:00\" --json";

pub(super) const GAPS_EXAMPLES: &str = "\
Examples:
  everbell jobs gaps daily-briefing
  everbell jobs gaps daily-briefing --reason missed --from -7d
  everbell jobs gaps daily-briefing -o jsonl";

pub(super) const STATS_EXAMPLES: &str = "\
Examples:
  everbell jobs stats daily-briefing
  everbell jobs stats daily-briefing --window 7d
  everbell jobs stats daily-briefing --json";

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB")]
    job: String,
    /// The time to explain: RFC 3339, `2027-03-13 09:00`, `-2h`, `today 08:00`.
    #[arg(value_name = "TIME", allow_hyphen_values = true)]
    at: String,
    /// The org, for a job that fires per org.
    #[arg(long, value_name = "ORG")]
    org: Option<String>,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct GapsArgs {
    /// The job: its key, its key and version as in `daily-briefing@2`, or its id.
    #[arg(value_name = "JOB")]
    job: String,
    #[command(flatten)]
    filter: GapFilterArgs,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// The job: its key, its key and version as in `daily-briefing@2`, or its id.
    #[arg(value_name = "JOB")]
    job: String,
    /// How far to look back; default: 30 days.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    window: Option<Duration>,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

/// Shows the run or the gap of a time, or why there is neither.
pub(super) fn explain(args: &ExplainArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let shown = args.zone.read()?;
    let mut session = Session::new(&args.online, now, output)?;
    let own = zone_for(&session, &args.job, args.org.as_deref())?;
    let at = parse_time(&own, now, "TIME", &args.at)?;
    let answer = session.client.send(session.client.jobs().explain(&args.job, at, args.org.as_deref()));
    let answer = answer.with_action(|| format!("explain a time of job `{}`", args.job)).or_list()?;
    let Some(explanation) = session.for_people(answer, |explanation| explanation.outcome.as_str())? else {
        return Ok(Exit::Success);
    };
    let zone = if args.zone.tz.is_some() { shown.or_utc() } else { own };
    let rows = explanation_rows(&explanation, &zone, &session);
    if !session.out.is_for_people() {
        session.out.table(&rows, &[2])?;
        return Ok(Exit::Success);
    }
    let mark = match (&explanation.run, &explanation.outcome) {
        (Some(run), _) => Mark::from_status(run.status.as_str()),
        (None, ExplanationOutcome::Gap) => Mark::Skipped,
        (None, ExplanationOutcome::Ahead) => Mark::Waiting,
        (None, _) => Mark::Ended,
    };
    session.done(mark, &printable(explanation.detail.trim_end_matches('.')))?;
    for line in aligned(&rows, &[2]) {
        session.detail(&line)?;
    }
    let job = shell(&args.job);
    session.advise(&match (&explanation.run, &explanation.outcome) {
        (Some(run), _) => format!("next: everbell runs show {}", run.id),
        (None, ExplanationOutcome::Gap) => {
            format!("run it now: everbell jobs backfill {job} --from {at} --to {at}")
        }
        _ => format!("next: everbell runs list --job {job}"),
    })?;
    Ok(Exit::Success)
}

/// The rows below the sentence of an explanation.
fn explanation_rows(explanation: &wire::Explanation, zone: &Zone, session: &Session<'_>) -> Vec<Vec<String>> {
    let for_people = session.out.is_for_people();
    let clock = |at: Timestamp| if for_people { spoken(at, zone) } else { exact(at, zone) };
    let mut rows: Vec<(&str, String)> = Vec::new();
    if !for_people {
        rows.push(("outcome", explanation.outcome.to_string()));
        rows.push(("detail", explanation.detail.clone()));
    }
    rows.push(("time", clock(explanation.at)));
    if let Some(run) = &explanation.run {
        rows.push(("run", run.id.clone()));
        rows.push(("status", run.status.to_string()));
        rows.extend(run.started_at.map(|at| ("started", clock(at))));
        rows.extend(run.duration_ms.map(|ms| ("took", took(ms))));
        let why = filled(run.failure_message.as_ref()).or(filled(run.skip_detail.as_ref()));
        rows.extend(why.map(|why| ("why", why.to_owned())));
    }
    if let Some(gap) = &explanation.gap {
        rows.push(("reason", gap.reason.to_string()));
        rows.push(("slots", gap.slots.to_string()));
        rows.push(("first slot", clock(gap.first_slot_at)));
        rows.push(("last slot", clock(gap.last_slot_at)));
        rows.extend(filled(gap.actor.as_ref()).map(|actor| ("by", actor.to_owned())));
    }
    rows.extend(explanation.previous_slot_at.map(|at| ("slot before", clock(at))));
    rows.extend(explanation.next_slot_at.map(|at| ("slot after", clock(at))));
    rows.into_iter().map(|(name, value)| vec![name.to_owned(), printable(&value)]).collect()
}

/// Lists slots that got no run, and why.
pub(super) fn gaps(args: &GapsArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let shown = args.zone.read()?;
    let mut session = Session::new(&args.online, now, output)?;
    let job = get_job(&session, &args.job)?;
    let zone = shown.zone(&job);
    let query = args.filter.query(&TimeReader { now, zone: &zone })?;
    let list = session.client.take(session.client.jobs().gaps(&args.job, &query), args.filter.limit as usize);
    let list = list.with_action(|| format!("list the gaps of job `{}`", args.job)).or_list()?;
    let is_filtered = query != GapQuery::default();
    let next = format!("run them now: everbell jobs backfill {} --from TIME --to TIME", shell(&args.job));
    gaps::print(&mut session, &list, &Shown { names_jobs: false, is_filtered, zone: &zone, next: &next })
}

pub(super) fn stats(args: &StatsArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let shown = args.zone.read()?;
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.send(session.client.jobs().stats(&args.job, args.window));
    let answer = answer.with_action(|| format!("show the statistics of job `{}`", args.job)).or_list()?;
    let Some(stats) = session.for_people(answer, |_| "")? else { return Ok(Exit::Success) };
    let zone = if args.zone.tz.is_some() { shown.or_utc() } else { shown.zone(&get_job(&session, &args.job)?) };
    let rows = counts(&stats, &zone, &session);
    if !session.out.is_for_people() {
        session.out.table(&rows, &[2])?;
        return Ok(Exit::Success);
    }
    session.out.line(&format!("{} of {}", counted_runs(&stats), printable(&args.job)))?;
    for line in aligned(&rows, &[2]) {
        session.out.line(&format!("  {line}"))?;
    }
    session.advise(&format!("next: everbell runs list --job {}", shell(&args.job)))?;
    Ok(Exit::Success)
}

/// `the newest 1000 runs` if there are more; the counters of an upgraded database may not go back far enough yet.
fn counted_runs(stats: &wire::Stats) -> String {
    let runs = counted(stats.runs as usize, "run");
    if stats.complete { runs } else { format!("the newest {runs}") }
}

fn counts(stats: &wire::Stats, zone: &Zone, session: &Session<'_>) -> Vec<Vec<String>> {
    let for_people = session.out.is_for_people();
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut put = |name: &str, value: String| rows.push((name.to_owned(), value));
    let since = || format!("{} ({})", spoken(stats.from, zone), away(stats.from, session.now));
    put("since", if for_people { since() } else { exact(stats.from, zone) });
    if !for_people {
        put("runs", stats.runs.to_string());
        put("complete", stats.complete.to_string());
    }
    stats.by_status.iter().for_each(|(status, count)| put(status, count.to_string()));
    stats.by_failure_code.iter().for_each(|(code, count)| put(&format!("failed: {code}"), count.to_string()));
    if let Some(rate) = stats.success_rate {
        put("success rate", format!("{:.1}%", rate * 100.0));
    }
    for (name, quantiles) in [
        ("took", [stats.duration_ms_p50, stats.duration_ms_p95, stats.duration_ms_max]),
        ("started late by", [stats.lag_ms_p50, stats.lag_ms_p95, stats.lag_ms_max]),
    ] {
        let [Some(half), Some(most), Some(longest)] = quantiles else { continue };
        let words = format!("{} (p50), {} (p95), {} (max)", took(half), took(most), took(longest));
        let exact = format!("{half}ms\t{most}ms\t{longest}ms");
        put(name, if for_people { words } else { exact });
    }
    rows.into_iter().map(|(name, value)| vec![printable(&name), value]).collect()
}
