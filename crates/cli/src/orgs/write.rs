//! `everbell orgs set` and `everbell orgs delete`.

use clap::Args;
use everbell_client::OrgInput;
use jiff::Timestamp;

use crate::confirm::confirmed;
use crate::error::RefusalContext;
use crate::jobs::parse_json;
use crate::output::{Mark, Output, printable};
use crate::{CliError, Exit, OnlineArgs, Session};
use everbell_wire::shell;

pub(super) const SET_EXAMPLES: &str = "\
Examples:
  everbell orgs set acme --timezone Europe/Paris --name \"Acme Corp\"
  everbell orgs set acme --disable --reason \"contract ended\"
  everbell orgs set acme --enable --settings '{\"plan\":\"gold\"}' --json";

pub(super) const DELETE_EXAMPLES: &str = "\
Examples:
  everbell orgs delete acme --yes
  everbell orgs delete bolt --yes --reason \"contract ended\"
  everbell orgs delete cove --yes -o name";

#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// The id of the org.
    #[arg(value_name = "ORG")]
    org: String,
    /// The IANA time zone; required for a new org.
    #[arg(long, visible_alias = "tz", value_name = "ZONE")]
    timezone: Option<String>,
    /// A name for people.
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Enable the org.
    #[arg(long, conflicts_with = "disable")]
    enable: bool,
    /// Disable the org, so no job fires for it.
    #[arg(long)]
    disable: bool,
    /// A JSON object to store with the org: JSON, `@FILE`, or `-` for standard input.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    settings: Option<String>,
    /// The reason, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// The id of the org.
    #[arg(value_name = "ORG")]
    org: String,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
    /// The reason, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn set(args: &SetArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let input = OrgInput {
        name: args.name.clone(),
        timezone: args.timezone.clone(),
        enabled: (args.enable || args.disable).then_some(args.enable),
        settings: args.settings.as_deref().map(|text| parse_json("--settings", text)).transpose()?,
        reason: args.reason.clone(),
    };
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.send(session.client.orgs().put(&args.org, &input));
    let answer = answer.with_action(|| format!("set org `{}`", args.org))?;
    let word = if answer.status == 201 { "Created" } else { "Updated" };
    let Some(org) = session.for_people(answer, |org| &org.id)? else { return Ok(Exit::Success) };
    session.done(Mark::Good, &format!("{word} org {}", printable(&org.id)))?;
    let takes_part = if org.enabled { "jobs fire for it" } else { "no job fires for it" };
    let (zone, local) = (printable(&org.timezone), printable(org.local_time.as_deref().unwrap_or_default()));
    session.detail(&format!("{zone}, local time {local}; {takes_part}"))?;
    let now = org.fires_now.unwrap_or_default();
    if !now.is_empty() {
        let jobs = printable(&now.join(", "));
        session.detail(&format!("fires now, because today's time has passed without a run: {jobs}"))?;
    }
    session.advise(&format!("see its jobs: everbell orgs show {}", shell(&args.org)))?;
    Ok(Exit::Success)
}

pub(super) fn delete(args: &DeleteArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let org = shell(&args.org);
    let question = format!("Delete org {org}? Jobs will not fire for it; its runs stay.");
    if !args.yes && !confirmed(&question, &format!("everbell orgs delete {org} --yes"))? {
        return Ok(Exit::Failed);
    }
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.send(session.client.orgs().delete(&args.org, args.reason.as_deref()));
    answer.with_action(|| format!("delete org `{}`", args.org)).or_list()?;
    if session.is_for_people(&args.org)? {
        session.done(Mark::Ended, &format!("Deleted org {}", printable(&args.org)))?;
    }
    Ok(Exit::Success)
}
