//! Runs for past slots: `everbell jobs backfill`, `everbell jobs backfills` and `everbell jobs backfill-stop`.

use clap::Args;
use clap::builder::PossibleValuesParser;
use everbell_client::{BackfillQuery, BackfillRequest, Response, WithJson};
use everbell_core::Zone;
use everbell_core::backfill::Rate;
use everbell_wire as wire;
use everbell_wire::backfill::{BackfillOrder, BackfillStatus, SlotAction};
use everbell_wire::run::RunStatus;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::actions::{get_job, parse_time, zone_for};
use crate::confirm::agreed;
use crate::error::RefusalContext;
use crate::online::{Format, ZoneArgs};
use crate::output::{Cell, Column, Mark, Output, Table, counted, printable};
use crate::times::{exact, fire_cell, spoken, stamp_cell, whole_second};
use crate::words::joined;
use crate::{CliError, Exit, OnlineArgs, Session};
use everbell_wire::shell;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell jobs backfill daily-briefing --from 2026-11-02 --to 2026-11-07 --dry-run
  everbell jobs backfill daily-briefing --from -2d --to now --reason \"ETL was down\" --yes
  everbell jobs backfill metrics --from -300d --to now --rate 100/m --order newest --yes";

pub(super) const LIST_EXAMPLES: &str = "\
Examples:
  everbell jobs backfills daily-briefing
  everbell jobs backfills --label team=data
  everbell jobs backfills daily-briefing -o jsonl";

pub(super) const STOP_EXAMPLES: &str = "\
Examples:
  everbell jobs backfill-stop daily-briefing
  everbell jobs backfill-stop daily-briefing --quiet
  everbell jobs backfill-stop daily-briefing --json";

/// The most slots of a plan that are shown to people.
const MAX_SHOWN_SLOTS: usize = 20;

/// The most backfills of several jobs that are listed.
const MAX_LISTED_BACKFILLS: usize = 1_000;

const SLOT_COLUMNS: [Column; 3] = [Column::new("SLOT"), Column::new("PLAN"), Column::new("RUN").drop_order(1)];

const COLUMNS: [Column; 13] = [
    Column::new("BACKFILL"),
    Column::new("STATUS"),
    Column::new("REQUESTED").drop_order(1),
    Column::new("BY").shrinks().drop_order(2),
    Column::new("FROM").drop_order(3),
    Column::new("TO").drop_order(3),
    Column::new("PENDING").right().drop_order(4),
    Column::new("RUNNING").right().drop_order(4),
    Column::new("OK").right().drop_order(5),
    Column::new("FAILED").right().drop_order(5),
    Column::new("CANCELED").right().drop_order(4),
    Column::new("RATE").drop_order(6),
    Column::new("DONE AT").drop_order(4),
];

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct BackfillArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB")]
    job: String,
    /// The start of the range: RFC 3339, `2027-03-13 09:00`, `-2d`, `today 08:00`.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: String,
    /// The end of the range; future slots are left out.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: String,
    /// The org, for a job that fires per org.
    #[arg(long, value_name = "ORG", conflicts_with = "all_orgs")]
    org: Option<String>,
    /// Every org, for a job that fires per org.
    #[arg(long)]
    all_orgs: bool,
    /// Maximum concurrent runs of the backfill; default: the job's limit.
    #[arg(long, value_name = "N", conflicts_with = "all_orgs", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    parallel: Option<u32>,
    /// Maximum rate of new runs, evenly spread: `10/m`, `2/s`, `500/h`; default: no limit.
    #[arg(long, value_name = "RATE", conflicts_with = "all_orgs", value_parser = parse_rate)]
    rate: Option<String>,
    /// Run the oldest or the newest slots first.
    #[arg(long, value_name = "ORDER", conflicts_with = "all_orgs", default_value = "oldest", value_parser = PossibleValuesParser::new(BackfillOrder::WORDS))]
    order: String,
    /// Continue while the job is paused; default: only if it is paused now.
    #[arg(long, conflicts_with = "all_orgs")]
    paused_ok: bool,
    /// The reason, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Show which slots would get a run, without creating runs.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BackfillsArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB", required_unless_present = "label", conflicts_with = "label")]
    job: Option<String>,
    /// List the backfills of all current jobs with this label instead: `name` or `name=value`.
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB")]
    job: String,
    /// The id of the backfill; default: every running backfill of the job.
    #[arg(value_name = "BACKFILL")]
    backfill: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

