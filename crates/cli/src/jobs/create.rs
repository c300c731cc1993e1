//! `everbell jobs create` and `everbell jobs once`.

use clap::Args;
use everbell_core::Zone;
use jiff::Timestamp;

use super::definition_args::{DefinitionArgs, TimingArgs};
use super::show::{fires, in_words, next_in_words, print_warnings};
use crate::error::RefusalContext;
use crate::online::own_zone;
use crate::output::{Mark, Output, printable};
use crate::words::joined;
use crate::{CliError, Exit, OnlineArgs, Session};
use everbell_wire::JobBody;
use everbell_wire::shell;
use everbell_wire::time_input::TimeReader;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell jobs create nightly --target print --cron \"30 2 * * *\" --tz America/New_York
  everbell jobs create pulse --target print --every 90s --payload '{\"kind\":\"pulse\"}'
  everbell jobs create report --target print --after nightly --timeout 5m --retries 2";

pub(super) const ONCE_EXAMPLES: &str = "\
Examples:
  everbell jobs once announce --target print --at \"tomorrow 08:00\" --tz Europe/Paris
  everbell jobs once remind --target print --at +15m
  everbell jobs once migrate --target print --at 2099-01-01T00:00:00Z --json";

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// The key of the job, which all versions share.
    #[arg(value_name = "KEY")]
    key: String,
    /// The target; `everbell targets` lists them.
    #[arg(long, value_name = "LABEL")]
    target: String,
    /// The IANA time zone of the schedule.
    #[arg(long, value_name = "ZONE", default_value = "UTC", help_heading = "Schedule")]
    tz: String,
    #[command(flatten)]
    timing: TimingArgs,
    #[command(flatten)]
    definition: DefinitionArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OnceArgs {
    /// The key of the job.
    #[arg(value_name = "KEY")]
    key: String,
    /// The target; `everbell targets` lists them.
    #[arg(long, value_name = "LABEL")]
    target: String,
    /// When it fires: RFC 3339, `2027-03-13 09:00`, `+15m`, `tomorrow 08:00`.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Schedule")]
    at: String,
    /// The IANA time zone of a time without an offset.
    #[arg(long, value_name = "ZONE", default_value = "UTC", help_heading = "Schedule")]
    tz: String,
    #[command(flatten)]
    definition: DefinitionArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &CreateArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let zone = Zone::get(&args.tz)?;
    if args.timing.cron.is_none() && args.timing.every.is_none() && args.timing.after.is_empty() {
        let key = shell(&args.key);
        return Err(CliError::invalid(format!(
            "a schedule is required\n  \
             everbell jobs create {key} --target {target} --cron \"0 8 * * 1-5\" --tz Europe/Paris\n  \
             everbell jobs create {key} --target {target} --every 15m\n  \
             everbell jobs create {key} --target {target} --after extract\n  \
             everbell jobs once {key} --target {target} --at \"tomorrow 08:00\"",
            target = shell(&args.target),
        )));
    }
    let mut body = JobBody::default();
    args.timing.write_to(&mut body, &zone, now)?;
    args.definition.write_to(&mut body)?;
    create(&args.key, &args.target, &zone, body, &args.online, now, output)
}

pub(super) fn once(args: &OnceArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let zone = Zone::get(&args.tz)?;
    let mut body = JobBody::default();
    let at = TimeReader { now, zone: &zone }.read("--at", &args.at)?;
    body.put("runAt", at.to_string());
    args.definition.write_to(&mut body)?;
    create(&args.key, &args.target, &zone, body, &args.online, now, output)
}

fn create(
    key: &str,
    target: &str,
    zone: &Zone,
    mut body: JobBody,
    online: &OnlineArgs,
    now: Timestamp,
    output: &mut Output,
) -> Result<Exit, CliError> {
    body.put("jobKey", key);
    body.put("target", target);
    body.put("timezone", zone.name());
    let mut session = Session::new(online, now, output)?;
    let answer = session.client.send(session.client.jobs().create(&body)).with_action(|| format!("create job `{key}`"));
    let answer = answer
        .or_hint(409, || format!("change it: everbell jobs edit {0}; see it: everbell jobs show {0}", shell(key)))
        .or_hint(400, || {
            "list the targets: everbell targets; list the flags: everbell jobs create --help".to_owned()
        })?;
    let Some(job) = session.for_people(answer, |job| &job.job_key)? else { return Ok(Exit::Success) };
    session.done(Mark::Good, &format!("Created {} v{} ({})", printable(key), job.version, job.status))?;
    session.detail(&in_words(&job))?;
    let next = next_in_words(&job, &fires(&session.client, &job), &own_zone(&job), now);
    session.detail(&format!("Next   {next}"))?;
    session.out.flush()?;
    print_warnings(&job);
    let (see, try_it) =
        (format!("see it: everbell jobs show {0}", shell(key)), format!("everbell jobs run {} --wait", shell(key)));
    let advice = joined(&[&see, &format!("try it now: {try_it}")], session.out.symbols);
    session.advise(&advice)?;
    Ok(Exit::Success)
}
