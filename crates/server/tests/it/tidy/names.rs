//! A module is named after what it is about, never after the fact that it holds things.

use super::lexer::lex;

const VAGUE: [&str; 8] = ["utils", "util", "common", "types", "manager", "service", "helpers", "misc"];

/// Files and folders below the `src` of a crate.
pub(super) fn in_path(path: &str) -> Option<String> {
    let parts: Vec<_> = path.split('/').collect();
    let ["crates", _, "src", below @ ..] = &parts[..] else {
        return None;
    };
    let stem = |part: &&str| part.split('.').next().unwrap_or_default().to_owned();
    let vague = below.iter().map(stem).find(|stem| VAGUE.contains(&stem.as_str()))?;
    Some(format!("{path}:1: `{vague}` says nothing about the content: name it after what it is about"))
}

/// `mod` declarations, wherever they stand.
pub(super) fn in_declarations(path: &str, source: &str) -> Vec<String> {
    let tokens = lex(source);
    let declared = tokens.windows(2).filter(|pair| pair[0].text == "mod").map(|pair| pair[1]);
    let complaint = |name: &str, line: usize| {
        format!("{path}:{line}: module `{name}` says nothing about its content: name it after what it is about")
    };
    declared.filter(|name| VAGUE.contains(&name.text)).map(|name| complaint(name.text, name.line)).collect()
}

#[test]
fn vague_paths_are_found() {
    for path in [
        "crates/core/src/utils.rs",
        "crates/core/src/cron/misc.rs",
        "crates/server/src/common/mod.rs",
        "crates/server/src/http/types/a/b.rs",
        "crates/store/src/helpers.sql",
    ] {
        assert!(in_path(path).is_some_and(|said| said.starts_with(&format!("{path}:1: "))), "{path}");
    }
}

#[test]
fn telling_paths_pass() {
    for path in ["crates/core/src/cron/field.rs", "crates/server/src/service_unit.rs", "docs/common.md", "README.md"] {
        assert_eq!(in_path(path), None);
    }
}

#[test]
fn vague_declarations_are_found() {
    let said = in_declarations("a.rs", "mod cron;\npub(crate) mod utils;\n#[cfg(test)]\nmod common {\n}\n");
    assert_eq!(said.len(), 2);
    assert!(said[0].starts_with("a.rs:2: module `utils`"));
    assert!(said[1].starts_with("a.rs:4: module `common`"));
}

#[test]
fn telling_declarations_pass() {
    let source = "mod cron; mod service_unit; // mod utils;\nlet common = \"mod misc;\"; use a::types::B;";
    assert!(in_declarations("a.rs", source).is_empty());
}
