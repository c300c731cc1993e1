//! Modules of a crate import each other one way.
//!
//! The modules are the first level of a crate's `src`, and an arrow is a path from one of them to another: `crate::name`,
//! `super::name` as far as the root, or a name that the root re-exports. Code of tests is free. The root itself is above
//! all modules. A cycle that has to stay is listed with its number of arrows and the reason, and the list may only shrink.

use std::collections::{BTreeMap, BTreeSet};

use super::lexer::{Token, lex};
use super::tree::SourceFile;

/// Modules of a crate that reach each other.
#[derive(Debug, PartialEq, Eq)]
struct Cycle<'a> {
    krate: &'a str,
    modules: Vec<&'a str>,
    /// How many arrows between these modules there are.
    arrows: usize,
}

/// A cycle that is accepted until it is broken: its crate, modules and arrows.
pub(super) type Accepted<'a> = (&'a str, &'a [&'a str], usize);

/// A module, and each module that it imports.
type Arrows<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Complains about cycles that are not accepted, and about accepted ones that have fewer modules or arrows by now.
pub(super) fn check(files: &[SourceFile], accepted: &[Accepted<'_>]) -> Vec<String> {
    let found = cycles(files);
    let is_accepted = |cycle: &&Cycle<'_>| accepted.contains(&(cycle.krate, &cycle.modules[..], cycle.arrows));
    let new = found.iter().filter(|cycle| !is_accepted(cycle)).map(|Cycle { krate, modules, arrows }| {
        format!(
            "crates/{krate}/src: {} import each other, with {arrows} arrows between them: turn an arrow round, or move what \
             both need into a module of its own; an accepted cycle may only shrink",
            modules.join(", ")
        )
    });
    let exists = |one: &&Accepted<'_>| {
        found.iter().any(|cycle| (cycle.krate, &cycle.modules[..], cycle.arrows) == (one.0, one.1, one.2))
    };
    let gone = accepted.iter().filter(|one| !exists(one)).map(|(krate, modules, arrows)| {
        format!(
            "crates/{krate}/src: {} are no cycle with {arrows} arrows: remove or lower the exception",
            modules.join(", ")
        )
    });
    new.chain(gone).collect()
}

fn cycles(files: &[SourceFile]) -> Vec<Cycle<'_>> {
    let mut crates: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for file in files {
        if let Some((krate, path)) = file.path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"))
            && std::path::Path::new(path).extension().is_some_and(|extension| extension == "rs")
        {
            crates.entry(krate).or_default().push((path, &file.text));
        }
    }
    crates.iter().flat_map(|(krate, files)| cycles_of(krate, &arrows(files))).collect()
}

fn module(path: &str) -> &str {
    path.split('/').next().unwrap_or_default().trim_end_matches(".rs")
}

fn is_root(path: &str) -> bool {
    ["lib.rs", "main.rs"].contains(&path)
}

fn arrows<'a>(files: &[(&'a str, &'a str)]) -> Arrows<'a> {
    let modules: BTreeSet<&str> =
        files.iter().filter(|(path, _)| !is_root(path)).map(|(path, _)| module(path)).collect();
    let mut exports = BTreeMap::new();
    for (_, text) in files.iter().filter(|(path, _)| is_root(path)) {
        exports.extend(re_exports(&lex(text), &modules));
    }
    let mut arrows: Arrows<'_> = modules.iter().map(|module| (*module, BTreeSet::new())).collect();
    for (path, text) in files.iter().filter(|(path, _)| !is_root(path) && !is_of_tests(path)) {
        let own = module(path);
        let named = paths_from_root(&without_tests(lex(text)), depth(path));
        let targets = named.into_iter().map(|name| exports.get(name).copied().unwrap_or(name));
        let others = targets.filter_map(|name| modules.get(name).copied()).filter(|name| *name != own);
        arrows.entry(own).or_default().extend(others);
    }
    arrows
}

fn is_of_tests(path: &str) -> bool {
    path.split('/').skip(1).any(|part| part == "tests" || part == "tests.rs")
}

/// How many `super` lead from a file to the root.
fn depth(path: &str) -> usize {
    path.matches('/').count() + usize::from(!path.ends_with("/mod.rs"))
}

/// The tokens before the tests of a file, which stand at its end.
fn without_tests(mut tokens: Vec<Token<'_>>) -> Vec<Token<'_>> {
    let cut = ["#", "[", "cfg", "(", "test", ")", "]", "mod"];
    let end = tokens.windows(cut.len() + 2).position(|window| {
        window.iter().zip(cut).all(|(token, text)| token.text == text) && window[cut.len() + 1].text == "{"
    });
    tokens.truncate(end.unwrap_or(tokens.len()));
    tokens
}

/// The names that the root takes from its modules, each with its module: `pub use module::{A, B}`.
fn re_exports<'a>(tokens: &[Token<'a>], modules: &BTreeSet<&'a str>) -> Vec<(&'a str, &'a str)> {
    let mut found = Vec::new();
    for (at, window) in tokens.windows(3).enumerate() {
        if let [use_, name, colons] = window
            && use_.text == "use"
            && colons.text == "::"
            && let Some(module) = modules.get(name.text)
        {
            found.extend(first_names(&tokens[at + 3..]).into_iter().map(|name| (name, *module)));
        }
    }
    found
}

