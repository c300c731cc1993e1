//! `everbell db migrate`.

use everbell::StoreError;
use everbell::upkeep::inspect;
use serde::Serialize;

use super::{DbArgs, failed};
use everbell_cli::Output;
use everbell_cli::{CliError, Exit};
use everbell_wire::secret::Secret;

#[derive(Serialize)]
struct Document {
    from: u32,
    to: u32,
    changed: bool,
}

pub(super) async fn run(args: &DbArgs, url: &Secret, output: &mut Output) -> Result<Exit, CliError> {
    let (from, old_layout) = match inspect(url.reveal()).await {
        Ok(found) => (found.schema_version, found.old_layout),
        // A file that does not exist is made.
        Err(StoreError::NotFound { .. }) => (0, false),
        Err(error) => return Err(failed(error)),
    };
    // Opening a store is what migrates; it refuses a schema that is newer.
    drop(everbell::connect(url.reveal()).await.map_err(failed)?);
    let to = inspect(url.reveal()).await.map_err(failed)?.schema_version;
    if args.json {
        output.json(&Document { from, to, changed: from != to || old_layout })?;
    } else if old_layout {
        output.line(&format!("schema {from} -> {to}: the tables of an old release were moved"))?;
    } else if from == to {
        output.line(&format!("schema {to} is current; nothing to do"))?;
    } else if from == 0 {
        output.line(&format!("schema none -> {to}: the database is ready for `everbell serve`"))?;
    } else {
        output.line(&format!("schema {from} -> {to}"))?;
    }
    Ok(Exit::Success)
}