/// Shows the plan, asks for confirmation, and creates the runs.
pub(super) fn run(args: &BackfillArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let zone = zone_for(&session, &args.job, args.org.as_deref())?;
    let from = parse_time(&zone, now, "--from", &args.from)?;
    let to = parse_time(&zone, now, "--to", &args.to)?;
    let (org_id, all_orgs, reason) = (args.org.clone(), args.all_orgs, args.reason.clone());
    let mut request = BackfillRequest {
        from,
        to,
        org_id,
        all_orgs,
        parallel: args.parallel,
        rate: args.rate.clone(),
        newest_first: args.order == "newest",
        paused_ok: args.paused_ok.then_some(true),
        reason,
        dry_run: true,
    };
    let planned = send(&session, &args.job, &request)?;
    let plan = planned.document.clone();
    let nothing = plan.to_create == Some(0);
    if args.dry_run || nothing {
        if let Some(plan) = session.for_people(planned, |plan| plan.id.as_deref().unwrap_or_default())? {
            print_plan(&mut session, &plan, &zone)?;
            let advice =
                if nothing { "every slot has a run" } else { "to create the runs, replace --dry-run with --yes" };
            session.advise(advice)?;
        }
        return Ok(Exit::Success);
    }
    if session.out.is_for_people() && !session.quiet {
        print_plan(&mut session, &plan, &zone)?;
        session.out.flush()?;
    }
    agreed(&question(&plan, &args.job), args.yes)?;
    request.dry_run = false;
    let answer = send(&session, &args.job, &request)?;
    let answered = session.for_people(answer, |backfill| backfill.id.as_deref().unwrap_or_default())?;
    let Some(wire::Backfill { id, to_create, .. }) = answered else { return Ok(Exit::Success) };
    let id = id.unwrap_or_default();
    let runs = to_create.map(|runs| counted(runs as usize, "run"));
    let runs = runs.unwrap_or_else(|| "runs for every org follow shortly".to_owned());
    session.done(Mark::Good, &format!("Started backfill {id} of {}: {runs}", printable(&args.job)))?;
    let job = shell(&args.job);
    let (see, stop) = (format!("everbell jobs backfills {job}"), format!("everbell jobs backfill-stop {job} {id}"));
    session.advise(&joined(&[&format!("follow it: {see}"), &format!("stop it: {stop}")], session.out.symbols))?;
    Ok(Exit::Success)
}

/// Checks a rate before it is sent.
pub(super) fn parse_rate(text: &str) -> Result<String, String> {
    let rate: Result<Rate, _> = text.parse();
    rate.map(|rate| rate.to_string()).map_err(|refused| refused.reason)
}

fn send(session: &Session<'_>, job: &str, request: &BackfillRequest) -> Result<Response<wire::Backfill>, CliError> {
    let answer = session.client.send(session.client.jobs().backfill(job, request));
    answer.with_action(|| format!("backfill job `{job}`")).or_list()
}

fn question(plan: &wire::Backfill, job: &str) -> String {
    let runs = counted(plan.to_create.unwrap_or_default() as usize, "run");
    let most = if plan.orgs.is_some() || !plan.exact { "at most " } else { "" };
    format!("Create {most}{runs} of job {} for past slots?", shell(job))
}

