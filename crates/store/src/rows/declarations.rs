//! Columns about declarations: the last sync of a job, and the releases of a program.

use everbell_core::store::StoreResult;
use everbell_core::{App, Declaration, DeclarationHash, Invalid, Release, ReleaseId, Releases};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::corrupt;

/// `jobs.declaration`.
#[derive(Serialize, Deserialize)]
struct StoredDeclaration<'a> {
    app: std::borrow::Cow<'a, str>,
    hash: std::borrow::Cow<'a, str>,
    version: u32,
}

/// A line of `apps.releases`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredRelease {
    id: String,
    since: i64,
    seen_at: i64,
}

/// Writes the last sync of a job as JSON.
pub(crate) fn write(declaration: &Declaration) -> String {
    let Declaration { app, hash, version } = declaration;
    let stored = StoredDeclaration { app: app.as_str().into(), hash: hash.as_str().into(), version: *version };
    // Two texts and a number are always JSON.
    serde_json::to_string(&stored).unwrap_or_default()
}

/// Reads the last sync of a job.
pub(crate) fn read(text: &str) -> Result<Declaration, Invalid> {
    let stored: StoredDeclaration<'_> =
        serde_json::from_str(text).map_err(|error| Invalid::new("declaration", error.to_string()))?;
    let (app, hash) = (App::new(&stored.app)?, DeclarationHash::parse(&stored.hash)?);
    Ok(Declaration { app, hash, version: stored.version })
}

/// Writes the releases of a program as JSON.
pub(crate) fn write_releases(releases: &Releases) -> String {
    let stored = |release: &Release| StoredRelease {
        id: release.id.to_string(),
        since: release.since.as_microsecond(),
        seen_at: release.seen_at.as_microsecond(),
    };
    let stored: Vec<StoredRelease> = releases.all().iter().map(stored).collect();
    serde_json::to_string(&stored).unwrap_or_default()
}

/// Reads the releases of a program: none if there is no row.
pub(crate) fn read_releases(app: &App, text: Option<&str>) -> StoreResult<Releases> {
    let Some(text) = text else { return Ok(Releases::default()) };
    parse_releases(text).map_err(|why| corrupt("apps", app, why))
}

fn parse_releases(text: &str) -> Result<Releases, Invalid> {
    let invalid = |reason: String| Invalid::new("releases", reason);
    let stored: Vec<StoredRelease> = serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
    let time = |micros| Timestamp::from_microsecond(micros).map_err(|error| invalid(error.to_string()));
    let read = |stored: &StoredRelease| {
        let (since, seen_at) = (time(stored.since)?, time(stored.seen_at)?);
        Ok(Release { id: ReleaseId::parse(&stored.id)?, since, seen_at })
    };
    stored.iter().map(read).collect::<Result<_, Invalid>>().map(Releases::new)
}
