//! A copy of an SQLite database beside its original: both would fire the same jobs.
//!
//! A copy that was made while a server ran still lists the instance of that server, with its host and process. If that
//! process is alive and works with another file, this database is a copy. A process that began before the instance and
//! is still there is the same one, because two processes never share an id.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use everbell::Timestamp;
use everbell_core::store::{Instance, Store};
use jiff::SignedDuration;

use crate::config::Config;
use everbell_cli::CliError;

/// How far a clock that was set meanwhile may move the beginning of a process.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(5);
/// Clock ticks of a second in `/proc/PID/stat`, on every Linux.
const TICKS_PER_SECOND: i64 = 100;

/// How another server uses this database, as far as it can be known.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It uses the same file, or no longer runs.
    Harmless,
    /// It runs on this machine, with another file.
    OriginalRuns,
    /// It may run: on another machine, or as a user whose files this process cannot see.
    Unknown,
}

/// Refuses to start on a copy while the server of the original runs, and warns if it may.
pub(super) async fn check(store: &dyn Store, config: &Config) -> Result<(), CliError> {
    let Some(file) = database_file(config) else { return Ok(()) };
    let failed = |error: everbell::StoreError| CliError::Failed { message: error.to_string(), hint: None };
    let instances = store.list_instances().await.map_err(failed)?;
    let now = store.now().await.map_err(failed)?;
    for instance in &instances {
        let Instance { host, pid, heartbeat_at, .. } = instance;
        let age = now.duration_since(*heartbeat_at).as_secs().max(0);
        let last = format!("this database was last used {age} s ago by process {pid} on {host}");
        match judge(instance, &config.engine.host, Path::new("/proc"), &file) {
            Verdict::Harmless => {}
            Verdict::OriginalRuns if !config.server.allow_copy => {
                return Err(CliError::Failed {
                    message: format!(
                        "{last}, which is still running with another file: `{}` is a copy",
                        file.display()
                    ),
                    hint: Some(format!(
                        "stop process {pid}, or set EVERBELL_DATABASE_ALLOW_COPY=true to let both fire the same jobs"
                    )),
                });
            }
            Verdict::OriginalRuns | Verdict::Unknown => {
                tracing::warn!("{last}; if that server is still running with another copy, both fire the same jobs");
            }
        }
    }
    Ok(())
}

fn database_file(config: &Config) -> Option<PathBuf> {
    let path = config.database.reveal().strip_prefix("sqlite:")?;
    let path = path.strip_prefix("//").unwrap_or(path);
    (path != ":memory:").then(|| PathBuf::from(path))
}

fn judge(instance: &Instance, own_host: &str, proc: &Path, file: &Path) -> Verdict {
    if instance.host != own_host {
        return Verdict::Unknown;
    }
    let process = proc.join(instance.pid.to_string());
    let Some(began_at) = began_at(proc, &process) else { return Verdict::Harmless };
    if instance.pid == std::process::id() || began_at > instance.started_at + CLOCK_TOLERANCE {
        return Verdict::Harmless;
    }
    match has_open(&process, file) {
        Some(true) => Verdict::Harmless,
        Some(false) => Verdict::OriginalRuns,
        None => Verdict::Unknown,
    }
}

/// Returns when a live process started.
fn began_at(proc: &Path, process: &Path) -> Option<Timestamp> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    // The name, which may be anything, is in brackets. Behind it are the state and, 19 fields later, the beginning.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    if ["Z", "X"].contains(&fields.next()?) {
        return None;
    }
    let ticks: i64 = fields.nth(18)?.parse().ok()?;
    let booted = fs::read_to_string(proc.join("stat")).ok()?;
    let booted: i64 = booted.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Timestamp::from_second(booted + ticks / TICKS_PER_SECOND).ok()
}

/// Whether a process has this file open; nothing if that cannot be seen.
fn has_open(process: &Path, file: &Path) -> Option<bool> {
    let own = fs::metadata(file).ok()?;
    let open = fs::read_dir(process.join("fd")).ok()?;
    let is_same = |found: fs::Metadata| (found.dev(), found.ino()) == (own.dev(), own.ino());
    Some(open.filter_map(|entry| fs::metadata(entry.ok()?.path()).ok()).any(is_same))
}

#[cfg(test)]
mod tests {
    use everbell_core::InstanceId;

    use super::*;

    fn instance(host: &str, pid: u32, started_at: &str) -> Instance {
        let at: Timestamp = started_at.parse().unwrap();
        Instance::new(InstanceId::new(at, [1; 10]), host.to_owned(), pid, "1".to_owned(), at)
    }

    #[test]
    fn an_original_that_runs_is_told_from_all_others() {
        let folder = std::env::temp_dir().join(format!("everbell-copies-{}", std::process::id()));
        let fd = folder.join("4000000001/fd");
        fs::create_dir_all(&fd).unwrap();
        fs::write(folder.join("stat"), "cpu 1\nbtime 1000000000\n").unwrap();
        // It began 100 s after the boot, which was at 2001-09-09T01:46:40Z.
        let behind = " 0".repeat(18);
        fs::write(folder.join("4000000001/stat"), format!("4000000001 (a (b) c) S{behind} 10000 0 0")).unwrap();
        let (ours, theirs) = (folder.join("ours.db"), folder.join("theirs.db"));
        fs::write(&ours, "").unwrap();
        fs::write(&theirs, "").unwrap();
        std::os::unix::fs::symlink(&theirs, fd.join("7")).unwrap();
        let judged =
            |host: &str, pid: u32, at: &str, file: &Path| judge(&instance(host, pid, at), "here", &folder, file);
        let (after, before) = ("2001-09-09T01:50:00Z", "2001-09-09T01:40:00Z");
        assert_eq!(judged("here", 4_000_000_001, after, &ours), Verdict::OriginalRuns);
        assert_eq!(judged("here", 4_000_000_001, after, &theirs), Verdict::Harmless, "two processes on one file");
        assert_eq!(judged("here", 4_000_000_001, before, &ours), Verdict::Harmless, "another process with that id");
        assert_eq!(judged("here", 4_000_000_002, after, &ours), Verdict::Harmless, "it is gone");
        assert_eq!(judged("there", 4_000_000_001, after, &ours), Verdict::Unknown);
        fs::remove_dir_all(&fd).unwrap();
        assert_eq!(judged("here", 4_000_000_001, after, &ours), Verdict::Unknown, "its files cannot be seen");
        fs::remove_dir_all(folder).unwrap();
    }
}
