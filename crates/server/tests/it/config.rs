//! `everbell config`, through the real binary.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

mod check;
mod files;
mod show;

use std::fs;
use std::path::{Path, PathBuf};

use crate::binary::{Ran, command, document, ran};

/// A working directory of its own.
struct Folder(PathBuf);

impl Folder {
    /// The name is that of the test, so that tests do not meet.
    fn new(name: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("config").join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// A folder whose `everbell.toml` has this text.
    fn with(name: &str, text: &str) -> Folder {
        let folder = Folder::new(name);
        folder.write("everbell.toml", text);
        folder
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.run_with(args, &[])
    }

    fn run_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Ran {
        let mut command = command(&[&["config"], args].concat());
        ran(command.current_dir(&self.0).envs(variables.iter().copied()).output().unwrap())
    }

    /// Returns the error message of a check that must refuse.
    #[track_caller]
    fn refusal(&self, args: &[&str], variables: &[(&str, &str)]) -> String {
        let ran = self.run_with(&[&["check"], args].concat(), variables);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
        ran.stderr
    }
}

/// Lists the files of a folder, to see that nothing was created.
fn names(folder: &Folder) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
