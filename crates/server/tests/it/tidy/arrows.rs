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

/// Where the store may be called, and its verbs there: those of families that the library has no client for. Jobs, runs,
/// orgs, calendars, freezes and backfills are read and changed through the client, which decides, and writes the audit trail.
const STORE_VERBS: [(&str, &[&str]); 2] = [
    (
        "crates/http/src/",
        &[
            "append_audit",
            "calendar_jobs",
            "change_problem",
            "counts",
            "create_token",
            "delete_target",
            "drain_instance",
            "end_sessions",
            "find_request",
            "find_session",
            "find_token",
            "insert_delivery",
            "list_audit",
            "list_deliveries",
            "list_problems",
            "list_sessions",
            "list_tokens",
            "put_target",
            "remember_answer",
            "revoke_token",
            "status",
            "stored_targets",
            "woken",
        ],
    ),
    (
        "crates/ui/src/",
        &[
            "counts",
            "create_session",
            "list_audit",
            "list_deliveries",
            "list_instances",
            "list_problems",
            "list_tokens",
            "status",
        ],
    ),
];

/// Complains about verbs of the store that are called past the client of the library.
pub(super) fn past_the_client(path: &str, source: &str) -> Vec<String> {
    let Some((_, verbs)) = STORE_VERBS.iter().find(|(folder, _)| path.starts_with(folder)) else { return Vec::new() };
    let tokens = lex(source);
    let is_call = |part: &[Token<'_>]| match part {
        [store, dot, verb, open] => store.text == "store" && dot.text == "." && verb.is_word() && open.text == "(",
        _ => false,
    };
    // `store()` and `store` are the same here.
    let words: Vec<Token<'_>> = (0..tokens.len())
        .filter(|at| {
            let before = |back: usize| at.checked_sub(back).map_or("", |at| tokens[at].text);
            let closes = tokens[*at].text == ")" && before(1) == "(" && before(2) == "store";
            let opens =
                tokens[*at].text == "(" && before(1) == "store" && tokens.get(at + 1).is_some_and(|t| t.text == ")");
            !closes && !opens
        })
        .map(|at| tokens[at])
        .collect();
    let calls = words.windows(4).filter(|part| is_call(part) && !verbs.contains(&part[2].text));
    let complaint = |part: &[Token<'_>]| {
        let Token { text, line, .. } = part[2];
        format!(
            "{path}:{line}: `store.{text}` goes past the client of the library: use the client, or add it to `STORE_VERBS`"
        )
    };
    calls.map(complaint).collect()
}

#[test]
fn calls_past_the_client_are_found() {
    let path = "crates/ui/src/pages/run.rs";
    for source in ["app.bell.store().get_job(&id)", "store.list_runs(&filter, &page)", "bell\n.store()\n.get_run(id)"] {
        assert_eq!(past_the_client(path, source).len(), 1, "{source}");
        assert_eq!(past_the_client("crates/server/src/notify/evaluator.rs", source), [""; 0], "{source}");
    }
    for source in
        ["bell.store().list_audit(None, &page)", "request.runs().get(id)", "let store = bell.store();", "Store::new()"]
    {
        assert_eq!(past_the_client(path, source), [""; 0], "{source}");
    }
}

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
