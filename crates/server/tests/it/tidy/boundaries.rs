//! Libraries that each crate may name, in its code and in the `[dependencies]` of its manifest.
//!
//! `[dev-dependencies]` are free, and so are comments, strings and documentation examples.

use super::lexer::{Token, lex};
use super::manifest::dependencies;

enum Scope {
    OnlyIn(&'static [&'static str]),
    NotIn(&'static [&'static str]),
}

struct Boundary {
    /// The name in code. `serde` means `serde_json` as well: a library with its companions.
    library: &'static str,
    scope: Scope,
    reason: &'static str,
}

/// Programs as other people write them, which use whatever they like.
const HOSTS: &str = "tests/hosts/";

const CORE: Scope = Scope::NotIn(&["crates/core/src/"]);
const PURE: Scope = Scope::NotIn(&["crates/core/src/", "crates/wire/src/"]);

const BOUNDARIES: [Boundary; 9] = [
    Boundary {
        library: "sqlx",
        scope: Scope::OnlyIn(&[
            "crates/store/",
            "crates/bench/",
            "crates/everbell/examples/",
            "crates/everbell/tests/",
        ]),
        reason: "storage is seen through the `Store` trait",
    },
    Boundary {
        library: "axum",
        scope: Scope::OnlyIn(&["crates/http/", "crates/ui/", "crates/server/", "crates/everbell/examples/"]),
        reason: "HTTP is answered by the crates `http` and `ui`",
    },
    Boundary { library: "serde", scope: CORE, reason: "wire and row shapes are separate types in the outer crates" },
    Boundary {
        library: "clap",
        scope: Scope::OnlyIn(&["crates/cli/", "crates/server/"]),
        reason: "the command line is in the crates `cli` and `server`",
    },
    Boundary {
        library: "askama",
        scope: Scope::OnlyIn(&["crates/ui/", "crates/http/"]),
        reason: "HTML is made by the crates `ui` and `http`",
    },
    Boundary { library: "tokio", scope: PURE, reason: "it decides or describes, the outer crates wait" },
    Boundary { library: "tracing", scope: PURE, reason: "it returns facts, the loops log them" },
    Boundary { library: "rand", scope: PURE, reason: "a seed is an argument" },
    Boundary { library: "getrandom", scope: PURE, reason: "a seed is an argument" },
];

impl Boundary {
    fn allows(&self, path: &str) -> bool {
        match self.scope {
            _ if path.starts_with(HOSTS) => true,
            Scope::OnlyIn(folders) => folders.iter().any(|folder| path.starts_with(folder)),
            Scope::NotIn(folders) => !folders.iter().any(|folder| path.starts_with(folder)),
        }
    }

    fn covers(&self, name: &str) -> bool {
        name.strip_prefix(self.library).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    }
}

fn broken(path: &str, name: &str) -> Option<&'static Boundary> {
    BOUNDARIES.iter().find(|boundary| boundary.covers(name) && !boundary.allows(path))
}

pub(super) fn in_code(path: &str, source: &str) -> Vec<String> {
    let tokens = lex(source);
    let complaint = |at: usize| {
        let Token { text: name, line, .. } = tokens[at];
        let reason = broken(path, name)?.reason;
        Some(format!("{path}:{line}: `{name}` may not be named here, {reason}: move this to a crate that may"))
    };
    (0..tokens.len()).filter(|&at| is_crate_name(&tokens, at)).filter_map(complaint).collect()
}