/// The first names behind `crate::` and behind the `super::` that lead to the root.
fn paths_from_root<'a>(tokens: &[Token<'a>], depth: usize) -> Vec<&'a str> {
    let is_path = |at: usize| tokens.get(at + 1).is_some_and(|token| token.text == "::");
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let begins = at == 0 || tokens[at - 1].text != "::";
        let is_super = |at: usize| tokens.get(at).is_some_and(|token| token.text == "super") && is_path(at);
        let above = (0..=depth).take_while(|n| is_super(at + 2 * n)).count();
        let from = match tokens[at].text {
            "crate" if is_path(at) => at + 2,
            "super" if begins && above == depth => at + 2 * depth,
            _ => continue,
        };
        found.extend(first_names(tokens.get(from..).unwrap_or_default()));
    }
    found
}

/// The first name of a path, or those of a group: `a::B`, `{a, b::C}`.
fn first_names<'a>(tokens: &[Token<'a>]) -> Vec<&'a str> {
    let Some(first) = tokens.first() else { return Vec::new() };
    if first.text != "{" {
        return vec![first.text];
    }
    let (mut found, mut open, mut is_first) = (Vec::new(), 0, false);
    for token in tokens {
        match token.text {
            "{" => (open, is_first) = (open + 1, open == 0),
            "}" => open -= 1,
            "," => is_first = open == 1,
            text if is_first => {
                found.push(text);
                is_first = false;
            }
            _ => {}
        }
        if open == 0 {
            break;
        }
    }
    found
}

fn reachable<'a>(arrows: &Arrows<'a>, from: &str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut next: Vec<&str> = arrows.get(from).into_iter().flatten().copied().collect();
    while let Some(module) = next.pop() {
        if seen.insert(module) {
            next.extend(arrows.get(module).into_iter().flatten().copied());
        }
    }
    seen
}

fn cycles_of<'a>(krate: &'a str, arrows: &Arrows<'a>) -> Vec<Cycle<'a>> {
    let reached: BTreeMap<&str, _> = arrows.keys().map(|module| (*module, reachable(arrows, module))).collect();
    let mutual = |one: &str| -> Vec<&'a str> {
        let others = reached.get(one).into_iter().flatten().copied();
        others.filter(|other| reached.get(other).is_some_and(|back| back.contains(one))).collect()
    };
    let groups: BTreeSet<Vec<&str>> =
        arrows.keys().map(|module| mutual(module)).filter(|group| !group.is_empty()).collect();
    let size = |group: &[&str]| {
        let inner = |module: &&str| arrows.get(*module).into_iter().flatten().filter(|to| group.contains(to)).count();
        group.iter().map(inner).sum()
    };
    groups.into_iter().map(|modules| Cycle { krate, arrows: size(&modules), modules }).collect()
}

fn files(sources: &[(&str, &str)]) -> Vec<SourceFile> {
    let file = |(path, text): &(&str, &str)| SourceFile {
        path: format!("crates/a/src/{path}"),
        text: format!("// use crate::nothing;\n{text}"),
    };
    sources.iter().map(file).collect()
}

#[test]
fn planted_cycles_are_found() {
    let root = ("lib.rs", "mod b; mod c; mod d; pub use c::{C, E};");
    for (b, c) in [
        ("use crate::c::C;", "use crate::b::B;"),
        ("use crate::{d::D, c::{self, C}};", "fn f() { crate::b::g() }"),
        ("use super::c::C;", "use crate::d; use super::b::B;"),
        ("use crate::E;", "use crate::b;"),
    ] {
        let said = check(&files(&[root, ("b/mod.rs", b), ("c.rs", c), ("d.rs", "")]), &[]);
        assert_eq!(said.len(), 1, "{b} {c}: {said:?}");
        assert!(said[0].starts_with("crates/a/src: b, c import each other, with 2 arrows"), "{said:?}");
    }
    let deep = [("b/x/y.rs", "use super::super::super::c;"), ("c.rs", "use crate::d;"), ("d.rs", "use super::b;")];
    assert!(check(&files(&deep), &[])[0].starts_with("crates/a/src: b, c, d import each other, with 3 arrows"));
}

#[test]
fn imports_one_way_pass() {
    for (b, c) in [
        ("use crate::c::C;", "use super::C; use std::b;"),
        ("use crate::c::b;", "let text = \"crate::b\"; // crate::b"),
        ("use crate::c;", "#[cfg(test)]\nmod tests {\n use crate::b;\n}"),
        ("use super::c;", "use super::super::b;"),
    ] {
        assert_eq!(
            check(&files(&[("b.rs", b), ("c.rs", c), ("c/tests.rs", "use crate::b;")]), &[]),
            Vec::<String>::new()
        );
    }
}

#[test]
fn accepted_cycles_only_shrink() {
    let both = files(&[("b.rs", "use crate::c;"), ("c.rs", "use crate::b;")]);
    assert_eq!(check(&both, &[("a", &["b", "c"], 2)]), Vec::<String>::new());
    assert_eq!(check(&both, &[("a", &["b", "c"], 3)]).len(), 2, "an arrow is gone: the number follows");
    let three = files(&[("b.rs", "use crate::{c, d};"), ("c.rs", "use crate::b;"), ("d.rs", "use crate::b;")]);
    assert_eq!(check(&three, &[("a", &["b", "c"], 2)]).len(), 2, "a third module is new");
    let said = check(&files(&[("b.rs", "")]), &[("a", &["b", "c"], 2)]);
    assert_eq!(said, ["crates/a/src: b, c are no cycle with 2 arrows: remove or lower the exception"]);
}