/// Prints the slots of a range, and which of them would get a run. Programs get all slots, each on a line.
fn print_plan(session: &mut Session<'_>, plan: &wire::Backfill, zone: &Zone) -> Result<(), CliError> {
    let (slots, for_people) = (&plan.slots, session.out.is_for_people());
    let wanted = plan.to_create.unwrap_or_default() as usize;
    if for_people {
        let counts = if let Some(orgs) = &plan.orgs {
            counts_of_orgs(orgs, wanted)
        } else {
            let total = plan.total.map_or(slots.len(), |total| total as usize);
            let most = if plan.exact { "" } else { "at most " };
            format!("{}, {most}{wanted} to run,", counted(total, "slot"))
        };
        session.out.line(&format!("{counts} from {} to {}", spoken(plan.from, zone), spoken(plan.to, zone)))?;
    }
    if slots.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&SLOT_COLUMNS, session.out.symbols);
    for slot in slots.iter().take(if for_people { MAX_SHOWN_SLOTS } else { usize::MAX }) {
        let because = slot.because.as_ref().map_or("", RunStatus::as_str);
        let (words, word) = match slot.action {
            SlotAction::Create => ("would run".to_owned(), "create"),
            _ => (format!("already {because}"), because),
        };
        table.row(vec![
            fire_cell(Some(slot.slot_at), zone),
            Cell::both(printable(&words), word),
            slot.run_id.as_deref().map_or_else(|| Cell::both("-", ""), Cell::text),
        ]);
    }
    session.out.list(&table)?;
    let total = plan.total.map_or(slots.len(), |total| total as usize);
    if for_people && total > MAX_SHOWN_SLOTS {
        let all = if total == slots.len() { "; show all: -o plain" } else { "" };
        session.out.line(&format!("and {} more{all}", total - MAX_SHOWN_SLOTS.min(slots.len())))?;
    }
    Ok(())
}

/// `At most 60 runs for 12 of 40 orgs`.
fn counts_of_orgs(orgs: &wire::BackfillOrgs, wanted: usize) -> String {
    let first = if orgs.more { "the first " } else { "" };
    format!("At most {} for {} of {first}{} orgs", counted(wanted, "run"), orgs.with_slots, orgs.looked_at)
}

pub(super) fn list(args: &BackfillsArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let shown = args.zone.read()?;
    let mut session = Session::new(&args.online, now, output)?;
    let name = args.job.as_deref();
    let list = if let Some(job) = name {
        session.client.run(session.client.jobs().backfills(job).list())
    } else {
        let query = BackfillQuery { label: args.label.clone() };
        session.client.take(session.client.reports().backfills(&query), MAX_LISTED_BACKFILLS)
    };
    let whose = match name {
        Some(job) => format!("job `{job}`"),
        None => format!("jobs with the label `{}`", printable(args.label.as_deref().unwrap_or_default())),
    };
    let list = list.with_action(|| format!("list the backfills of {whose}")).or_list()?;
    if session.print_list(&list, |backfill| &backfill.id)? {
        return Ok(Exit::Success);
    }
    let job = name.map_or_else(|| "JOB".to_owned(), shell);
    if list.items.is_empty() {
        session.advise(&format!("no backfills; create one: everbell jobs backfill {job} --from TIME --to TIME"))?;
        return Ok(Exit::Success);
    }
    let zone = match name {
        Some(job) => shown.zone(&get_job(&session, job)?),
        None => shown.or_utc(),
    };
    if !session.out.is_for_people() {
        return print_fields(&mut session, &list.items, &zone);
    }
    let job_column = name.is_none().then(|| Column::new("JOB").shrinks());
    let columns: Vec<Column> = job_column.into_iter().chain(COLUMNS).collect();
    let mut table = Table::new(&columns, session.out.symbols);
    for backfill in &list.items {
        let count = |runs: u64| Cell::text(&runs.to_string());
        let mut cells: Vec<Cell> = name.is_none().then(|| Cell::text(&backfill.job_key)).into_iter().collect();
        cells.extend([
            Cell::text(&backfill.id),
            Cell::status(backfill.status.as_str(), session.out.symbols),
            stamp_cell(Some(backfill.asked_at), &zone),
            Cell::text(&backfill.asked_by),
            fire_cell(Some(backfill.from), &zone),
            fire_cell(Some(backfill.to), &zone),
            count(backfill.pending),
            count(backfill.running),
            count(backfill.succeeded),
            count(backfill.failed),
            count(backfill.canceled),
            Cell::text(backfill.rate.as_deref().unwrap_or("-")),
            stamp_cell(backfill.estimated_done_at, &zone),
        ]);
        table.row(cells);
    }
    session.out.list(&table)?;
    session.advise(&format!("stop the running ones: everbell jobs backfill-stop {job}"))?;
    Ok(Exit::Success)
}

