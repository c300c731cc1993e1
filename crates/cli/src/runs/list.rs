//! `everbell runs list`.

use clap::Args;
use clap::builder::PossibleValuesParser;
use everbell_client::{EventQuery, RunQuery};
use everbell_wire as wire;
use everbell_wire::run::{RunStatus, Skip, TriggerType};
use jiff::Timestamp;

use crate::error::RefusalContext;
use crate::online::{DisplayZone, ZoneArgs};
use crate::output::{Cell, Column, Output, Table, counted};
use crate::times::{away, stamp_cell};
use crate::words::{filled, joined};
use crate::{CliError, Exit, OnlineArgs, Session, watch};
use everbell_wire::elapsed::took;
use everbell_wire::time_input::TimeReader;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell runs list
  everbell runs list --job daily-briefing --status succeeded,failed --limit 3
  everbell runs list --from -1d --to now --label team=data -o jsonl";

const COLUMNS: [Column; 8] = [
    Column::new("RUN"),
    Column::new("STATUS"),
    Column::new("JOB").shrinks_to(16),
    Column::new("TRIGGER").drop_order(1),
    Column::new("SCHEDULED").drop_order(4),
    Column::new("AGE").drop_order(5),
    Column::new("TOOK").right().drop_order(2),
    Column::new("WHY").shrinks().drop_order(3),
];

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only runs of this job, of any version.
    #[arg(long, value_name = "KEY")]
    job: Option<String>,
    /// Only runs with these statuses.
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = PossibleValuesParser::new(RunStatus::WORDS))]
    status: Vec<String>,
    /// Only runs of these targets.
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    target: Vec<String>,
    /// Only runs that were triggered this way.
    #[arg(long, value_name = "TRIGGER", value_parser = PossibleValuesParser::new(TriggerType::WORDS))]
    trigger: Option<String>,
    /// Only runs for this org.
    #[arg(long, value_name = "ORG")]
    org: Option<String>,
    /// Only runs that this instance executed.
    #[arg(long, value_name = "ID")]
    instance: Option<String>,
    /// Only runs that failed with this code.
    #[arg(long, value_name = "CODE")]
    failure_code: Option<String>,
    /// Only runs of jobs with this label.
    #[arg(long, value_name = "NAME[=VALUE]")]
    label: Option<String>,
    /// Only runs that were scheduled or requested at or after this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// Only runs that were scheduled or requested before this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<String>,
    /// Show at most this many runs.
    #[arg(short = 'n', long, value_name = "N", default_value = "30", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Follow changes: redraw the table, or print each event with `-o jsonl`.
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

impl ListArgs {
    fn query(&self, shown: &DisplayZone, now: Timestamp) -> Result<RunQuery, CliError> {
        let zone = shown.or_utc();
        let times = TimeReader { now, zone: &zone };
        let time = |flag, text: &Option<String>| text.as_ref().map(|text| times.read(flag, text)).transpose();
        Ok(RunQuery {
            job_key: self.job.clone(),
            job_id: None,
            id_prefix: None,
            status: self.status.iter().map(|word| RunStatus::from_word(word)).collect(),
            target: self.target.clone(),
            trigger_type: self.trigger.as_deref().map(TriggerType::from_word),
            org_id: self.org.clone(),
            instance_id: self.instance.clone(),
            failure_code: self.failure_code.clone(),
            label: self.label.clone(),
            from: time("--from", &self.from)?,
            to: time("--to", &self.to)?,
        })
    }
}

pub(super) fn run(args: &ListArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let shown = args.zone.read()?;
    let mut session = Session::new(&args.online, now, output)?;
    if args.watch {
        let events = EventQuery { types: vec!["run.*".to_owned()], job_key: args.job.clone() };
        return watch::follow(&mut session, &events, |session| draw(args, &shown, session));
    }
    draw(args, &shown, &mut session)?;
    Ok(Exit::Success)
}

fn draw(args: &ListArgs, shown: &DisplayZone, session: &mut Session<'_>) -> Result<(), CliError> {
    let query = args.query(shown, session.now)?;
    let list = session
        .client
        .take(session.client.runs().list(&query), args.limit as usize)
        .with_action(|| "list runs".to_owned())?;
    if session.print_list(&list, |run| &run.id)? {
        return Ok(());
    }
    if list.items.is_empty() {
        return session.advise(if query == RunQuery::default() { "no runs yet" } else { "no run matches" });
    }
    let mut table = Table::new(&COLUMNS, session.out.symbols);
    for run in &list.items {
        table.row(row(run, shown, session));
    }
    session.out.list(&table)?;
    let first = list.items.first().map_or("", |run| &run.id);
    let more = if list.next_cursor.is_some() { " shown; raise --limit to see more" } else { "" };
    let count = format!("{}{more}", counted(list.items.len(), "run"));
    let next = format!("next: everbell runs show {first}");
    session.advise(&joined(&[&count, &next], session.out.symbols))
}

fn row(run: &wire::Run, shown: &DisplayZone, session: &Session<'_>) -> Vec<Cell> {
    let duration = run.duration_ms.map_or_else(String::new, took);
    let why = filled(run.failure_code.as_ref()).or(run.skip_reason.as_ref().map(Skip::as_str)).unwrap_or_default();
    let empty_or = |text: &str| if text.is_empty() { Cell::both("-", "") } else { Cell::text(text) };
    vec![
        Cell::text(&run.id),
        Cell::status(run.status.as_str(), session.out.symbols),
        // A trial of a target has no job.
        Cell::text(filled(run.job_key.as_ref()).unwrap_or(&run.target)),
        Cell::text(run.origin.as_str()),
        stamp_cell(Some(run.scheduled_at), &shown.zone(run)),
        Cell::text(&away(run.scheduled_at, session.now)),
        empty_or(&duration),
        empty_or(why),
    ]
}
