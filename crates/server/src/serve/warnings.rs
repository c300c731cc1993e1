//! Warnings about the way the server runs, which a person should change.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::config::Config;

/// Logs what is allowed and unwise.
pub(super) fn log(config: &Config) {
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    if rustix::process::geteuid().is_root() {
        tracing::warn!(
            "running as root, and so do the programs of `command` targets; run the server as a dedicated user"
        );
    }
    for (path, content) in private_files(config) {
        if is_readable_by_all(&path) {
            let path = path.display();
            tracing::warn!(
                "every user of this machine can read `{path}`, which holds {content}; run `chmod 600 {path}`"
            );
        }
    }
}

/// Private files, with their content.
fn private_files(config: &Config) -> Vec<(PathBuf, &'static str)> {
    let mut files = vec![(config.server.data_dir.join(everbell_cli::TOKEN_FILE), "an admin token")];
    let address = config.database.reveal();
    if let Some(path) = address.strip_prefix("sqlite:").filter(|path| !path.contains(":memory:")) {
        files.push((PathBuf::from(path.strip_prefix("//").unwrap_or(path)), "the database"));
    }
    files
}

fn is_readable_by_all(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o004 != 0)
}
