//! What became of the slots of a job: `everbell jobs explain`, `everbell jobs gaps` and `everbell jobs stats`.

use std::time::Duration;

use clap::Args;
use everbell_core::Zone;
use jiff::Timestamp;
use serde_json::Value;

use super::act::{known_job, moment_in, zone_for};
use crate::cli::client::{Asked, Parameter, job_path};
use crate::cli::document::{flag, number, some_text, text, time};
use crate::cli::online::{ZoneArgs, duration};
use crate::cli::output::{Cell, Column, Mark, Output, Table, aligned, counted, printable};
use crate::cli::times::{away, exact, fire_cell, spoken};
use crate::cli::words::{joined, shell};
use crate::cli::{CliError, Exit, OnlineArgs, Session};
use crate::elapsed::took;
use crate::form::iso;

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

const GAP_COLUMNS: [Column; 6] = [
    Column::new("FIRST SLOT"),
    Column::new("LAST SLOT"),
    Column::new("SLOTS").right(),
    Column::new("REASON"),
    Column::new("ORG").shrinks().goes(2),
    Column::new("BY").shrinks().goes(1),
];

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB")]
    job: String,
    /// The time in question: RFC 3339, `2027-03-13 09:00`, `-2h`, `today 08:00`.
    #[arg(value_name = "TIME", allow_hyphen_values = true)]
    at: String,
    /// For this org, of a job that fires for each.
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
    /// Only gaps for this reason.
    #[arg(long, value_name = "REASON", value_parser = ["missed", "coalesced", "paused", "dst_gap", "expired", "errored"])]
    reason: Option<String>,
    /// Only gaps of this org.
    #[arg(long, value_name = "ORG")]
    org: Option<String>,
    /// Only gaps that end at or after this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// Only gaps that begin before this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<String>,
    /// Show this many at the most.
    #[arg(short = 'n', long, value_name = "N", default_value = "30", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
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
    /// Look back so far; 30 days if absent.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    window: Option<Duration>,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

/// What became of a time: a run, a gap, or why neither.
pub(super) fn explain(args: &ExplainArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let shown = args.zone.read()?;
    let mut session = Session::new(&args.online, now, output)?;
    let own = zone_for(&session, &args.job, args.org.as_deref())?;
    let at = moment_in(&own, now, "TIME", &args.at)?;
    let mut query = vec![("at", at.to_string())];
    query.extend(args.org.iter().map(|org| ("orgId", org.clone())));
    let answer = session.client.get(&format!("{}/explain", job_path(&args.job)), &query);
    let answer = answer.asked(|| format!("explain a time of job `{}`", args.job)).or_list()?;
    let Some(told) = session.for_people(&answer, "outcome")? else { return Ok(Exit::Success) };
    let zone = if args.zone.tz.is_some() { shown.or_utc() } else { own };
    let rows = explained(&told, &zone, &session);
    if !session.out.is_for_people() {
        session.out.table(&rows, &[2])?;
        return Ok(Exit::Success);
    }
    let run = told.get("run").filter(|run| run.is_object());
    let mark = match (run, text(&told, "outcome")) {
        (Some(run), _) => Mark::of_status(text(run, "status")),
        (None, "gap") => Mark::Skipped,
        (None, "ahead") => Mark::Waiting,
        (None, _) => Mark::Ended,
    };
    session.done(mark, &printable(text(&told, "detail").trim_end_matches('.')))?;
    for line in aligned(&rows, &[2]) {
        session.detail(&line)?;
    }
    let job = shell(&args.job);
    session.advise(&match (run, text(&told, "outcome")) {
        (Some(run), _) => format!("next: everbell runs show {}", text(run, "id")),
        (None, "gap") => format!("run it after all: everbell jobs backfill {job} --from {at} --to {at}"),
        _ => format!("next: everbell runs list --job {job}"),
    })?;
    Ok(Exit::Success)
}

/// Everything that an explanation says besides its sentence.
fn explained(told: &Value, zone: &Zone, session: &Session<'_>) -> Vec<Vec<String>> {
    let for_people = session.out.is_for_people();
    let clock = |at: Timestamp| if for_people { spoken(at, zone) } else { exact(at, zone) };
    let mut rows: Vec<(&str, String)> = Vec::new();
    if !for_people {
        rows.push(("outcome", text(told, "outcome").to_owned()));
        rows.push(("detail", text(told, "detail").to_owned()));
    }
    rows.extend(time(told, "at").map(|at| ("time", clock(at))));
    if let Some(run) = told.get("run").filter(|run| run.is_object()) {
        rows.push(("run", text(run, "id").to_owned()));
        rows.push(("status", text(run, "status").to_owned()));
        rows.extend(time(run, "startedAt").map(|at| ("started", clock(at))));
        rows.extend(number(run, "durationMs").map(|ms| ("took", took(ms))));
        let why = some_text(run, "failureMessage").or(some_text(run, "skipDetail"));
        rows.extend(why.map(|why| ("why", why.to_owned())));
    }
    if let Some(gap) = told.get("gap").filter(|gap| gap.is_object()) {
        rows.push(("reason", text(gap, "reason").to_owned()));
        rows.push(("slots", number(gap, "slots").unwrap_or_default().to_string()));
        rows.extend(time(gap, "firstSlotAt").map(|at| ("first slot", clock(at))));
        rows.extend(time(gap, "lastSlotAt").map(|at| ("last slot", clock(at))));
        rows.extend(some_text(gap, "actor").map(|actor| ("by", actor.to_owned())));
    }
    rows.extend(time(told, "previousSlotAt").map(|at| ("slot before", clock(at))));
    rows.extend(time(told, "nextSlotAt").map(|at| ("slot after", clock(at))));
    rows.into_iter().map(|(name, value)| vec![name.to_owned(), printable(&value)]).collect()
}

