//! Every type that a public signature of the library names can be named by its callers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Source without its unit tests and comments.
fn source(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let own = text.split("#[cfg(test)]").next().unwrap();
    own.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// The words of a text that begin with a capital letter.
fn types(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase())).map(str::to_owned).collect()
}

/// The statements `use …;` and `pub use …;` of these beginnings.
fn uses(source: &str, beginnings: &[&str]) -> BTreeSet<String> {
    let statements = source.split(';').map(|statement| statement.trim_start().lines().collect::<Vec<_>>());
    let mut found = BTreeSet::new();
    for lines in statements {
        let begin = lines.iter().position(|line| beginnings.iter().any(|wanted| line.starts_with(wanted)));
        if let Some(begin) = begin {
            found.append(&mut types(&lines[begin..].join(" ")));
        }
    }
    found
}

/// Heads of public functions, and public fields.
fn signatures(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find("\n    pub ") {
        rest = &rest[at + 1..];
        let end = rest.find(['{', ';']).unwrap_or(rest.len());
        let head = &rest[..end];
        // A field ends with its line; a head of a function may have several.
        let is_function = head.lines().next().unwrap().contains("fn ");
        found.push(if is_function { head.to_owned() } else { head.lines().next().unwrap().to_owned() });
    }
    found
}

#[test]
fn every_type_in_a_public_signature_has_a_name_in_the_library() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    files(&folder, &mut paths);
    let named: BTreeSet<String> = ["lib.rs", "signatures.rs", "client/mod.rs", "testing/mod.rs"]
        .iter()
        .flat_map(|file| uses(&source(&folder.join(file)), &["pub use"]))
        .collect();
    // It is sqlx's own, which callers with a pool name already.
    let named: BTreeSet<String> = named.into_iter().chain(["PgPool".to_owned()]).collect();
    assert!(named.contains("Definition") && named.contains("LeaseTerms"), "{named:?}");
    let mut seen = 0;
    let mut missing = Vec::new();
    for path in paths {
        let source = source(&path);
        let foreign = uses(&source, &["use everbell_core", "use everbell_store"]);
        for signature in signatures(&source) {
            for name in types(&signature).intersection(&foreign) {
                seen += 1;
                if !named.contains(name) {
                    missing.push(format!("{}: {name} in {}", path.display(), signature.trim()));
                }
            }
        }
    }
    assert!(seen > 100, "the search works: {seen}");
    assert!(missing.is_empty(), "export these from lib.rs or signatures.rs:\n{}", missing.join("\n"));
}
