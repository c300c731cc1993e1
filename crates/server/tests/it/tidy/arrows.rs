//! Arrows point one way: which crate may depend on which, and which folder may import which.
//!
//! Cargo refuses cycles between crates. It does not refuse an arrow that nobody wants, nor any import within a crate.

use super::lexer::{Token, lex};
use super::manifest::dependencies;

/// A crate and the crates of this workspace that its `[dependencies]` may name. `[dev-dependencies]` are free.
const CRATES: [(&str, &[&str]); 11] = [
    ("core", &[]),
    ("store", &["everbell-core"]),
    ("everbell", &["everbell-core", "everbell-store"]),
    ("wire", &["everbell-core"]),
    ("observe", &["everbell", "everbell-core", "everbell-wire"]),
    ("http", &["everbell", "everbell-core", "everbell-observe", "everbell-wire"]),
    ("ui", &["everbell", "everbell-core", "everbell-http", "everbell-observe", "everbell-wire"]),
    ("client", &["everbell-core", "everbell-wire"]),
    ("cli", &["everbell-client", "everbell-core", "everbell-wire"]),
    (
        "server",
        &[
            "everbell",
            "everbell-cli",
            "everbell-core",
            "everbell-http",
            "everbell-observe",
            "everbell-ui",
            "everbell-wire",
        ],
    ),
    ("bench", &["everbell", "everbell-core", "everbell-server", "everbell-store"]),
];

/// Modules of a crate, and the modules of the same crate that they may not import.
struct Layer {
    krate: &'static str,
    /// `*` means every module but the root.
    modules: &'static [&'static str],
    above: &'static [&'static str],
}

const LAYERS: [Layer; 11] = [
    Layer { krate: "core", modules: &["cron", "zone"], above: &["plan", "org", "change", "settle", "store", "job"] },
    Layer { krate: "core", modules: &["plan", "org", "change", "settle", "rearm", "repair"], above: &["store"] },
    Layer { krate: "store", modules: &["rows"], above: &["memory", "postgres", "sqlite"] },
    Layer { krate: "store", modules: &["memory", "sqlite"], above: &["postgres"] },
    Layer { krate: "store", modules: &["memory", "postgres"], above: &["sqlite"] },
    Layer { krate: "everbell", modules: &["engine"], above: &["client", "builder", "bell", "sync"] },
    Layer { krate: "http", modules: &["*"], above: &["api"] },
    Layer { krate: "ui", modules: &["*"], above: &["pages"] },
    Layer { krate: "ui", modules: &["chart", "markup"], above: &["request", "frame", "session"] },
    Layer {
        krate: "cli",
        modules: &["connection", "output", "online", "times", "words"],
        above: &["jobs", "runs", "orgs", "doctor", "next", "tokens", "sessions"],
    },
    Layer { krate: "server", modules: &["config", "notify", "targets"], above: &["serve", "commands"] },
];

/// Complains about dependencies that point the wrong way.
pub(super) fn in_manifest(path: &str, manifest: &str) -> Vec<String> {
    let krate = path.trim_start_matches("crates/").trim_end_matches("/Cargo.toml");
    let allowed = CRATES.iter().find(|(name, _)| *name == krate).map(|(_, allowed)| *allowed);
    let ours = dependencies(manifest).into_iter().filter(|(_, name)| name.starts_with("everbell"));
    match allowed {
        None => vec![format!("{path}:1: this crate has no place among the arrows: add it to `CRATES`")],
        Some(allowed) => ours
            .filter(|(_, name)| !allowed.contains(&name.as_str()))
            .map(|(line, name)| format!("{path}:{line}: `{krate}` may not depend on `{name}`: arrows point one way"))
            .collect(),
    }
}