/// Slots that got no run, and why.
pub(super) fn gaps(args: &GapsArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let shown = args.zone.read()?;
    let mut session = Session::new(&args.online, now, output)?;
    let job = known_job(&session, &args.job)?;
    let zone = shown.zone(&job);
    let mut query: Vec<Parameter<'_>> = Vec::new();
    for (name, flag, text) in [("from", "--from", &args.from), ("to", "--to", &args.to)] {
        if let Some(text) = text {
            query.push((name, moment_in(&zone, now, flag, text)?.to_string()));
        }
    }
    let single = [("reason", &args.reason), ("orgId", &args.org)];
    query.extend(single.into_iter().filter_map(|(name, text)| Some((name, text.clone()?))));
    let list = session.client.all(&format!("{}/gaps", job_path(&args.job)), &query, args.limit as usize);
    let list = list.asked(|| format!("list the gaps of job `{}`", args.job)).or_list()?;
    if session.printed(&list, "id")? {
        return Ok(Exit::Success);
    }
    if list.items.is_empty() {
        session.advise(if query.is_empty() { "every slot got a run" } else { "no gap fits" })?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(&GAP_COLUMNS, session.out.symbols);
    let empty_or = |text: &str| if text.is_empty() { Cell::both("-", "") } else { Cell::text(text) };
    for gap in &list.items {
        table.row(vec![
            fire_cell(time(gap, "firstSlotAt"), &zone),
            fire_cell(time(gap, "lastSlotAt"), &zone),
            Cell::text(&number(gap, "slots").unwrap_or_default().to_string()),
            Cell::text(text(gap, "reason")),
            empty_or(text(gap, "orgId")),
            empty_or(text(gap, "actor")),
        ]);
    }
    session.out.list(&table)?;
    let slots: i64 = list.items.iter().filter_map(|gap| number(gap, "slots")).sum();
    let more = if list.next.is_some() { " shown, there are more: raise --limit" } else { "" };
    let count = format!("{} in {}{more}", counted(slots as usize, "slot"), counted(list.items.len(), "gap"));
    let next = format!("run them after all: everbell jobs backfill {} --from TIME --to TIME", shell(&args.job));
    session.advise(&joined(&[&count, &next], session.out.symbols))?;
    Ok(Exit::Success)
}

/// How a job fared lately.
pub(super) fn stats(args: &StatsArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let shown = args.zone.read()?;
    let mut session = Session::new(&args.online, now, output)?;
    let query: Vec<Parameter<'_>> = args.window.iter().map(|window| ("window", iso(*window))).collect();
    let answer = session.client.get(&format!("{}/stats", job_path(&args.job)), &query);
    let answer = answer.asked(|| format!("tell how job `{}` fared", args.job)).or_list()?;
    let Some(stats) = session.for_people(&answer, "runs")? else { return Ok(Exit::Success) };
    let zone = if args.zone.tz.is_some() { shown.or_utc() } else { shown.zone(&known_job(&session, &args.job)?) };
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

/// `1000 runs, the newest`: no more are looked at.
fn counted_runs(stats: &Value) -> String {
    let runs = counted(number(stats, "runs").unwrap_or_default() as usize, "run");
    if flag(stats, "complete") { runs } else { format!("{runs}, the newest") }
}

fn counts(stats: &Value, zone: &Zone, session: &Session<'_>) -> Vec<Vec<String>> {
    let for_people = session.out.is_for_people();
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut put = |name: &str, value: String| rows.push((name.to_owned(), value));
    if let Some(from) = time(stats, "from") {
        let told = || format!("{} ({})", spoken(from, zone), away(from, session.now));
        put("since", if for_people { told() } else { exact(from, zone) });
    }
    if !for_people {
        put("runs", number(stats, "runs").unwrap_or_default().to_string());
        put("complete", flag(stats, "complete").to_string());
    }
    let members = |name: &str| stats.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    members("byStatus").into_iter().for_each(|(status, count)| put(&status, count.to_string()));
    members("byFailureCode").into_iter().for_each(|(code, count)| put(&format!("failed: {code}"), count.to_string()));
    if let Some(rate) = stats.get("successRate").and_then(Value::as_f64) {
        put("succeeded of those that ended", format!("{:.1} %", rate * 100.0));
    }
    for (name, members) in [
        ("took", ["durationMsP50", "durationMsP95", "durationMsMax"]),
        ("began late by", ["lagMsP50", "lagMsP95", "lagMsMax"]),
    ] {
        let [Some(half), Some(most), Some(longest)] = members.map(|member| number(stats, member)) else { continue };
        let told = format!("{} half of them, {} 95 %, {} at most", took(half), took(most), took(longest));
        let exact = format!("{half}ms\t{most}ms\t{longest}ms");
        put(name, if for_people { told } else { exact });
    }
    rows.into_iter().map(|(name, value)| vec![printable(&name), value]).collect()
}
