//! `everbell db prune`.

use std::time::Duration;

use everbell::upkeep::{count_old, inspect};
use everbell::{StoreError, Timestamp};
use everbell_core::store::{AuditEntry, PruneBefore, Pruned, REQUEST_RETENTION, Store};
use jiff::SignedDuration;
use serde::Serialize;

use super::{PruneArgs, counted, failed};
use crate::config::without_password;
use everbell_cli::Output;
use everbell_cli::Progress;
use everbell_cli::agreed;
use everbell_cli::{CliError, Exit};
use everbell_http::audit_entry;
use everbell_wire::form::parse_span;
use everbell_wire::secret::Secret;

/// The shortest age at which rows are deleted, as in a server: younger ones may still be in use.
const MIN_AGE: Duration = Duration::from_hours(1);
/// The number of rows deleted at once, and the pause after it, in which others can use the database.
const BATCH_ROWS: u32 = 1_000;
const BATCH_PAUSE: Duration = Duration::from_millis(20);

pub(super) async fn run(args: &PruneArgs, url: &Secret, output: &mut Output) -> Result<Exit, CliError> {
    let refused = |message| CliError::Invalid { message: format!("--older-than: {message}"), hint: None };
    let keep = parse_span(&args.older_than).map_err(refused)?;
    if keep < MIN_AGE {
        return Err(refused("must be at least 1 hour, like `retention.keep` in the configuration".to_owned()));
    }
    let found = inspect(url.reveal()).await.map_err(failed)?;
    if found.old_layout {
        let message = "the tables are those of an old release".to_owned();
        return Err(CliError::Failed { message, hint: Some("`everbell db migrate` moves them".to_owned()) });
    }
    if found.schema_version != found.needed_version {
        let message =
            format!("the schema is at {}, and this binary needs {}", found.schema_version, found.needed_version);
        return Err(CliError::Failed { message, hint: Some("`everbell db status` says what to do".to_owned()) });
    }
    let store = everbell::connect(url.reveal()).await.map_err(failed)?;
    let now = store.now().await.map_err(failed)?;
    let before = earlier(now, keep).ok_or_else(|| refused("there is nothing that old".to_owned()))?;
    let old = count_old(url.reveal(), before).await.map_err(failed)?;
    if args.dry_run || total(&old) == 0 {
        return report(args, before, &old, output);
    }
    let what =
        format!("Delete {} from before {} in {}?", in_words(&old), utc_text(before), without_password(url.reveal()));
    agreed(&what, args.yes)?;
    let pruned = prune(&*store, before, now, &old).await.map_err(failed)?;
    let reason = format!("older than {}: {}", args.older_than, in_words(&pruned));
    let entry = AuditEntry {
        reason: Some(reason),
        ..audit_entry::new_entry("everbell db", "history.prune", "database".to_owned(), now)
    };
    store.append_audit(&entry).await.map_err(failed)?;
    report(args, before, &pruned, output)
}

/// Deletes until nothing is left, a bite at a time.
async fn prune(store: &dyn Store, before: Timestamp, now: Timestamp, old: &Pruned) -> Result<Pruned, StoreError> {
    let (mut all, mut progress) = (Pruned::default(), Progress::new());
    let before = PruneBefore { requests: earlier(now, REQUEST_RETENTION).unwrap_or(now), ..PruneBefore::all(before) };
    loop {
        let Pruned { runs, gaps, audit, jobs, inbox, .. } = store.prune(before, BATCH_ROWS).await?;
        all.runs += runs;
        all.gaps += gaps;
        all.audit += audit;
        all.jobs += jobs;
        all.inbox += inbox;
        if ![runs, gaps, audit, jobs, inbox].contains(&u64::from(BATCH_ROWS)) {
            return Ok(all);
        }
        progress.show(&format!("deleted {} of {}", total(&all), total(old).max(total(&all))));
        tokio::time::sleep(BATCH_PAUSE).await;
    }
}

fn report(args: &PruneArgs, before: Timestamp, pruned: &Pruned, output: &mut Output) -> Result<Exit, CliError> {
    if args.db.json {
        output.json(&Document {
            before: before.to_string(),
            dry_run: args.dry_run,
            runs: pruned.runs,
            gaps: pruned.gaps,
            audit_entries: pruned.audit,
            jobs: pruned.jobs,
            inbox_requests: pruned.inbox,
        })?;
    } else if total(pruned) == 0 {
        output.line(&format!("nothing is older than {}", utc_text(before)))?;
    } else {
        let verb = if args.dry_run { "would delete" } else { "deleted" };
        output.line(&format!("{verb} {} from before {}", in_words(pruned), utc_text(before)))?;
    }
    Ok(Exit::Success)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    before: String,
    dry_run: bool,
    runs: u64,
    gaps: u64,
    audit_entries: u64,
    jobs: u64,
    inbox_requests: u64,
}

fn total(pruned: &Pruned) -> u64 {
    pruned.runs + pruned.gaps + pruned.audit + pruned.jobs + pruned.inbox
}

fn in_words(pruned: &Pruned) -> String {
    let (runs, gaps) = (counted(pruned.runs, "run", "runs"), counted(pruned.gaps, "gap", "gaps"));
    let mut parts = vec![runs, gaps, counted(pruned.audit, "audit entry", "audit entries")];
    if pruned.jobs > 0 {
        parts.push(counted(pruned.jobs, "finished one-time job", "finished one-time jobs"));
    }
    if pruned.inbox > 0 {
        parts.push(counted(pruned.inbox, "answered request of the inbox", "answered requests of the inbox"));
    }
    let last = parts.pop().unwrap_or_default();
    format!("{} and {last}", parts.join(", "))
}

fn utc_text(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn earlier(now: Timestamp, by: Duration) -> Option<Timestamp> {
    now.checked_sub(SignedDuration::try_from(by).ok()?).ok()
}
