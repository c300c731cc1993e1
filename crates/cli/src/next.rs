//! `everbell next`: the next runs of all jobs.

use std::time::Duration;

use clap::Args;
use everbell_client::{JobQuery, WithJson};
use everbell_wire as wire;
use everbell_wire::job::{JobStatus, Scope};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::connection::{Connection, RefusalContext};
use super::error::{note, warn};
use super::online::{DisplayZone, Format, ZoneArgs, duration};
use super::output::{Cell, Column, Output, Table, printable};
use super::times::{fire_cell, spoken};
use super::words::filled;
use super::{CliError, Exit, OnlineArgs, Session};
use everbell_wire::elapsed::wait;
use everbell_wire::time_input::TimeReader;

/// The most jobs that are asked about for a later time.
const MAX_JOBS: usize = 1_000;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell next
  everbell next --from \"tomorrow 18:00\" --within 12h --label team=data
  everbell next daily-briefing --limit 3 --json";

const COLUMNS: [Column; 5] = [
    Column::new("WHEN"),
    Column::new("LEFT"),
    Column::new("JOB KEY").shrinks(),
    Column::new("TARGET").shrinks().drop_order(1),
    Column::new("NOTE").shrinks().drop_order(2),
];

#[derive(Debug, Args)]
pub(crate) struct NextArgs {
    /// Only these jobs; default: all.
    #[arg(value_name = "JOB")]
    jobs: Vec<String>,
    /// Only runs from this time on, read in the zone of `--tz` or in UTC: RFC 3339, `tomorrow 08:00`, `+3d`.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// Only jobs with this label.
    #[arg(long, value_name = "NAME[=VALUE]", conflicts_with = "jobs")]
    label: Option<String>,
    /// Only runs within this time from now, or from `--from`.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    within: Option<Duration>,
    /// Show at most this many runs.
    #[arg(short = 'n', long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u16).range(1..=500))]
    limit: u16,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

/// A fire to come.
struct Fire {
    at: Timestamp,
    /// Its document in the API.
    document: Value,
    job: usize,
    note: String,
}

pub(crate) fn run(args: &NextArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let shown = args.zone.read()?;
    let mut session = Session::new(&args.online, now, output)?;
    let zone = shown.or_utc();
    let from = args.from.as_ref().map(|text| TimeReader { now, zone: &zone }.read("--from", text)).transpose()?;
    let from = from.filter(|from| *from > now);
    let jobs = jobs(&session.client, args, from)?;
    let begins = from.unwrap_or(now);
    let until = args.within.and_then(|within| begins.checked_add(within).ok()).unwrap_or(Timestamp::MAX);
    let range = Range { from, until, limit: usize::from(args.limit) + 1 };
    let mut fires = fires(&session.client, &jobs, &range, &shown)?;
    let more = fires.len() > usize::from(args.limit);
    fires.truncate(args.limit.into());
    match session.format {
        Some(Format::Json) => {
            let all: Vec<Value> = fires.iter().map(|fire| document(fire, &jobs)).collect();
            session.out.json(&json!({ "items": all, "more": more }))?;
        }
        Some(Format::Jsonl) => fires.iter().try_for_each(|fire| session.out.json(&document(fire, &jobs)))?,
        Some(Format::Name) => {
            fires.iter().try_for_each(|fire| session.out.line(&printable(&jobs[fire.job].job_key)))?;
        }
        Some(Format::Table | Format::Plain) | None => table(&mut session, &fires, &jobs, &shown)?,
    }
    if let Some(within) = args.within.filter(|_| more) {
        let within = wait(within.as_secs() as i64);
        session.advise(&format!("{} shown; raise --limit to see more within {within}", fires.len()))?;
    }
    note_orgs(&mut session, args, &jobs, &fires)?;
    Ok(Exit::Success)
}

/// Notes that only the first run of each job that fires per org is listed.
fn note_orgs(session: &mut Session<'_>, args: &NextArgs, jobs: &[wire::Job], fires: &[Fire]) -> Result<(), CliError> {
    const WHERE: &str = "everbell orgs show ORG";
    if !args.jobs.is_empty() {
        // A job that was named but has few runs here needs an explanation, in a pipe too.
        for job in jobs.iter().filter(|job| is_per_org(job) && !session.quiet) {
            session.out.flush()?;
            note(format!(
                "job {} fires for each org at its own local time; see when: {WHERE}",
                printable(&job.job_key)
            ));
        }
        return Ok(());
    }
    if !session.out.is_for_people() || session.quiet {
        return Ok(());
    }
    match fires.iter().filter(|fire| is_per_org(&jobs[fire.job])).count() {
        0 => Ok(()),
        1 => session.advise(&format!("1 job fires per org; only its first run is shown; see all: {WHERE}")),
        many => {
            session.advise(&format!("{many} jobs fire per org; only the first run of each is shown; see all: {WHERE}"))
        }
    }
}

fn is_per_org(job: &wire::Job) -> bool {
    job.scope == Scope::PerOrg
}

/// The named jobs, or those that fire first. No more jobs than fires are needed.
fn jobs(client: &Connection, args: &NextArgs, from: Option<Timestamp>) -> Result<Vec<wire::Job>, CliError> {
    if args.jobs.is_empty() {
        let (status, sort) = (vec![JobStatus::Active], Some("nextRunAt".to_owned()));
        let pages = client.jobs().list(&JobQuery { status, sort, label: args.label.clone(), ..JobQuery::default() });
        // From a later time on, any job may be the first.
        let most = if from.is_some() { MAX_JOBS } else { usize::from(args.limit) + 1 };
        let list = client.take(pages, most).with_action(|| "list the next runs".to_owned())?;
        if from.is_some() && list.next_cursor.is_some() {
            warn(format!("only {MAX_JOBS} jobs are looked at; choose some with --label"));
        }
        return Ok(list.items);
    }
    let job = |name: &String| {
        let action = || format!("list the next runs of job `{name}`");
        Ok(client.send(client.jobs().get(name)).with_action(action)?.document)
    };
    args.jobs.iter().map(job).collect()
}

/// Which fires are listed.
struct Range {
    /// `None` means from now on.
    from: Option<Timestamp>,
    until: Timestamp,
    limit: usize,
}

fn fires(client: &Connection, jobs: &[wire::Job], range: &Range, shown: &DisplayZone) -> Result<Vec<Fire>, CliError> {
    let Range { from, until, limit } = *range;
    let mut all: Vec<Fire> = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        let Some(first) = job.next_run_at.filter(|at| *at <= until) else { continue };
        // Later jobs cannot come in before what is there already.
        if from.is_none() && all.len() >= limit && all[limit - 1].at <= first {
            continue;
        }
        if let Some(org) = filled(job.next_org_id.as_ref()) {
            if from.is_some_and(|from| first < from) {
                continue;
            }
            let document = json!({ "at": first.to_string(), "orgId": org });
            all.push(Fire { at: first, document, job: number, note: format!("first for org {org}") });
            all.sort_by_key(|fire| (fire.at, fire.job));
            all.truncate(limit);
            continue;
        }
        let call = match from {
            Some(from) => client.jobs().next_from(&job.id, from, limit),
            None => client.jobs().next(&job.id, limit),
        };
        let answer = client.send(call.read_as::<wire::Items<WithJson<wire::Fire>>>())?;
        for WithJson { document: wire::Fire { at, note, .. }, json } in answer.document.items {
            if at > until {
                continue;
            }
            let moved = job.rescheduled_from.filter(|_| at == first);
            let moved = moved.map(|from| format!("moved from {}", spoken(from, &shown.zone(job))));
            let note = note.filter(|note| !note.is_empty()).or(moved).unwrap_or_default();
            all.push(Fire { at, document: json, job: number, note });
        }
        all.sort_by_key(|fire| (fire.at, fire.job));
        all.truncate(limit);
    }
    Ok(all)
}

/// The document of a fire, with its job.
fn document(fire: &Fire, jobs: &[wire::Job]) -> Value {
    let (mut document, job) = (fire.document.clone(), &jobs[fire.job]);
    document["jobKey"] = json!(job.job_key);
    document["target"] = json!(job.target);
    document
}

fn table(session: &mut Session<'_>, fires: &[Fire], jobs: &[wire::Job], shown: &DisplayZone) -> Result<(), CliError> {
    if fires.is_empty() {
        // Jobs that fire per org have a note of their own.
        return if !jobs.is_empty() && jobs.iter().all(is_per_org) {
            Ok(())
        } else {
            session.advise("no run is scheduled")
        };
    }
    let mut table = Table::new(&COLUMNS, session.out.symbols);
    for fire in fires {
        let job = &jobs[fire.job];
        table.row(vec![
            fire_cell(Some(fire.at), &shown.zone(job)),
            Cell::text(&wait(fire.at.duration_since(session.now).as_secs().max(0))),
            Cell::text(&job.job_key),
            Cell::text(&job.target),
            if fire.note.is_empty() { Cell::both("", "") } else { Cell::text(&fire.note) },
        ]);
    }
    session.out.list(&table)?;
    Ok(())
}