/// Is this token where the name of a crate can stand: `name::`, `use name`, `extern crate name`, `#[name`? Behind another
/// part of a path (`crate::name::`) it is the name of a module.
fn is_crate_name(tokens: &[Token<'_>], at: usize) -> bool {
    let is_rooted = follows(tokens, at, &["::"]);
    let start = if is_rooted { at - 1 } else { at };
    // `::name` is a crate as well, unless a part of a path is glued to its front.
    let is_part = |before: &Token<'_>| (before.is_word() || before.text == ">") && before.touches(&tokens[start]);
    if is_rooted && start.checked_sub(1).is_some_and(|before| is_part(&tokens[before])) {
        return false;
    }
    let introductions: [&[&str]; 4] = [&["use"], &["extern", "crate"], &["#", "["], &["#", "!", "["]];
    tokens.get(at + 1).is_some_and(|next| next.text == "::")
        || introductions.iter().any(|introduction| follows(tokens, start, introduction))
}

/// Do exactly these texts stand in front of `at`?
fn follows(tokens: &[Token<'_>], at: usize, texts: &[&str]) -> bool {
    let start = at.checked_sub(texts.len());
    start.is_some_and(|start| tokens[start..at].iter().map(|token| token.text).eq(texts.iter().copied()))
}

/// A dependency is for the code in `src`, so it is judged by that folder.
pub(super) fn in_manifest(path: &str, manifest: &str) -> Vec<String> {
    let code = path.replace("Cargo.toml", "src/");
    let complaint = |(line, name): (usize, String)| {
        let reason = broken(&code, &name.replace('-', "_"))?.reason;
        Some(format!(
            "{path}:{line}: this crate may not depend on `{name}`, {reason}: remove it, or make it a dev-dependency"
        ))
    };
    dependencies(manifest).into_iter().filter_map(complaint).collect()
}

#[test]
fn a_library_out_of_its_place_is_found() {
    for (path, source) in [
        ("crates/core/src/job.rs", "use serde::Serialize;"),
        ("crates/core/src/job.rs", "let x = serde_json::json!({});"),
        ("crates/core/src/job.rs", "#[serde(default)]\nstruct A;"),
        ("crates/core/src/job.rs", "use ::tokio::time;"),
        ("crates/core/src/job.rs", "return ::tokio::spawn(x)"),
        ("crates/core/src/job.rs", "fn a(x: Option<tracing::Span>) {}"),
        ("crates/core/src/job.rs", "fn a(x: Option<::tracing::Span>) {}"),
        ("crates/core/src/job.rs", "#![serde(default)]"),
        ("crates/core/src/job.rs", "use rand as dice;"),
        ("crates/core/src/job.rs", "extern crate getrandom;"),
        ("crates/core/src/cron/tests.rs", "use {std::fmt, rand_core::RngCore};"),
        ("crates/everbell/src/client.rs", "fn a() -> sqlx::Result<()> {}"),
        ("crates/server/tests/it/main.rs", "use sqlx::PgPool;"),
        ("crates/everbell/tests/it/main.rs", "use axum::Router;"),
        ("crates/store/src/lib.rs", "#[axum::debug_handler]"),
    ] {
        let said = in_code(path, &format!("\n{source}\n"));
        assert_eq!(said.len(), 1, "{path}: {source}: {said:?}");
        assert!(said[0].starts_with(&format!("{path}:2: `")), "{said:?}");
    }
}

#[test]
fn a_library_in_its_place_passes() {
    for (path, source) in [
        ("crates/store/src/lib.rs", "use sqlx::PgPool;"),
        ("crates/bench/src/main.rs", "use sqlx::PgPool;"),
        ("crates/server/src/main.rs", "use axum::Router; use tokio::net; use serde::Serialize;"),
        ("crates/everbell/examples/web.rs", "use axum::Router;"),
        ("crates/core/tests/it/main.rs", "use serde_json::Value;"),
    ] {
        assert!(in_code(path, source).is_empty(), "{path}: {source}");
    }
}

#[test]
fn a_word_that_names_no_crate_passes() {
    for source in [
        "//! Not a `serde::Serialize` in sight. /* tokio::spawn */",
        "let text = \"tokio::spawn\";",
        "let rand = 4; rand + rand",
        "use crate::tracing; crate::rand::seed()",
        "use randomness::x; serdeless::y()",
        "fn tokio() { self.tracing() }",
        "let x = [rand]; let y = vec![rand];",
        "Self::tokio::x; Vec::<u8>::rand::y",
    ] {
        assert!(in_code("crates/core/src/job.rs", source).is_empty(), "{source}");
    }
}

#[test]
fn a_dependency_out_of_its_place_is_found() {
    for (path, manifest) in [
        ("crates/core/Cargo.toml", "[dependencies]\nserde.workspace = true"),
        ("crates/core/Cargo.toml", "[dependencies]\ntracing-subscriber = \"1\""),
        ("crates/core/Cargo.toml", "[build-dependencies]\nrand = \"1\""),
        ("crates/everbell/Cargo.toml", "[dependencies]\ndb = { package = \"sqlx\", version = \"1\" }"),
        ("crates/everbell/Cargo.toml", "[dependencies.axum]\nversion = \"1\""),
    ] {
        let said = in_manifest(path, manifest);
        assert_eq!(said.len(), 1, "{path}: {manifest}: {said:?}");
        assert!(said[0].starts_with(&format!("{path}:2: this crate may not depend on")), "{said:?}");
    }
}

#[test]
fn a_dependency_in_its_place_passes() {
    for (path, manifest) in [
        (
            "crates/core/Cargo.toml",
            "[dependencies]\njiff = \"1\" # not tokio = \"1\"\n[dev-dependencies]\nserde = \"1\"",
        ),
        ("crates/store/Cargo.toml", "[dependencies]\nsqlx = \"1\"\nserde = \"1\""),
        ("crates/everbell/Cargo.toml", "[dependencies]\ntokio = \"1\"\n[dev-dependencies]\naxum = \"1\""),
        ("crates/server/Cargo.toml", "[dependencies]\naxum = \"1\""),
    ] {
        assert!(in_manifest(path, manifest).is_empty(), "{path}: {manifest}");
    }
}
