//! The folder that the processes of one build and user share, and the locks in it.
//!
//! The watchdog removes the folder, so a lock may turn out to be on a file that is gone: then there is a new folder, or
//! there will be one.

use std::fs::{self, DirBuilder, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::programs::own_uid;

/// Sockets have short names (about 100 bytes), which a folder below a long `TMPDIR` would not leave room for.
const MAX_TEMPORARY_BYTES: usize = 40;
const MAX_ATTEMPTS: usize = 1000;

pub(super) struct Folder {
    path: PathBuf,
    pub(super) uid: u32,
}

impl Folder {
    /// The one for this build and user; `kind` keeps servers with other settings apart. It need not exist yet.
    pub(super) fn shared(kind: &str) -> Result<Folder, String> {
        let uid = own_uid()?;
        let program = std::env::current_exe().map_err(|e| format!("cannot find the running program: {e}"))?;
        let mut hasher = DefaultHasher::new();
        build_of(&program).hash(&mut hasher);
        let name = format!("everbell-{kind}-{uid}-{:016x}", hasher.finish());
        let temporary = Some(std::env::temp_dir()).filter(|path| path.as_os_str().len() <= MAX_TEMPORARY_BYTES);
        Ok(Folder { path: temporary.unwrap_or_else(|| PathBuf::from("/tmp")).join(name), uid })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until no other process starts or stops the server. The folder exists as long as this is held.
    pub(super) fn lock_start(&self) -> Result<File, String> {
        for _ in 0..MAX_ATTEMPTS {
            self.create()?;
            let path = self.path.join("start.lock");
            let file = match open_lock(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other.map_err(|e| format!("{}: {e}", path.display()))?,
            };
            file.lock().map_err(|e| format!("{}: {e}", path.display()))?;
            if is_same(&file, &path) {
                return Ok(file);
            }
        }
        Err(format!("{} does not stay", self.path.display()))
    }

    /// Says that this process needs the server, until the file is closed.
    pub(super) fn lock_use(&self) -> Result<File, String> {
        let path = self.path.join("users.lock");
        let lock = || {
            let file = open_lock(&path)?;
            file.lock_shared()?;
            Ok(file)
        };
        lock().map_err(|e: io::Error| format!("{}: {e}", path.display()))
    }

    /// Does a watchdog hold its lock?
    pub(super) fn is_watched(&self) -> bool {
        open_lock(&self.path.join("watchdog.lock")).is_ok_and(|file| file.try_lock().is_err())
    }

    fn create(&self) -> Result<(), String> {
        let shown = self.path.display();
        match DirBuilder::new().mode(0o700).create(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(format!("{shown}: {error}")),
            Ok(()) => {
                // The server's user has to reach its folder inside.
                let open = fs::Permissions::from_mode(0o711);
                fs::set_permissions(&self.path, open).or_else(ignore_gone).map_err(|e| format!("{shown}: {e}"))
            }
            // In a folder that everyone may write to, another user may have been first.
            Err(_) => match fs::symlink_metadata(&self.path) {
                Ok(found) if !found.is_dir() || found.uid() != self.uid => {
                    Err(format!("{shown} is not a folder of this user: remove it"))
                }
                _ => Ok(()),
            },
        }
    }
}

fn ignore_gone(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

fn open_lock(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

fn is_same(file: &File, path: &Path) -> bool {
    let of = |metadata: &fs::Metadata| (metadata.dev(), metadata.ino());
    matches!((file.metadata(), fs::metadata(path)), (Ok(open), Ok(named)) if of(&open) == of(&named))
}

/// `target` for `target/debug/deps/it-0123` and for `target/debug/everbell`.
fn build_of(program: &Path) -> &Path {
    let folder = program.parent().unwrap_or(program);
    let is_inner = folder.ends_with("deps") || folder.ends_with("examples");
    let profile = if is_inner { folder.parent().unwrap_or(folder) } else { folder };
    profile.parent().unwrap_or(profile)
}
