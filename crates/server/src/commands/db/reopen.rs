//! `everbell db reopen`.

use everbell::copy::{MovedMark, reopen};
use everbell_core::store::AuditEntry;
use serde::Serialize;

use super::{DbArgs, failed};
use crate::config::without_password;
use everbell_cli::Output;
use everbell_cli::{CliError, Exit};
use everbell_http::audit_entry;
use everbell_wire::secret::Secret;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell db reopen
  everbell db reopen --database sqlite:everbell-data/everbell.db
  everbell db reopen --data-dir everbell-data --json";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    database: String,
    was_moved: bool,
    moved_to: Option<String>,
    moved_at: Option<String>,
}

pub(super) async fn run(args: &DbArgs, url: &Secret, output: &mut Output) -> Result<Exit, CliError> {
    let shown = without_password(url.reveal());
    let moved = reopen(url.reveal()).await.map_err(failed)?;
    if let Some(moved) = &moved {
        note_in_trail(url, moved).await?;
    }
    if args.json {
        output.json(&Document {
            database: shown,
            was_moved: moved.is_some(),
            moved_to: moved.as_ref().map(|moved| moved.to.clone()),
            moved_at: moved.as_ref().map(|moved| moved.at.to_string()),
        })?;
    } else if let Some(moved) = moved {
        output.line(&format!("{shown} can be used again; do not start {}, or every job fires twice", moved.to))?;
    } else {
        output.line(&format!("{shown} is not marked as moved; nothing to do"))?;
    }
    Ok(Exit::Success)
}

async fn note_in_trail(url: &Secret, moved: &MovedMark) -> Result<(), CliError> {
    let store = everbell::connect(url.reveal()).await.map_err(failed)?;
    let now = store.now().await.map_err(failed)?;
    let entry = AuditEntry {
        reason: Some(format!("it was copied to {}", moved.to)),
        ..audit_entry::new_entry("everbell db", "database.reopen", "database".to_owned(), now)
    };
    store.append_audit(&entry).await.map_err(failed)
}
