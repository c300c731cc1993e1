//! `everbell next`: the next runs of all jobs.

use std::time::Duration;

use clap::Args;
use everbell_client::{NextQuery, WithJson};
use everbell_core::Zone;
use everbell_wire as wire;
use everbell_wire::job::Scope;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::connection::Connection;
use super::error::{RefusalContext, note, warn};
use super::online::{DisplayZone, Format, HasZone, ZoneArgs, duration};
use super::output::{Cell, Column, Output, Table, printable};
use super::times::{fire_cell, spoken};
use super::words::filled;
use super::{CliError, Exit, OnlineArgs, Session};
use everbell_wire::elapsed::wait;
use everbell_wire::time_input::TimeReader;

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
    job_key: String,
    target: String,
    zone: Zone,
    note: String,
}

/// Fires to come, and whether there are more.
struct NextList {
    fires: Vec<Fire>,
    more: bool,
    /// The named jobs that fire for each org.
    per_org: Vec<String>,
}

impl HasZone for wire::NextFire {
    fn zone_name(&self) -> Option<&str> {
        self.local.rsplit_once('[').map(|(_, zone)| zone.trim_end_matches(']'))
    }
}

pub(crate) fn run(args: &NextArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let shown = args.zone.read()?;
    let mut session = Session::new(&args.online, now, output)?;
    let zone = shown.or_utc();
    let from = args.from.as_ref().map(|text| TimeReader { now, zone: &zone }.read("--from", text)).transpose()?;
    let from = from.filter(|from| *from > now);
    let until = args.within.and_then(|within| from.unwrap_or(now).checked_add(within).ok());
    let range = Range { from, until, limit: usize::from(args.limit) };
    let list = if args.jobs.is_empty() {
        of_all(&session.client, args, &range, &shown)?
    } else {
        of_named(&session.client, &args.jobs, &range, &shown)?
    };
    match session.format {
        Some(Format::Json) => {
            let all: Vec<&Value> = list.fires.iter().map(|fire| &fire.document).collect();
            session.out.json(&json!({ "items": all, "more": list.more }))?;
        }
        Some(Format::Jsonl) => list.fires.iter().try_for_each(|fire| session.out.json(&fire.document))?,
        Some(Format::Name) => list.fires.iter().try_for_each(|fire| session.out.line(&printable(&fire.job_key)))?,
        Some(Format::Table | Format::Plain) | None => table(&mut session, &list)?,
    }
    let says_more = session.format == Some(Format::Json);
    if let Some(within) = args.within.filter(|_| list.more && !session.quiet && !says_more) {
        // In a pipe too: a list that is cut looks like a whole one.
        session.out.flush()?;
        let within = wait(within.as_secs() as i64);
        note(format!("{} shown; raise --limit to see more within {within}", list.fires.len()));
    }
    note_orgs(&mut session, &list)?;
    Ok(Exit::Success)
}

/// Notes where the times of one org are.
fn note_orgs(session: &mut Session<'_>, list: &NextList) -> Result<(), CliError> {
    // A job that was named but has few runs here needs an explanation, in a pipe too.
    for key in list.per_org.iter().filter(|_| !session.quiet) {
        session.out.flush()?;
        let key = printable(key);
        note(format!("job {key} fires for each org at its own local time; see when: everbell orgs show ORG"));
    }
    Ok(())
}

/// The range of fires to list.
struct Range {
    /// `None` means from now on.
    from: Option<Timestamp>,
    until: Option<Timestamp>,
    limit: usize,
}

/// The fires of all jobs.
fn of_all(client: &Connection, args: &NextArgs, range: &Range, shown: &DisplayZone) -> Result<NextList, CliError> {
    let query = NextQuery {
        from: range.from,
        to: range.until,
        label: args.label.clone(),
        limit: u32::try_from(range.limit).ok(),
    };
    let answer = client.send(client.reports().next(&query)).with_action(|| "list the next runs".to_owned())?;
    // As they came, with members that this build does not know.
    let documents: wire::Items<Value> =
        serde_json::from_str(&answer.text).map_err(|error| CliError::invalid(format!("the answer: {error}")))?;
    let wire::NextFires { items, more, complete } = answer.document;
    if !complete {
        warn("only 10,000 jobs and 10,000 groups of orgs are checked; choose some jobs with --label");
    }
    let fires = items.into_iter().zip(documents.items).map(|(fire, document)| {
        let zone = shown.zone(&fire);
        Fire { at: fire.at, document, note: words(&fire, &zone), job_key: fire.job_key, target: fire.target, zone }
    });
    Ok(NextList { fires: fires.collect(), more, per_org: Vec::new() })
}

