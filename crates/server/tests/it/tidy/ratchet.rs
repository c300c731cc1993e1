//! A limit on length with a list of exceptions that can only get shorter.
//!
//! An exception has a ceiling. Whoever shortens the excepted file or function lowers the ceiling in the same change,
//! and takes the exception out when it is no longer one.

use super::functions::Function;
use super::tree::SourceFile;

pub(super) struct Ratchet {
    pub(super) unit: &'static str,
    /// In lines, without an exception.
    pub(super) limit: usize,
    /// The limit that no exception may exceed.
    pub(super) never: usize,
    /// How far below its ceiling an exception may stay.
    pub(super) slack: usize,
}

pub(super) struct Measured {
    /// The name in the list of exceptions.
    key: String,
    place: String,
    lines: usize,
}

impl Measured {
    pub(super) fn file(file: &SourceFile) -> Measured {
        Measured { key: file.path.clone(), place: format!("{}:1", file.path), lines: file.text.lines().count() }
    }

    pub(super) fn function(path: &str, function: &Function) -> Measured {
        let key = format!("{path}::{}", function.name);
        Measured { key, place: format!("{path}:{}", function.line), lines: function.lines }
    }
}

impl Ratchet {
    pub(super) fn check(&self, exceptions: &[(&str, usize)], measured: &[Measured]) -> Vec<String> {
        let too_long = measured.iter().filter_map(|one| self.too_long(exceptions, one));
        let stale = exceptions.iter().filter_map(|&(key, ceiling)| self.stale(key, ceiling, measured));
        too_long.chain(stale).collect()
    }

    fn too_long(&self, exceptions: &[(&str, usize)], one: &Measured) -> Option<String> {
        let Ratchet { unit, limit, never, .. } = self;
        let Measured { key, place, lines } = one;
        let ceiling = exceptions.iter().find(|(excepted, _)| excepted == key).map(|(_, ceiling)| *ceiling);
        if lines > never {
            Some(format!("{place}: {unit} of {lines} lines, more than {never} is never accepted: split it"))
        } else if lines <= &ceiling.unwrap_or(*limit) {
            None
        } else if let Some(ceiling) = ceiling {
            Some(format!(
                "{place}: {unit} of {lines} lines, its ceiling is {ceiling}: split it, do not raise the ceiling"
            ))
        } else {
            Some(format!(
                "{place}: {unit} of {lines} lines, the limit is {limit}: split it by what its parts are about"
            ))
        }
    }

    /// An exception that allows more than is needed. Functions of one name in one file share an exception.
    fn stale(&self, key: &str, ceiling: usize, measured: &[Measured]) -> Option<String> {
        let Ratchet { unit, limit, never, slack } = self;
        let Some(longest) = measured.iter().filter(|one| one.key == key).max_by_key(|one| one.lines) else {
            return Some(format!("{key}: there is no such {unit}: remove its exception"));
        };
        let Measured { place, lines, .. } = longest;
        if lines <= limit {
            Some(format!("{place}: {unit} of {lines} lines, within the limit of {limit}: remove its exception"))
        } else if ceiling > *never {
            Some(format!("{place}: its ceiling is {ceiling}, more than {never} is never accepted: lower the ceiling"))
        } else if lines + slack < ceiling {
            Some(format!("{place}: {unit} of {lines} lines, its ceiling is {ceiling}: lower the ceiling to {lines}"))
        } else {
            None
        }
    }
}

const FILES: Ratchet = Ratchet { unit: "file", limit: 400, never: 600, slack: 40 };

fn check(exceptions: &[(&str, usize)], lines: usize) -> Vec<String> {
    FILES.check(exceptions, &[Measured::file(&SourceFile { path: "a.rs".to_owned(), text: "\n".repeat(lines) })])
}

#[test]
fn what_is_within_the_limit_passes() {
    assert!(check(&[], 400).is_empty());
}

#[test]
fn what_is_over_the_limit_needs_an_exception() {
    assert_eq!(check(&[], 401), ["a.rs:1: file of 401 lines, the limit is 400: split it by what its parts are about"]);
    assert!(check(&[("a.rs", 401)], 401).is_empty());
}

#[test]
fn an_exception_cannot_grow() {
    let said = check(&[("a.rs", 450)], 451);
    assert_eq!(said, ["a.rs:1: file of 451 lines, its ceiling is 450: split it, do not raise the ceiling"]);
}

#[test]
fn no_exception_reaches_beyond_the_end() {
    assert!(check(&[], 601)[0].contains("more than 600 is never accepted"));
    assert!(check(&[("a.rs", 700)], 650)[0].contains("more than 600 is never accepted"));
    assert!(check(&[("a.rs", 601)], 600)[0].ends_with("lower the ceiling"));
}

#[test]
fn an_exception_follows_what_it_allows() {
    assert!(check(&[("a.rs", 500)], 460).is_empty());
    assert!(check(&[("a.rs", 500)], 459)[0].ends_with("lower the ceiling to 459"));
    assert!(check(&[("a.rs", 410)], 400)[0].ends_with("remove its exception"));
    assert_eq!(check(&[("b.rs", 450)], 10), ["b.rs: there is no such file: remove its exception"]);
}

#[test]
fn functions_are_named_with_their_file() {
    let long = Function { name: "run".to_owned(), line: 7, lines: 80 };
    let short = Function { name: "run".to_owned(), line: 90, lines: 3 };
    let measured = [Measured::function("a.rs", &long), Measured::function("a.rs", &short)];
    let functions = Ratchet { unit: "function", limit: 70, never: 100, slack: 10 };
    assert!(functions.check(&[], &measured)[0].starts_with("a.rs:7: function of 80 lines"));
    assert!(functions.check(&[("a.rs::run", 80)], &measured).is_empty());
}
