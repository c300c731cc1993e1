//! Clocks that step while a process runs: `libfaketime` reads an offset from a file each time the wall clock is asked.

use std::fs;
use std::path::{Path, PathBuf};

use super::Outcome;

/// The wall clock of the processes that get its [`environment`](FakeClock::environment).
pub(crate) struct FakeClock {
    file: PathBuf,
    library: PathBuf,
}

impl FakeClock {
    /// A clock that is right at first.
    pub(crate) fn new(folder: &Path) -> Outcome<FakeClock> {
        let library = library().ok_or("libfaketime is missing: install the Debian package `faketime`")?;
        let clock = FakeClock { file: folder.join("clock"), library };
        clock.set(0)?;
        Ok(clock)
    }

    /// Puts the clock this many seconds ahead of the true time, or behind it.
    pub(crate) fn set(&self, seconds: i64) -> Outcome<()> {
        // In one step: a reader must never see half of it.
        let fresh = self.file.with_extension("new");
        fs::write(&fresh, format!("{seconds:+}\n"))?;
        fs::rename(fresh, &self.file)?;
        Ok(())
    }

    /// The variables that put a process under this clock. Elapsed time stays true, as it does when a real clock steps.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        vec![
            variable("LD_PRELOAD", &self.library.display().to_string()),
            variable("FAKETIME_TIMESTAMP_FILE", &self.file.display().to_string()),
            variable("FAKETIME_NO_CACHE", "1"),
            variable("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
            variable("NO_FAKE_STAT", "1"),
        ]
    }
}

fn library() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten().map(|entry| entry.path());
    // The variant for programs with threads.
    folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|path| path.is_file())
}
