//! `everbell db status`.

use everbell::upkeep::{Content, Inspection, inspect};
use everbell::{JobStatus, Timestamp};
use serde::Serialize;

use super::{DbArgs, bytes, failed};
use crate::config::without_password;
use everbell_cli::Output;
use everbell_cli::{CliError, Exit};
use everbell_wire::secret::Secret;

pub(super) async fn run(args: &DbArgs, url: &Secret, output: &mut Output) -> Result<Exit, CliError> {
    let found = inspect(url.reveal()).await.map_err(failed)?;
    let shown = without_password(url.reveal());
    if args.json {
        output.json(&Document::new(&shown, &found))?;
    } else {
        output.table(&rows(shown, &found), &[2])?;
    }
    Ok(if Schema::from_inspection(&found) == Schema::Current { Exit::Success } else { Exit::Failed })
}

/// How the schema of a database stands to the one that is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Schema {
    Current,
    Behind,
    Newer,
}

impl Schema {
    fn from_inspection(found: &Inspection) -> Schema {
        if found.old_layout {
            return Schema::Behind;
        }
        match found.schema_version.cmp(&found.needed_version) {
            std::cmp::Ordering::Equal => Schema::Current,
            std::cmp::Ordering::Less => Schema::Behind,
            std::cmp::Ordering::Greater => Schema::Newer,
        }
    }
}

fn rows(shown: String, found: &Inspection) -> Vec<Vec<String>> {
    let Inspection { schema_version: version, needed_version: needed, .. } = found;
    let schema = match Schema::from_inspection(found) {
        Schema::Current => format!("{version} (current)"),
        Schema::Behind if *version == 0 => format!("none yet; `everbell db migrate` brings it to {needed}"),
        Schema::Behind if found.old_layout => {
            format!("{version} (tables of an old release; `everbell db migrate` moves them and brings it to {needed})")
        }
        Schema::Behind => format!("{version} (behind; `everbell db migrate` brings it to {needed})"),
        Schema::Newer => {
            format!(
                "{version} (newer than this binary, which knows {needed}; use the newer release, or restore a backup)"
            )
        }
    };
    let mut rows = vec![("database", shown), ("product", found.product.clone()), ("schema", schema)];
    rows.extend(found.size_bytes.map(|size| ("size", bytes(size))));
    rows.extend(found.oldest_transaction_at.map(|at| ("oldest transaction", time(at))));
    if let Some(moved) = &found.moved {
        let (to, at) = (&moved.to, time(moved.at));
        rows.push(if moved.is_done {
            ("moved", format!("to {to} at {at}; `everbell db reopen` allows it again"))
        } else {
            let text = format!(
                "to {to}, begun at {at} and not finished: run `everbell db copy` again, or `everbell db reopen`"
            );
            ("copy", text)
        });
    }
    if let Some(content) = &found.content {
        rows.push(("jobs", jobs(content)));
        let more = if content.more_runs { "more than " } else { "" };
        rows.push(("runs", format!("{more}{}", content.runs)));
        rows.push(("oldest run", content.oldest_run_at.map_or_else(|| "-".to_owned(), time)));
    }
    rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect()
}

fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn of_status(content: &Content, status: JobStatus) -> u64 {
    content.jobs.iter().filter(|count| count.status == status).map(|count| count.jobs).sum()
}

fn jobs(content: &Content) -> String {
    let [active, paused, retired] = JOB_STATUSES.map(|status| of_status(content, status));
    format!("{} ({active} active, {paused} paused), {retired} retired", active + paused)
}

const JOB_STATUSES: [JobStatus; 3] = [JobStatus::Active, JobStatus::Paused, JobStatus::Retired];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    database: &'a str,
    product: &'a str,
    schema: Schema,
    schema_version: u32,
    needed_schema_version: u32,
    size_bytes: Option<u64>,
    oldest_transaction_at: Option<String>,
    /// The database that it was copied to, which goes on with its jobs.
    moved_to: Option<&'a str>,
    /// The database that a copy began to be made to, and may not be complete.
    unfinished_copy_to: Option<&'a str>,
    jobs: Option<Jobs>,
    runs: Option<u64>,
    /// Whether `runs` is only where the counting stopped.
    more_runs: Option<bool>,
    oldest_run_at: Option<String>,
}

#[derive(Serialize)]
struct Jobs {
    active: u64,
    paused: u64,
    retired: u64,
}

impl<'a> Document<'a> {
    fn new(database: &'a str, found: &'a Inspection) -> Document<'a> {
        let content = found.content.as_ref();
        let jobs = |content: &Content| {
            let [active, paused, retired] = JOB_STATUSES.map(|status| of_status(content, status));
            Jobs { active, paused, retired }
        };
        Document {
            database,
            product: &found.product,
            schema: Schema::from_inspection(found),
            schema_version: found.schema_version,
            needed_schema_version: found.needed_version,
            size_bytes: found.size_bytes,
            oldest_transaction_at: found.oldest_transaction_at.map(|at| at.to_string()),
            moved_to: found.moved.as_ref().filter(|moved| moved.is_done).map(|moved| moved.to.as_str()),
            unfinished_copy_to: found.moved.as_ref().filter(|moved| !moved.is_done).map(|moved| moved.to.as_str()),
            jobs: content.map(jobs),
            runs: content.map(|content| content.runs),
            more_runs: content.map(|content| content.more_runs),
            oldest_run_at: content.and_then(|content| content.oldest_run_at).map(|at| at.to_string()),
        }
    }
}
