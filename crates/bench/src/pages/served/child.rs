//! A dedicated server: the optimized binary, on the database that was filled.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::engine::Outcome;

/// The token that the bench uses.
pub(super) const TOKEN: &str = "evb_bench0123456789012345678901234567890123456789";
/// The number of served targets: half of those that the jobs name.
const TARGETS: u32 = 10;

/// Returns the path of the binary. Builds it first, so that it is never an old one.
pub(super) fn program() -> Outcome<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built =
        Command::new(cargo).args(["build", "--release", "-p", "everbell-server", "--bin", "everbell"]).status()?;
    if !built.success() {
        return Err("the server could not be built".into());
    }
    let program = std::env::current_exe()?.with_file_name("everbell");
    if program.exists() { Ok(program) } else { Err(format!("there is no {}", program.display()).into()) }
}

/// A running server, which ends with this.
pub(super) struct Served {
    child: Child,
    folder: PathBuf,
    pub(super) address: String,
}

impl Served {
    pub(super) fn start(program: &Path, database: &str) -> Outcome<Served> {
        let folder = std::env::temp_dir().join(format!("everbell-bench-pages-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let target = |number| format!("[[target]]\nlabel = \"target-{number}\"\ntype = \"log\"\n");
        fs::write(folder.join("everbell.toml"), (0..TARGETS).map(target).collect::<String>())?;
        let child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--log-level", "warn"])
            .env("EVERBELL_DATABASE_URL", database)
            .env("EVERBELL_ADMIN_TOKEN", TOKEN)
            .current_dir(&folder)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut served = Served { child, folder, address: String::new() };
        let stdout = served.child.stdout.take().ok_or("the server says nothing")?;
        let mut lines = BufReader::new(stdout).lines();
        let first = lines.next().ok_or("the server ended at once")??;
        let address = first.split_once("http://").and_then(|(_, rest)| rest.split_whitespace().next());
        address.ok_or_else(|| format!("the server said `{first}`"))?.clone_into(&mut served.address);
        // What it prints besides must go somewhere.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(served)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _already_gone = self.child.kill();
        let _ended = self.child.wait();
        let _best_effort = fs::remove_dir_all(&self.folder);
    }
}
