//! Links between the documents of the repository lead to files that exist.

/// The links of a Markdown page to nowhere. `exists` is asked with paths from the root of the repository.
pub(super) fn broken(page: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut complaints = Vec::new();
    for (line, target) in targets(text) {
        let says = match resolve(page, &target) {
            Target::Elsewhere => continue,
            Target::File(path) if exists(&path) => continue,
            Target::File(path) => format!("there is no {path}: correct the link or write the file"),
            Target::Outside => "leads out of the repository: link to a file in it, relative to this page".to_owned(),
        };
        complaints.push(format!("{page}:{line}: link to `{target}`: {says}"));
    }
    complaints
}

enum Target {
    /// A web address, or an anchor of the same page.
    Elsewhere,
    File(String),
    Outside,
}

fn resolve(page: &str, target: &str) -> Target {
    let path = target.split(['#', '?']).next().unwrap_or_default();
    let is_address = path.split('/').next().is_some_and(|first| first.contains(':'));
    if path.is_empty() || is_address || target.starts_with("//") {
        return Target::Elsewhere;
    }
    if path.starts_with('/') {
        return Target::Outside;
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return Target::Outside;
                }
            }
            name => parts.push(name),
        }
    }
    Target::File(parts.join("/"))
}

/// Line and target of each link, outside of code.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fence = None;
    for (index, line) in text.lines().enumerate() {
        let marker = ["```", "~~~"].into_iter().find(|marker| line.trim_start().starts_with(marker));
        match (fence, marker) {
            (None, Some(_)) => fence = marker,
            (Some(_), _) if fence == marker => fence = None,
            (Some(_), _) => {}
            (None, None) => found.extend(targets_in_line(line).into_iter().map(|target| (index + 1, target))),
        }
    }
    found
}

/// `[text](target "title")`, `[name]: target`, and the `href` and `src` of HTML.
fn targets_in_line(line: &str) -> Vec<String> {
    // Between an odd and an even backtick is code.
    let prose: String = line.split('`').step_by(2).collect();
    let mut found = Vec::new();
    for (before, end) in [("](", ')'), ("href=\"", '"'), ("src=\"", '"')] {
        let behind = prose.split(before).skip(1);
        found.extend(behind.map(|rest| rest.split(end).next().unwrap_or_default()));
    }
    let definition = prose.trim_start().strip_prefix('[').filter(|name| !name.starts_with('^'));
    found.extend(definition.and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target));
    // A title may follow the target.
    let bare = |target: &str| target.split_whitespace().next().map(|first| first.trim_matches(['<', '>']).to_owned());
    found.into_iter().filter_map(bare).collect()
}

fn check(page: &str, text: &str) -> Vec<String> {
    broken(page, text, |path| ["README.md", "docs", "docs/api.md", "docs/ui.png"].contains(&path))
}

#[test]
fn links_to_nowhere_are_found() {
    for (page, text) in [
        ("README.md", "see [a](docs/gone.md)"),
        ("README.md", "see [a](docs/gone.md#part \"title\") and [b](docs/api.md)"),
        ("README.md", "![picture](<ui.png>)"),
        ("README.md", "see [`code`](gone.rs)"),
        ("README.md", "[a]: gone.md"),
        ("README.md", "<img src=\"ui.png\" alt=\"\">"),
        ("docs/api.md", "[a](docs/api.md)"),
        ("docs/api.md", "[a](../../README.md)"),
        ("README.md", "[a](/docs/api.md)"),
    ] {
        let said = check(page, &format!("# Title\n\n{text}\n"));
        assert_eq!(said.len(), 1, "{page}: {text}: {said:?}");
        assert!(said[0].starts_with(&format!("{page}:3: link to `")), "{said:?}");
    }
}

#[test]
fn links_to_somewhere_pass() {
    for (page, text) in [
        ("README.md", "[a](docs/api.md) [b](./docs/api.md#part) ![c](docs/ui.png \"title\") [d](docs/)"),
        ("docs/api.md", "[a](../README.md) [b](api.md) [c](#part)"),
        ("README.md", "[a](https://example.org/gone.md) <mailto:a@example.org> [b](mailto:a@example.org)"),
        ("README.md", "[a]: docs/api.md\n[^note]: gone away"),
        ("README.md", "`[a](gone.md)`\n```sh\n[a](gone.md)\n~~~\n[a](gone.md)\n```\n"),
        ("README.md", "<a href=\"docs/api.md\">a</a>"),
    ] {
        assert!(check(page, text).is_empty(), "{page}: {text}: {:?}", check(page, text));
    }
}
