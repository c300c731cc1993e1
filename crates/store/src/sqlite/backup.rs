//! A copy of a database while others use it.
//!
//! `vacuum into` reads a snapshot of the database and blocks no writer, which the write-ahead log makes possible. It
//! accepts an empty file, so the file is created first, for its owner alone.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use everbell_core::Invalid;
use everbell_core::store::{StoreError, StoreResult, UnavailableReason};
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use super::{connect, errors, files, upkeep};

/// How a database begins.
const MAGIC: &[u8] = b"SQLite format 3\0";
/// The time between two reports of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

pub(crate) async fn write(from: &Path, to: &Path, report: &(dyn Fn(u64, u64) + Send + Sync)) -> StoreResult<u64> {
    upkeep::exists(from)?;
    if to.exists() {
        return Err(in_the_way(to, "already exists; name a file that does not"));
    }
    let partial = Partial::create(to)?;
    let mut connection = open(from).await?;
    let total = fs::metadata(from).map_or(0, |found| found.len());
    copy(&mut connection, &partial.path, &|| report(size(&partial.path), total)).await?;
    check(&partial.path).await?;
    partial.keep(to)
}

/// Copies, and calls `tick` now and then.
async fn copy(connection: &mut SqliteConnection, to: &Path, tick: &(dyn Fn() + Send + Sync)) -> StoreResult<()> {
    let what = format!("copying the database to {}", to.display());
    let Some(name) = to.to_str() else { return Err(in_the_way(to, "is not valid UTF-8; name another file")) };
    let mut copying = Box::pin(sqlx::query("vacuum into ?1").bind(name.to_owned()).execute(connection));
    loop {
        match tokio::time::timeout(PROGRESS_INTERVAL, &mut copying).await {
            Ok(done) => return done.map(drop).map_err(|error| errors::from_sqlx(&what, error)),
            Err(_) => tick(),
        }
    }
}

/// Whether SQLite finds every page and every index of the copy in order.
async fn check(copy: &Path) -> StoreResult<()> {
    let what = format!("checking {}", copy.display());
    let mut connection = open(copy).await?;
    let found = sqlx::query_scalar("pragma integrity_check(10)").fetch_all(&mut connection).await;
    let found: Vec<String> = found.map_err(|error| errors::from_sqlx(&what, error))?;
    connection.close().await.map_err(|error| errors::from_sqlx(&what, error))?;
    if found == ["ok"] {
        return Ok(());
    }
    Err(StoreError::Corrupt { what: format!("{what}: {}; the database itself is damaged", found.join("; ")) })
}

async fn open(path: &Path) -> StoreResult<SqliteConnection> {
    let options = connect::options().filename(path).create_if_missing(false);
    options.connect().await.map_err(|error| errors::from_sqlx(&format!("opening {}", path.display()), error))
}

/// An incomplete copy, deleted unless it is kept. Its lock shows that a process is writing it: a file without a lock
/// was left behind by a process that is gone, and is overwritten.
struct Partial {
    path: PathBuf,
    _lock: File,
}

impl Partial {
    fn create(to: &Path) -> StoreResult<Partial> {
        let mut name = to.as_os_str().to_owned();
        name.push(".partial");
        let path = PathBuf::from(name);
        let mut file = OpenOptions::new();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut file, 0o600);
        let file = file.read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = file.map_err(|error| cannot_write(&path, &error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(in_the_way(&path, "is being written by another backup; wait for it, or name another file"));
            }
            Err(TryLockError::Error(error)) => return Err(cannot_write(&path, &error)),
        }
        // Its last owner may have removed it after it was opened here.
        if !is_same(&file, &path) {
            return Err(in_the_way(&path, "was removed by another backup at this moment; try again"));
        }
        if !is_unfinished(&mut file).map_err(|error| cannot_write(&path, &error))? {
            return Err(in_the_way(&path, "already exists and is not an unfinished backup; remove it first"));
        }
        file.set_len(0).map_err(|error| cannot_write(&path, &error))?;
        Ok(Partial { path, _lock: file })
    }

    /// Gives it its final name, unless that was taken in the meantime, and returns its size.
    fn keep(self, to: &Path) -> StoreResult<u64> {
        let kept = || {
            File::open(&self.path)?.sync_all()?;
            name(&self.path, to)?;
            let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            File::open(folder)?.sync_all()?;
            fs::metadata(to)
        };
        Ok(kept().map_err(|error| cannot_write(to, &error))?.len())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // A copy that failed is worth nothing, and a whole one has another name.
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether a file is empty, or begins as a database does: a backup that was cut off.
fn is_unfinished(file: &mut File) -> io::Result<bool> {
    let mut head = Vec::new();
    file.take(MAGIC.len() as u64).read_to_end(&mut head)?;
    Ok(MAGIC.starts_with(&head))
}

/// Whether the path still names the open file.
fn is_same(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    if let (Ok(open), Ok(named)) = (file.metadata(), fs::metadata(path)) {
        return files::file_id(&open) == files::file_id(&named);
    }
    path.exists() && file.metadata().is_ok()
}

/// Unlike renaming, a link fails if there is a file of this name. Not every file system has links.
fn name(partial: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(partial, to) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => fs::rename(partial, to),
        linked => linked,
    }
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

fn in_the_way(path: &Path, why: &str) -> StoreError {
    Invalid::new("file", format!("`{}` {why}", path.display())).into()
}

fn cannot_write(path: &Path, error: &io::Error) -> StoreError {
    let what = format!("writing {}: {error}", path.display());
    let reason = match error.kind() {
        io::ErrorKind::StorageFull => UnavailableReason::DiskFull,
        _ => UnavailableReason::Unreachable,
    };
    StoreError::Unavailable { what, reason, maybe_done: false, source: None }
}