/// Complains about imports of modules that stand above.
pub(super) fn in_code(path: &str, source: &str) -> Vec<String> {
    let mut parts = path.split('/');
    let (Some("crates"), Some(krate), Some("src"), Some(first)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Vec::new();
    };
    let module = first.trim_end_matches(".rs");
    let is_root = ["lib", "main"].contains(&module);
    let holds = |layer: &&Layer| {
        let named = layer.modules.contains(&module) || (layer.modules == ["*"] && !is_root);
        layer.krate == krate && named && !layer.above.contains(&module)
    };
    let layers: Vec<&Layer> = LAYERS.iter().filter(holds).collect();
    let tokens = lex(source);
    let complaint = |Token { text, line, .. }: &Token<'_>| {
        layers.iter().find(|layer| layer.above.contains(text))?;
        Some(format!("{path}:{line}: `{module}` may not import `{text}`, which stands above it"))
    };
    imported(&tokens).into_iter().filter_map(complaint).collect()
}

/// The first names behind `crate::`, also those of a group: `crate::{a, b::C}`.
fn imported<'t, 's>(tokens: &'t [Token<'s>]) -> Vec<&'t Token<'s>> {
    let mut found = Vec::new();
    for (at, pair) in tokens.windows(2).enumerate() {
        if pair[0].text != "crate" || pair[1].text != "::" {
            continue;
        }
        let Some(next) = tokens.get(at + 2) else { continue };
        if next.text != "{" {
            found.push(next);
            continue;
        }
        let (mut depth, mut is_first) = (0, false);
        for token in &tokens[at + 2..] {
            match token.text {
                "{" => (depth, is_first) = (depth + 1, depth == 0),
                "}" => depth -= 1,
                "," => is_first = depth == 1,
                _ if is_first => {
                    found.push(token);
                    is_first = false;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    found
}

#[test]
fn imports_of_a_layer_above_are_found() {
    for (path, source) in [
        ("crates/core/src/cron/slots.rs", "use crate::plan::Plan;"),
        ("crates/core/src/plan/mod.rs", "use crate::{ids::JobId, store::Store};"),
        ("crates/store/src/memory/runs.rs", "let x = crate::sqlite::connect();"),
        ("crates/http/src/pipeline.rs", "use crate::api::jobs;"),
        ("crates/ui/src/frame.rs", "use crate::{markup::{Markup, escape}, pages::jobs};"),
        ("crates/server/src/config/mod.rs", "use crate::serve;"),
    ] {
        let said = in_code(path, &format!("\n{source}\n"));
        assert_eq!(said.len(), 1, "{path}: {source}: {said:?}");
        assert!(said[0].starts_with(&format!("{path}:2: `")), "{said:?}");
    }
}

#[test]
fn imports_of_a_layer_below_pass() {
    for (path, source) in [
        ("crates/core/src/plan/mod.rs", "use crate::cron::Expression; use crate::{ids::JobId, job::{Job, store}};"),
        ("crates/http/src/lib.rs", "use crate::api::jobs;"),
        ("crates/http/src/api/jobs.rs", "use crate::api::page;"),
        ("crates/ui/src/pages/jobs.rs", "use crate::pages::job; use crate::chart::Bars;"),
        ("crates/ui/src/frame.rs", "// use crate::pages\nlet text = \"crate::pages\";"),
        ("crates/server/tests/it/main.rs", "use crate::serve;"),
    ] {
        assert_eq!(in_code(path, source), Vec::<String>::new(), "{path}: {source}");
    }
}

#[test]
fn dependencies_that_point_the_wrong_way_are_found() {
    for (path, name) in [
        ("crates/cli/Cargo.toml", "everbell-http"),
        ("crates/cli/Cargo.toml", "everbell"),
        ("crates/client/Cargo.toml", "everbell-http"),
        ("crates/client/Cargo.toml", "everbell-cli"),
        ("crates/wire/Cargo.toml", "everbell-client"),
        ("crates/http/Cargo.toml", "everbell-ui"),
        ("crates/core/Cargo.toml", "everbell-store"),
        ("crates/wire/Cargo.toml", "everbell"),
    ] {
        let said = in_manifest(path, &format!("[dependencies]\n{name}.workspace = true"));
        assert_eq!(said.len(), 1, "{path}: {name}: {said:?}");
    }
    assert_eq!(in_manifest("crates/new/Cargo.toml", "[dependencies]").len(), 1);
    let free = "[dependencies]\neverbell-core.workspace = true\n[dev-dependencies]\neverbell-store.workspace = true";
    assert_eq!(in_manifest("crates/cli/Cargo.toml", free), Vec::<String>::new());
}