/// Prints each backfill as names and values, with an empty line between: bare columns say nothing.
fn print_fields(session: &mut Session<'_>, items: &[wire::BackfillReport], zone: &Zone) -> Result<Exit, CliError> {
    for (number, backfill) in items.iter().enumerate() {
        if number > 0 {
            session.out.line("")?;
        }
        let time = |at: Timestamp| exact(at, zone);
        let rows = [
            ("id", backfill.id.clone()),
            ("job", backfill.job_key.clone()),
            ("status", backfill.status.to_string()),
            ("asked", time(whole_second(backfill.asked_at))),
            ("by", backfill.asked_by.clone()),
            ("from", time(backfill.from)),
            ("to", time(backfill.to)),
            ("pending", backfill.pending.to_string()),
            ("running", backfill.running.to_string()),
            ("succeeded", backfill.succeeded.to_string()),
            ("failed", backfill.failed.to_string()),
            ("canceled", backfill.canceled.to_string()),
            ("existing", backfill.existing.to_string()),
            ("left", backfill.left.to_string()),
            ("parallel", backfill.parallel.map_or_else(String::new, |parallel| parallel.to_string())),
            ("rate", backfill.rate.clone().unwrap_or_default()),
            ("doneAt", backfill.estimated_done_at.map(|at| time(whole_second(at))).unwrap_or_default()),
            ("waitsFor", backfill.waits_for.clone().or_else(|| backfill.stopped_because.clone()).unwrap_or_default()),
        ];
        rows.iter().try_for_each(|(name, value)| session.out.line(&format!("{name}\t{}", printable(value))))?;
    }
    Ok(Exit::Success)
}

/// Stops backfills. Succeeds if there is nothing to stop.
pub(super) fn stop(args: &StopArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let jobs = session.client.jobs();
    let action = || format!("stop a backfill of job `{}`", args.job);
    let ids = if let Some(id) = &args.backfill {
        vec![id.clone()]
    } else {
        let list = session.client.send(jobs.backfills(&args.job)).with_action(action).or_list()?;
        let can_stop = |backfill: &wire::BackfillReport| {
            matches!(backfill.status, BackfillStatus::Running | BackfillStatus::Paused)
        };
        let running = list.document.items.into_iter().filter(can_stop);
        running.map(|backfill| backfill.id).collect()
    };
    let mut stopped: Vec<WithJson<wire::StoppedBackfill>> = Vec::new();
    for id in &ids {
        let answer = session.client.send(jobs.stop_backfill(&args.job, id).read_as()).with_action(action);
        let see = || format!("list them: everbell jobs backfills {}", shell(&args.job));
        stopped.push(answer.or_hint(404, see)?.document);
    }
    match session.format {
        Some(Format::Json) => {
            let items: Vec<&Value> = stopped.iter().map(|backfill| &backfill.json).collect();
            session.out.json(&json!({ "items": items }))?;
        }
        Some(Format::Jsonl) => stopped.iter().try_for_each(|backfill| session.out.json(&backfill.json))?,
        Some(Format::Name) => stopped.iter().try_for_each(|backfill| session.out.line(&backfill.document.id))?,
        Some(Format::Table | Format::Plain) | None => {
            for WithJson { document: wire::StoppedBackfill { id, canceled }, .. } in &stopped {
                let (canceled, job) = (counted(*canceled as usize, "slot"), printable(&args.job));
                session.done(Mark::Ended, &format!("Stopped backfill {id} of {job}"))?;
                session.detail(&format!("{canceled} will not run; runs that have started continue"))?;
            }
            if stopped.is_empty() {
                session.done(Mark::Good, &format!("No backfill of {} is running", printable(&args.job)))?;
            }
        }
    }
    Ok(Exit::Success)
}
