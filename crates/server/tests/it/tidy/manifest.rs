//! The little of `Cargo.toml` that the rules ask for.

/// Is this the manifest of a crate of the workspace?
pub(super) fn is_of_crate(path: &str) -> bool {
    matches!(path.split('/').collect::<Vec<_>>()[..], ["crates", _, "Cargo.toml"])
}

/// `[lints] workspace = true`, or a complaint.
pub(super) fn lints(path: &str, manifest: &str) -> Option<String> {
    let found = entries(manifest).any(|entry| entry.key == ["lints", "workspace"] && entry.value == "true");
    let complaint = || format!("{path}:1: the lints of the workspace do not apply: add `[lints] workspace = true`");
    (!found).then(complaint)
}

/// The line and name of what the crate's own code and its build script depend on, once per dependency. A dependency
/// under another name (`db = { package = "sqlx" }`) is also there under its own.
pub(super) fn dependencies(manifest: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for entry in entries(manifest) {
        let Some(table) = entry.key.iter().position(|part| part == "dependencies" || part == "build-dependencies")
        else {
            continue;
        };
        let mut names: Vec<&str> = entry.key.get(table + 1).map(String::as_str).into_iter().collect();
        let is_package = entry.key.get(table + 2).is_some_and(|part| part == "package");
        let package = if is_package { Some(entry.value) } else { inline_package(entry.value) };
        names.extend(package.map(|name| name.trim_matches(['"', '\''])));
        for name in names {
            if !found.iter().any(|(_, known)| known == name) {
                found.push((entry.line, name.to_owned()));
            }
        }
    }
    found
}

/// The name in `{ version = "1", package = "name" }`.
fn inline_package(value: &str) -> Option<&str> {
    let pairs = value.strip_prefix('{')?.split([',', '}']);
    let value = pairs.filter_map(|pair| pair.split_once('=')).find(|(key, _)| key.trim() == "package")?.1;
    Some(value.trim())
}

struct Entry<'a> {
    line: usize,
    /// With the table in front: `["dependencies", "jiff", "workspace"]`.
    key: Vec<String>,
    value: &'a str,
}

/// The `key = value` lines. The further lines of a value that takes several are left out.
fn entries(manifest: &str) -> impl Iterator<Item = Entry<'_>> {
    let mut table = Vec::new();
    manifest.lines().enumerate().filter_map(move |(index, line)| {
        let line = without_comment(line).trim();
        if let Some(header) = line.strip_prefix('[').filter(|rest| rest.ends_with(']')) {
            table = key_parts(header.trim_matches(['[', ']']));
            return None;
        }
        let (key, value) = line.split_once('=')?;
        let key = table.iter().cloned().chain(key_parts(key)).collect();
        Some(Entry { line: index + 1, key, value: value.trim() })
    })
}

fn without_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') => return &line[..at],
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
    }
    line
}

/// `target.'cfg(unix)'.dependencies` in its parts; a dot inside of quotes separates nothing.
fn key_parts(key: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    for c in key.trim().chars() {
        match (quote, c) {
            (None, '.') => parts.push(String::new()),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => parts.last_mut().expect("there is always a last part").push(c),
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

#[test]
fn the_manifests_of_crates_are_known_by_their_path() {
    assert!(is_of_crate("crates/core/Cargo.toml"));
    assert!(!is_of_crate("Cargo.toml"));
    assert!(!is_of_crate("crates/core/tests/Cargo.toml"));
}

#[test]
fn a_crate_without_the_lints_is_found() {
    for manifest in ["", "[lints]\nworkspace = false", "[package]\nworkspace = true", "# [lints]\n# workspace = true"] {
        let said = lints("crates/core/Cargo.toml", manifest);
        assert!(said.is_some_and(|said| said.starts_with("crates/core/Cargo.toml:1: ")), "{manifest}");
    }
}

#[test]
fn a_crate_with_the_lints_passes() {
    for manifest in ["[package]\nname = \"a\"\n\n[lints]\nworkspace = true", "lints.workspace = true # all of them"] {
        assert_eq!(lints("crates/core/Cargo.toml", manifest), None, "{manifest}");
    }
}

#[test]
fn dependencies_are_found_however_they_are_written() {
    let manifest = r#"
        [package]
        name = "a" # "b"
        [dependencies]
        plain = "1"
        dotted.workspace = true
        inline = { version = "1", features = ["c"] }
        renamed = { version = "1", package = "real" }
        "quoted" = "1"
        [dependencies.table]
        version = "1"
        package = "true-name"
        [target.'cfg(target_os = "a.b")'.dependencies]
        targeted = "1"
        [build-dependencies]
        built = "1"
        [dev-dependencies]
        free = "1"
        [features]
        default = ["dep:plain"]
    "#;
    let names: Vec<_> = dependencies(manifest).into_iter().map(|(_, name)| name).collect();
    let expected =
        ["plain", "dotted", "inline", "renamed", "real", "quoted", "table", "true-name", "targeted", "built"];
    assert_eq!(names, expected);
}
