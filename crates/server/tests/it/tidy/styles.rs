//! A class belongs to one stylesheet: all of them are served as one, so a second one would change pages it knows nothing of.

use std::collections::BTreeMap;

const FOLDER: &str = "crates/ui/assets/ui/";
/// Stylesheets that every page may use and adjust in its own.
const SHARED: [&str; 2] = ["base.css", "parts.css"];

/// Classes that more than one stylesheet defines: whose selectors begin with them.
pub(super) fn in_stylesheets<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut owners: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut shared: Vec<String> = Vec::new();
    for (path, text) in files {
        let Some(name) = path.strip_prefix(FOLDER) else { continue };
        for class in defined(text) {
            if SHARED.contains(&name) {
                shared.push(class);
                continue;
            }
            let owners = owners.entry(class).or_default();
            if !owners.contains(&path) {
                owners.push(path);
            }
        }
    }
    let several = owners.into_iter().filter(|(class, owners)| owners.len() > 1 && !shared.contains(class));
    let complaint = |(class, owners): (String, Vec<&str>)| {
        format!("{}:1: `.{class}` is defined in {} too: rename it, or put it into parts.css", owners[1], owners[0])
    };
    several.map(complaint).collect()
}

/// The classes with which selectors begin.
fn defined(css: &str) -> Vec<String> {
    let mut classes = Vec::new();
    let text = without(css, "/*", "*/");
    let blocks: Vec<&str> = text.split('{').collect();
    // What stands behind the last block is no selector.
    for block in &blocks[..blocks.len() - 1] {
        let selectors = without(block.rsplit(['}', ';']).next().unwrap_or_default(), "(", ")");
        if selectors.trim_start().starts_with('@') {
            continue;
        }
        for selector in selectors.split(',') {
            let first = selector.split_whitespace().next().unwrap_or_default();
            let class = first.split_once('.').map(|(_, class)| class).filter(|_| !first.starts_with('#'));
            let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_');
            classes.extend(class.and_then(|class| class.split(is_end).next()).map(str::to_owned));
        }
    }
    classes
}

/// The text without what stands between these, and without these.
fn without(text: &str, begin: &str, end: &str) -> String {
    let mut parts = text.split(begin);
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        rest.push_str(part.split_once(end).map_or("", |(_, behind)| behind));
    }
    rest
}

#[test]
fn a_class_of_two_stylesheets_is_found() {
    let of = |name: &str| format!("{FOLDER}pages/{name}.css");
    let (a, b, parts) = (of("a"), of("b"), format!("{FOLDER}parts.css"));
    let said = |one: &str, other: &str| {
        in_stylesheets([(a.as_str(), one), (b.as_str(), other), (parts.as_str(), ".card { margin: 0; }")].into_iter())
    };
    for other in [
        ".own { color: red; }",
        "a, p.own > b { color: red; }",
        "@media (min-width: 1px) { .own b { color: red; } }",
        ".x { color: red; }\n/* } */ .own[data-some]:not(.x, .y) { color: red; }",
    ] {
        let found = said(".own b { margin: 0; }", other);
        assert_eq!(found.len(), 1, "{other}: {found:?}");
        assert!(found[0].starts_with(&format!("{b}:1: `.own` is defined in {a} too")), "{found:?}");
    }
    for other in
        [".mine .own { color: red; }", ".card .own { color: red; }", "#x .own { color: red; }", "/* .own {} */"]
    {
        assert_eq!(said(".own b { margin: 0; } .card { margin: 1px; }", other), Vec::<String>::new(), "{other}");
    }
}
