//! The marker: a file beside a database that says that there is one.
//!
//! A database file that is missing looks like a first start, and an empty database looks healthy while no job fires.
//! The marker distinguishes the two.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use everbell_core::store::{StoreError, StoreResult, UnavailableReason};

use super::errors;

/// Stands behind the name of the database.
const SUFFIX: &str = ".marker";

/// The file that stands beside the database with this suffix.
pub(super) fn sidecar(database: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(suffix);
    PathBuf::from(name)
}

/// Refuses to create a database where one was before.
pub(super) fn check(database: &Path) -> StoreResult<()> {
    let size = |path: &Path| fs::metadata(path).map(|found| found.len());
    let state = match size(database) {
        Ok(0) => "is empty",
        Err(error) if error.kind() == io::ErrorKind::NotFound => "is missing",
        _ => return Ok(()),
    };
    let (database, marker, log) = (database.display(), sidecar(database, SUFFIX), sidecar(database, "-wal"));
    if marker.exists() {
        return Err(errors::refused(format!(
            "`{database}` {state}, but there was a database before; restore a backup to this place, or remove `{}` to \
             begin with an empty database",
            marker.display()
        )));
    }
    if size(&log).is_ok_and(|size| size > 0) {
        return Err(errors::refused(format!(
            "`{database}` {state}, but its write-ahead log `{}` is there; restore both files, or remove the log to begin \
             with an empty database",
            log.display()
        )));
    }
    Ok(())
}

/// Writes the marker, unless it is there. A database that cannot be written has none, and needs none.
pub(super) fn write(database: &Path) -> StoreResult<()> {
    let marker = sidecar(database, SUFFIX);
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.write(true).create_new(true).open(&marker).and_then(|mut file| {
        writeln!(
            file,
            "A database of everbell is beside this file. If that file is missing at a start, everbell refuses to begin with \
             an empty one.\nRemove this file to allow it."
        )
    });
    let harmless = [io::ErrorKind::AlreadyExists, io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem];
    match written {
        Err(error) if !harmless.contains(&error.kind()) => {
            let what = format!("writing `{}`: {error}", marker.display());
            let reason = UnavailableReason::Unreachable;
            Err(StoreError::Unavailable { what, reason, maybe_done: false, source: None })
        }
        _ => Ok(()),
    }
}
