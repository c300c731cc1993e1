//! The token that lets the first person in.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use everbell::{Everbell, StoreError};
use everbell_core::store::{AuditEntry, NewToken, Token};
use jiff::Timestamp;

use crate::config::Config;
use everbell_cli::{CliError, TOKEN_FILE};
use everbell_http::access::{new_token, token_hash};
use everbell_http::audit_entry;
use everbell_wire::secret::Secret;

/// Its name in the audit trail, and that of its file.
const NAME: &str = "admin";

/// How an admin comes in.
pub(super) enum WayIn {
    /// With a token that was just made, and is written down here.
    First { token: Secret, file: PathBuf },
    /// With the one of the first start, which is written down here.
    Kept(PathBuf),
    /// With a token that an admin created.
    Made,
    /// With the one of the configuration.
    Configured,
    /// Every admin token is revoked or has expired.
    Nobody,
}

/// Creates an admin token if there would be no way to sign in: none is configured, and the database has none.
pub(super) async fn ensure(bell: &Everbell, config: &Config) -> Result<WayIn, CliError> {
    if config.auth.admin_token.is_some() || !config.server.role.answers() {
        return Ok(WayIn::Configured);
    }
    let failed = |error: StoreError| CliError::Failed { message: error.to_string(), hint: None };
    let (token, file) = (new_token(), config.server.data_dir.join(TOKEN_FILE));
    let there = bell.store().list_tokens().await.map_err(failed)?;
    if !there.is_empty() {
        return Ok(known(&there, file, bell.now()));
    }
    // Write the file first: a token that cannot be read again would lock everyone out.
    write(&config.server.data_dir, &file, &token).map_err(|error| CliError::Failed {
        message: format!("cannot write the first admin token to `{}`: {error}", file.display()),
        hint: Some("make the folder writable, choose another `data_dir`, or set EVERBELL_ADMIN_TOKEN_FILE".to_owned()),
    })?;
    let now = bell.now();
    let new = NewToken {
        name: NAME.to_owned(),
        hash: token_hash(token.reveal()),
        role: "admin".to_owned(),
        created_at: now,
        expires_at: None,
    };
    let audit = AuditEntry {
        reason: Some("the first start".to_owned()),
        ..audit_entry::new_entry("everbell", "token.create", format!("token:{NAME}"), now)
    };
    match bell.store().create_token(&new, &audit).await {
        Ok(_) => Ok(WayIn::First { token, file }),
        // Another instance of a first start was faster, and has printed its token.
        Err(StoreError::Conflict { .. }) => {
            let _ = fs::remove_file(&file);
            Ok(WayIn::Made)
        }
        Err(error) => Err(failed(error)),
    }
}

/// The way in where there are tokens.
fn known(tokens: &[Token], file: PathBuf, now: Timestamp) -> WayIn {
    let lets_in = |token: &&Token| {
        token.role == "admin" && token.revoked_at.is_none() && token.expires_at.is_none_or(|end| end > now)
    };
    let mut admins = tokens.iter().filter(lets_in).peekable();
    if admins.peek().is_none() {
        return WayIn::Nobody;
    }
    if admins.any(|token| token.name == NAME) && file.exists() { WayIn::Kept(file) } else { WayIn::Made }
}

/// Only the owner may read it.
fn write(folder: &Path, file: &Path, token: &Secret) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let _ = fs::remove_file(file);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    writeln!(file, "{}", token.reveal())?;
    file.sync_all()
}
