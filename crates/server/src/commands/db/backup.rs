//! `everbell db backup`.

use everbell::upkeep::back_up;
use serde::Serialize;

use super::{BackupArgs, bytes, failed};
use crate::config::without_password;
use everbell_cli::Output;
use everbell_cli::Progress;
use everbell_cli::{CliError, Exit};
use everbell_wire::secret::Secret;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    file: String,
    size_bytes: u64,
}

pub(super) async fn run(args: &BackupArgs, url: &Secret, output: &mut Output) -> Result<Exit, CliError> {
    if url.reveal().starts_with("postgres") {
        let hint = format!(
            "pg_dump --format=custom --file={} '{}'",
            args.file.display(),
            without_password(url.reveal()).replace(":(hidden)", "")
        );
        let message = "this is a PostgreSQL database: back it up with `pg_dump`".to_owned();
        return Err(CliError::Invalid { message, hint: Some(hint) });
    }
    let progress = std::sync::Mutex::new(Progress::new());
    let told = |done: u64, total: u64| {
        // The copy is compact, so it may be done before it is as large as what is copied.
        let share = done.min(total).saturating_mul(100).checked_div(total).unwrap_or(0);
        if let Ok(mut progress) = progress.lock() {
            progress.show(&format!("copying {} of {} ({share}%)", bytes(done), bytes(total)));
        }
    };
    let copied = tokio::select! {
        copied = back_up(url.reveal(), &args.file, &told) => copied.map_err(failed)?,
        // What is not whole is removed with it.
        _ = tokio::signal::ctrl_c() => return Ok(Exit::Interrupted),
    };
    drop(progress);
    let file = args.file.display().to_string();
    if args.db.json {
        output.json(&Document { file, size_bytes: copied })?;
    } else {
        output.line(&format!("copied {} to {file}; SQLite verified the copy", bytes(copied)))?;
        output.line(&format!("to restore it, stop the server and start it with --database sqlite:{file}"))?;
    }
    Ok(Exit::Success)
}
