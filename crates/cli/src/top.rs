//! `everbell top`: the jobs that run, fail or cost the most.

use clap::Args;
use clap::builder::PossibleValuesParser;
use everbell_client::{EventQuery, TopQuery};
use everbell_wire as wire;
use everbell_wire::elapsed::took;
use jiff::Timestamp;

use super::error::RefusalContext;
use super::online::Format;
use super::output::{Cell, Column, Output, Table, counted};
use super::times::away;
use super::{CliError, Exit, OnlineArgs, Session, watch};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell top
  everbell top --by failures --window 7d --limit 5
  everbell top --by p95 --label team=data --json";

const COLUMNS: [Column; 9] = [
    Column::new("JOB").shrinks_to(16),
    Column::new("RUNS").right(),
    Column::new("FAILED").right(),
    Column::new("FAILED %").right().drop_order(4),
    Column::new("TIME").right(),
    Column::new("P50").right().drop_order(3),
    Column::new("P95").right(),
    Column::new("DELAY").right().drop_order(5),
    Column::new("MAX DELAY").right().drop_order(2),
];

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// The order: most runs, most failures, most time spent, longest runs (95th percentile) or latest starts first.
    #[arg(long, value_name = "ORDER", default_value = "time", value_parser = PossibleValuesParser::new(wire::TopBy::WORDS))]
    by: String,
    /// The window, which ends now.
    #[arg(long, value_name = "WINDOW", default_value = "24h", value_parser = ["24h", "7d", "30d"])]
    window: String,
    /// Only jobs with this label, `NAME=VALUE` or `NAME`.
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// Only jobs with this target; may be repeated.
    #[arg(long, value_name = "LABEL")]
    target: Vec<String>,
    /// Only jobs that have failed since their last success.
    #[arg(long)]
    failing: bool,
    /// Show at most this many jobs.
    #[arg(short = 'n', long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    /// Follow changes: redraw the table, or print each event with `-o jsonl`.
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    online: OnlineArgs,
}

impl TopArgs {
    fn query(&self) -> TopQuery {
        TopQuery {
            window: Some(self.window.clone()),
            by: Some(wire::TopBy::from_word(&self.by)),
            label: self.label.clone(),
            target: self.target.clone(),
            failing: self.failing.then_some(true),
            limit: Some(self.limit),
        }
    }
}

pub(crate) fn run(args: &TopArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    if args.watch {
        let events = EventQuery { types: vec!["run.*".to_owned()], job_key: None };
        return watch::follow(&mut session, &events, |session| draw(args, session));
    }
    draw(args, &mut session)?;
    Ok(Exit::Success)
}

fn draw(args: &TopArgs, session: &mut Session<'_>) -> Result<(), CliError> {
    let answer = session.client.send(session.client.runs().top(&args.query()));
    let answer = answer.with_action(|| "list the top jobs".to_owned())?;
    if session.format == Some(Format::Name) {
        for key in answer.document.items.iter().filter_map(|item| item.job_key.as_deref()) {
            session.out.name(key)?;
        }
        return Ok(());
    }
    let Some(top) = session.for_people(answer, |_| "")? else { return Ok(()) };
    if top.items.is_empty() {
        session.advise(&format!("no job has a value to sort by in {}", args.window))?;
    } else {
        let mut table = Table::new(&COLUMNS, session.out.symbols);
        top.items.iter().for_each(|item| table.row(row(item)));
        session.out.list(&table)?;
        session.advise(&format!("{} in {}, by {}", counted(top.items.len(), "job"), args.window, args.by))?;
    }
    if !top.complete {
        let since = away(top.counted_since, session.now);
        session.advise(&format!("older runs are still being counted: all since {since} are included"))?;
    }
    Ok(())
}

fn row(item: &wire::TopItem) -> Vec<Cell> {
    let time = |millis: Option<i64>| match millis {
        Some(millis) => Cell::both(took(millis), &millis.to_string()),
        None => Cell::both("-", ""),
    };
    let name = match &item.job_key {
        Some(key) => Cell::text(key),
        None => Cell::both(format!("one-time: {}", item.name()), item.name()),
    };
    let rate = match item.failure_rate {
        Some(rate) => Cell::both(format!("{:.1}", rate * 100.0), &format!("{:.1}", rate * 100.0)),
        None => Cell::both("-", ""),
    };
    vec![
        name,
        Cell::text(&item.runs.to_string()),
        Cell::text(&item.failed.to_string()),
        rate,
        time(Some(item.time_spent_ms)),
        time(item.p50_ms),
        time(item.p95_ms),
        time(item.mean_delay_ms),
        time(item.max_delay_ms),
    ]
}
