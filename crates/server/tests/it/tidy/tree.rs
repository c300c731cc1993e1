//! The files of the repository, as a clean checkout has them.

use std::fs;
use std::path::{Path, PathBuf};

pub(super) struct SourceFile {
    /// From the root of the repository, with `/`.
    pub(super) path: String,
    /// Empty unless the file is of a kind that some rule reads.
    pub(super) text: String,
}

const READ: [&str; 5] = ["rs", "toml", "sql", "md", "css"];

/// Files that builds and runs leave behind, as in `.gitignore`.
const LEFT_BEHIND: [&str; 5] = ["target", "fuzz/target", "fuzz/corpus", "fuzz/artifacts", "everbell-data"];

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every file below `root` outside of hidden folders and build output, sorted by path.
pub(super) fn load(root: &Path) -> Vec<SourceFile> {
    let mut files = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(root.join(&folder)).unwrap_or_else(|error| panic!("read folder `{folder}`: {error}"));
        for entry in entries {
            let entry = entry.unwrap_or_else(|error| panic!("read folder `{folder}`: {error}"));
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            // A symbolic link is neither: what it points to is found on its own path, or is not ours.
            let kind = entry.file_type().unwrap_or_else(|error| panic!("look at `{path}`: {error}"));
            if kind.is_dir() && !is_skipped(&path, &entry.path()) {
                folders.push(path);
            } else if kind.is_file() {
                let text = read(&entry.path());
                files.push(SourceFile { path, text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn is_skipped(path: &str, folder: &Path) -> bool {
    let hidden = path.rsplit('/').next().is_some_and(|name| name.starts_with('.'));
    // Cargo marks its output so, whatever the folder is called.
    hidden || LEFT_BEHIND.contains(&path) || folder.join("CACHEDIR.TAG").exists()
}

fn read(file: &Path) -> String {
    let is_read = file.extension().is_some_and(|extension| READ.iter().any(|read| extension == *read));
    if !is_read {
        return String::new();
    }
    match fs::read_to_string(file) {
        Ok(text) => text,
        // An editor's temporary file may go away while the tests run.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => panic!("read `{}`: {error}", file.display()),
    }
}
