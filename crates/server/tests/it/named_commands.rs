//! Every command that pages, documents and alerts name exists, with its flags left aside.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::binary::ran;
use crate::server::{Folder, quiet};

/// The files below a folder with one of these extensions.
fn files(folder: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, extensions, found);
        } else if path.extension().is_some_and(|own| extensions.iter().any(|wanted| own == *wanted)) {
            found.push(path);
        }
    }
}

/// The commands that a text names, as the words of subcommands: ``` `everbell jobs explain JOB` ``` is `jobs explain`.
fn commands(text: &str, found: &mut BTreeSet<String>) {
    for mark in ["`everbell ", "<code>everbell ", "$ everbell "] {
        for rest in text.split(mark).skip(1) {
            let is_name = |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase());
            let words = rest.split(['`', '<', '\n', '|', ';']).next().unwrap_or_default().split(' ');
            let words: Vec<&str> = words.take_while(is_name).take(2).collect();
            // A name that stands for itself, as in `daily-report`, is an argument.
            if words.iter().all(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-')) && !words.is_empty() {
                found.insert(words.join(" "));
            }
        }
    }
}

#[test]
fn every_command_that_is_named_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = Vec::new();
    files(&root.join("docs"), &["md"], &mut paths);
    files(&root.join("ops"), &["yml", "md", "service"], &mut paths);
    files(&root.join("grafana"), &["json", "md"], &mut paths);
    files(&root.join("crates/ui/templates"), &["html"], &mut paths);
    for folder in ["cli", "everbell", "http", "server", "store", "ui", "wire"] {
        files(&root.join("crates").join(folder).join("src"), &["rs"], &mut paths);
    }
    paths.push(root.join("README.md"));
    let mut named = BTreeSet::new();
    for path in &paths {
        commands(&fs::read_to_string(path).unwrap(), &mut named);
    }
    assert!(named.len() > 40 && named.contains("jobs explain"), "{named:?}");
    let folder = Folder::new();
    let exists = |command: &str| {
        let mut help = quiet(folder.path());
        ran(help.args(command.split(' ')).arg("--help").output().unwrap()).code == Some(0)
    };
    // The server starts it by itself, and it takes no flags.
    named.remove("supervise-groups");
    let missing: Vec<&String> = named.iter().filter(|command| !exists(command)).collect();
    assert!(missing.is_empty(), "no such commands: {missing:?}");
}

#[test]
fn commands_are_found_in_text() {
    let mut found = BTreeSet::new();
    commands("see `everbell jobs explain JOB TIME`, <code>everbell reload</code>, everbell is well", &mut found);
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["jobs explain", "reload"]);
}
