//! The PostgreSQL programs of this machine, and the user they run as: PostgreSQL refuses to run as root.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// The newest that Debian installed, else the ones on `PATH`.
    pub(super) fn find() -> Result<Programs, String> {
        let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = debian.map(|version| version.path().join("bin")).collect();
        folders.sort_by_key(|folder| std::cmp::Reverse(major_version(folder)));
        folders.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
        // A link on PATH leads to the folder where pg_ctl is as well.
        let real = |folder: PathBuf| folder.join("postgres").canonicalize().ok()?.parent().map(Path::to_owned);
        let has_all =
            |folder: &PathBuf| ["postgres", "initdb", "pg_ctl"].iter().all(|program| folder.join(program).is_file());
        let found = folders.into_iter().filter_map(real).find(has_all);
        found.map(|folder| Programs { folder }).ok_or_else(|| {
            format!(
                "no PostgreSQL server programs (postgres, initdb, pg_ctl) in /usr/lib/postgresql or on PATH: install \
                 them with ./scripts/test setup, or name a running server in {}",
                super::POSTGRES_URL_VARIABLE
            )
        })
    }

    /// Runs a program to its end as this user; what it says goes to a file, and comes back when it fails. To a file and
    /// not through a pipe, which a server that outlives the program would hold open.
    pub(super) fn run(
        &self,
        program: &str,
        user: &User,
        arguments: &[&str],
        environment: &[(String, String)],
        said: &Path,
    ) -> Result<(), String> {
        let mut command = Command::new(self.folder.join(program));
        command
            .args(arguments)
            .envs(environment.iter().cloned())
            .env_remove("PGDATA")
            .current_dir("/")
            .stdin(Stdio::null());
        if let User::Other { uid, gid } = user {
            command.uid(*uid).gid(*gid);
        }
        let open = || File::options().create(true).append(true).open(said);
        let mut run = || command.stdout(open()?).stderr(open()?).status();
        let status = run().map_err(|error| format!("cannot run {program}: {error}"))?;
        if status.success() {
            return Ok(());
        }
        Err(format!("{program} failed ({status}):\n{}", std::fs::read_to_string(said).unwrap_or_default()))
    }
}

fn major_version(bin: &Path) -> u32 {
    let version = bin.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    version.and_then(|name| name.split('.').next()?.parse().ok()).unwrap_or(0)
}

/// The user that the server runs as.
pub(super) enum User {
    Own,
    Other { uid: u32, gid: u32 },
}

impl User {
    /// Returns the current user, or one with fewer rights for root.
    pub(super) fn unprivileged(own_uid: u32) -> Result<User, String> {
        if own_uid != 0 {
            return Ok(User::Own);
        }
        let known = |name: &&str| Some(User::Other { uid: id("-u", name)?, gid: id("-g", name)? });
        let user = ["postgres", "nobody"].iter().find_map(known);
        user.ok_or_else(|| "PostgreSQL refuses to run as root, and there is no user postgres or nobody".to_owned())
    }

    /// Makes the folder theirs.
    pub(super) fn own(&self, folder: &Path) -> Result<(), String> {
        let User::Other { uid, gid } = self else { return Ok(()) };
        std::os::unix::fs::chown(folder, Some(*uid), Some(*gid)).map_err(|e| format!("{}: {e}", folder.display()))
    }
}

/// The number of this process's user.
pub(super) fn own_uid() -> Result<u32, String> {
    id("-u", "").ok_or_else(|| "cannot run `id -u`".to_owned())
}

fn id(what: &str, name: &str) -> Option<u32> {
    let mut command = Command::new("id");
    command.arg(what);
    if !name.is_empty() {
        command.arg(name);
    }
    let output = command.stderr(Stdio::null()).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