/// The note of a fire: its freeze, its orgs, its move and daylight saving.
fn words(fire: &wire::NextFire, zone: &Zone) -> String {
    let orgs = orgs(filled(fire.org_id.as_ref()), fire.orgs, fire.zones, fire.spread_ms);
    let frozen = frozen(fire.frozen.as_deref(), fire.frozen_until, zone);
    let moved = fire.moved_from.map(|from| format!("moved from {}", spoken(from, zone)));
    let note = fire.note.clone().filter(|note| !note.is_empty());
    [frozen, orgs, fire.runs.map(runs), moved, note].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// `3 runs`.
fn runs(count: u64) -> String {
    format!("{count} runs")
}

/// `for 312 orgs in 5 zones, within 10m`. A server of an earlier release says only which org is the first.
fn orgs(first: Option<&str>, orgs: Option<u64>, zones: Option<u64>, spread_ms: Option<u64>) -> Option<String> {
    let many = match (orgs, first) {
        (Some(1) | None, Some(org)) => format!("for org {org}"),
        (Some(1), None) => "for 1 org".to_owned(),
        (Some(orgs), _) => format!("for {orgs} orgs"),
        (None, None) => return None,
    };
    let zones = zones.filter(|zones| *zones > 1).map(|zones| format!(" in {zones} zones"));
    let spread =
        spread_ms.map(|millis| format!(", within {}", wait(i64::try_from(millis / 1_000).unwrap_or(i64::MAX))));
    Some([Some(many), zones, spread].into_iter().flatten().collect())
}

/// `frozen until Mon 2026-11-23 08:00 CET: release weekend`. A server of an earlier release may not say until when.
fn frozen(reason: Option<&str>, until: Option<Timestamp>, zone: &Zone) -> Option<String> {
    let until = until.map(|until| format!(" until {}", spoken(until, zone))).unwrap_or_default();
    reason.map(|reason| format!("frozen{until}: {reason}"))
}

/// The fires of jobs that are named.
fn of_named(client: &Connection, names: &[String], range: &Range, shown: &DisplayZone) -> Result<NextList, CliError> {
    let limit = range.limit + 1;
    let is_early = |at: Timestamp| range.until.is_none_or(|until| at < until);
    let (mut fires, mut per_org) = (Vec::new(), Vec::new());
    for name in names {
        let action = || format!("list the next runs of job `{name}`");
        let job = client.send(client.jobs().get(name)).with_action(action)?.document;
        if job.scope == Scope::PerOrg {
            per_org.push(job.job_key.clone());
        }
        fires.extend(fires_of(client, &job, range, shown)?.into_iter().filter(|fire| is_early(fire.at)));
        fires.sort_by_key(|fire| fire.at);
        fires.truncate(limit);
    }
    let more = fires.len() > range.limit;
    fires.truncate(range.limit);
    Ok(NextList { fires, more, per_org })
}

fn fires_of(client: &Connection, job: &wire::Job, range: &Range, shown: &DisplayZone) -> Result<Vec<Fire>, CliError> {
    let zone = shown.zone(job);
    let fire = |at, mut document: Value, note| {
        document["jobKey"] = json!(job.job_key);
        document["target"] = json!(job.target);
        let (job_key, target, zone) = (job.job_key.clone(), job.target.clone(), zone.clone());
        Fire { at, document, job_key, target, zone, note }
    };
    let Some(first) = job.next_run_at else { return Ok(Vec::new()) };
    let call = match range.from {
        Some(from) => client.jobs().next_from(&job.id, from, range.limit + 1),
        None => client.jobs().next(&job.id, range.limit + 1),
    };
    let answer = client.send(call.read_as::<wire::Items<WithJson<wire::Fire>>>())?;
    let of_item = |WithJson { document, json }: WithJson<wire::Fire>| {
        let wire::Fire {
            at, note, frozen: reason, frozen_until, orgs: count, runs: own, zones, org_id, spread_ms, ..
        } = document;
        let moved = job.rescheduled_from.filter(|_| at == first);
        let moved = moved.map(|from| format!("moved from {}", spoken(from, &zone)));
        let frozen = frozen(reason.as_deref(), frozen_until, &zone);
        let note = note.filter(|note| !note.is_empty()).or(moved);
        let orgs = orgs(filled(org_id.as_ref()), count, zones, spread_ms);
        fire(at, json, [frozen, orgs, own.map(runs), note].into_iter().flatten().collect::<Vec<_>>().join("; "))
    };
    let fires: Vec<Fire> = answer.document.items.into_iter().map(of_item).collect();
    // A server of an earlier release knows only the first org.
    let only =
        filled(job.next_org_id.as_ref()).filter(|_| fires.is_empty() && range.from.is_none_or(|from| first >= from));
    let only = only.map(|org| {
        let document = json!({ "at": first.to_string(), "orgId": org });
        fire(first, document, format!("first for org {org}"))
    });
    Ok(fires.into_iter().chain(only).collect())
}

fn table(session: &mut Session<'_>, list: &NextList) -> Result<(), CliError> {
    if list.fires.is_empty() {
        // Jobs that fire per org have a note of their own.
        return if list.per_org.is_empty() { session.advise("no run is scheduled") } else { Ok(()) };
    }
    let mut table = Table::new(&COLUMNS, session.out.symbols);
    for fire in &list.fires {
        table.row(vec![
            fire_cell(Some(fire.at), &fire.zone),
            Cell::text(&wait(fire.at.duration_since(session.now).as_secs().max(0))),
            Cell::text(&fire.job_key),
            Cell::text(&fire.target),
            if fire.note.is_empty() { Cell::both("", "") } else { Cell::text(&fire.note) },
        ]);
    }
    session.out.list(&table)?;
    Ok(())
}
