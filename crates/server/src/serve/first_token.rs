//! The token that lets the first person in.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use everbell::{Everbell, StoreError};
use everbell_core::store::{AuditEntry, NewToken};

use crate::cli::CliError;
use crate::config::Config;
use crate::http::access::{new_token, token_hash};
use crate::secret::Secret;
use crate::trail;

/// Its name in the audit trail, and that of its file.
const NAME: &str = "admin";
pub(crate) const FILE: &str = "admin-token";

/// A token that was just made, and where it is written down.
pub(super) struct FirstToken {
    pub(super) token: Secret,
    pub(super) file: PathBuf,
}

/// Makes an admin token if nobody could come in otherwise: none is configured, and the database knows none.
pub(super) async fn ensure(bell: &Everbell, config: &Config) -> Result<Option<FirstToken>, CliError> {
    if config.auth.admin_token.is_some() || !config.server.role.answers() {
        return Ok(None);
    }
    let failed = |error: StoreError| CliError::Failed { message: error.to_string(), hint: None };
    if !bell.store().list_tokens().await.map_err(failed)?.is_empty() {
        return Ok(None);
    }
    let (token, file) = (new_token(), config.server.data_dir.join(FILE));
    // Written down first: a token that nobody can read again would lock everybody out.
    write(&config.server.data_dir, &file, &token).map_err(|error| CliError::Failed {
        message: format!("cannot write the first admin token to `{}`: {error}", file.display()),
        hint: Some(
            "let the server write there, choose another `data_dir`, or set EVERBELL_ADMIN_TOKEN_FILE".to_owned(),
        ),
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
        ..trail::entry("everbell", "token.create", format!("token:{NAME}"), now)
    };
    match bell.store().create_token(&new, &audit).await {
        Ok(_) => Ok(Some(FirstToken { token, file })),
        // Another instance of a first start was faster, and has told its token.
        Err(StoreError::Conflict { .. }) => {
            let _ = fs::remove_file(&file);
            Ok(None)
        }
        Err(error) => Err(failed(error)),
    }
}

/// Only the owner may read it.
fn write(folder: &Path, file: &Path, token: &Secret) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let _ = fs::remove_file(file);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    writeln!(file, "{}", token.reveal())?;
    file.sync_all()
}
