//! The house rules of this repository, held by tests.
//!
//! A rule is a pure function over paths and texts that answers with complaints, `file:line: what is wrong: what to do`.
//! Each stands in a file of its own, beside tests that feed it bad and good examples. This file applies them to the
//! repository, and holds the two lists of exceptions.

mod arrows;
mod boundaries;
mod cycles;
mod functions;
mod leftovers;
mod lexer;
mod links;
mod lookups;
mod manifest;
mod names;
mod ratchet;
mod sql;
mod styles;
mod tree;
mod words;

use std::sync::LazyLock;

use functions::functions;
use ratchet::{Measured, Ratchet};
use tree::SourceFile;

const FILES: Ratchet = Ratchet { unit: "file", limit: 400, never: 600, slack: 40 };

/// Files that are longer than the limit, with the length they may have: `("crates/core/src/cron.rs", 450)`.
const LONG_FILES: &[(&str, usize)] = &[];

const FUNCTIONS: Ratchet = Ratchet { unit: "function", limit: 70, never: 100, slack: 10 };

/// Functions that are longer than the limit: `("crates/core/src/cron.rs::parse", 85)`.
const LONG_FUNCTIONS: &[(&str, usize)] = &[];

/// Modules that import each other, each with a reason beside it: the crate, the modules, the arrows between them.
const CYCLES: &[cycles::Accepted<'_>] = &[];

static TREE: LazyLock<Vec<SourceFile>> = LazyLock::new(|| tree::load(&tree::root()));

fn with_extension(extension: &str) -> impl Iterator<Item = &'static SourceFile> {
    TREE.iter().filter(move |file| file.path.rsplit_once('.').is_some_and(|(_, found)| found == extension))
}

fn crate_manifests() -> impl Iterator<Item = &'static SourceFile> {
    TREE.iter().filter(|file| manifest::is_of_crate(&file.path))
}

#[track_caller]
fn assert_tidy(complaints: &[String]) {
    assert!(complaints.is_empty(), "{} complaint(s):\n{}", complaints.len(), complaints.join("\n"));
}

/// A walk that finds nothing would make every other test here pass.
#[test]
fn the_walk_sees_the_repository() {
    let seen = |path: &str| TREE.iter().any(|file| file.path == path && !file.text.is_empty());
    for path in ["Cargo.toml", "crates/core/src/lib.rs", "crates/server/tests/it/tidy.rs"] {
        assert!(seen(path), "{path} was not found from {}", tree::root().display());
    }
    let strays: Vec<_> = TREE.iter().filter(|file| file.path.starts_with("target/")).collect();
    assert!(strays.is_empty(), "the walk went into build output: {}", strays[0].path);
}

#[test]
fn files_are_short() {
    let measured: Vec<_> = with_extension("rs").map(Measured::file).collect();
    assert_tidy(&FILES.check(LONG_FILES, &measured));
}

#[test]
fn functions_are_short() {
    let measured: Vec<_> = with_extension("rs")
        .flat_map(|file| functions(&file.text).into_iter().map(|found| Measured::function(&file.path, &found)))
        .collect();
    assert!(measured.len() > 50, "the scanner found only {} functions in the whole workspace", measured.len());
    assert_tidy(&FUNCTIONS.check(LONG_FUNCTIONS, &measured));
}

#[test]
fn a_class_belongs_to_one_stylesheet() {
    let sheets: Vec<_> = with_extension("css").map(|file| (file.path.as_str(), file.text.as_str())).collect();
    assert!(sheets.len() > 8, "only {} stylesheets were found", sheets.len());
    assert_tidy(&styles::in_stylesheets(sheets.into_iter()));
}

#[test]
fn libraries_stay_in_their_crates() {
    let in_code = with_extension("rs").flat_map(|file| boundaries::in_code(&file.path, &file.text));
    let in_manifests = crate_manifests().flat_map(|file| boundaries::in_manifest(&file.path, &file.text));
    assert_tidy(&in_code.chain(in_manifests).collect::<Vec<_>>());
}

#[test]
fn arrows_point_one_way() {
    let in_code = with_extension("rs").flat_map(|file| arrows::in_code(&file.path, &file.text));
    let in_manifests = crate_manifests().flat_map(|file| arrows::in_manifest(&file.path, &file.text));
    assert_tidy(&in_code.chain(in_manifests).collect::<Vec<_>>());
}

#[test]
fn routes_and_pages_read_through_the_client() {
    assert_tidy(
        &with_extension("rs").flat_map(|file| arrows::past_the_client(&file.path, &file.text)).collect::<Vec<_>>(),
    );
}

#[test]
fn modules_import_each_other_one_way() {
    assert_tidy(&cycles::check(&TREE, CYCLES));
}

#[test]
fn modules_are_named_after_what_they_are_about() {
    let paths = TREE.iter().filter_map(|file| names::in_path(&file.path));
    let declarations = with_extension("rs").flat_map(|file| names::in_declarations(&file.path, &file.text));
    assert_tidy(&paths.chain(declarations).collect::<Vec<_>>());
}

#[test]
fn retired_words_stay_retired() {
    let sources = || with_extension("rs").filter(|file| file.path.starts_with("crates/"));
    let names = sources().flat_map(|file| words::in_names(&file.path, &file.text));
    let openings = sources().flat_map(|file| words::in_openings(&file.path, &file.text));
    let single = sources().flat_map(|file| words::in_single_words(&file.path, &file.text));
    assert_tidy(&names.chain(openings).chain(single).collect::<Vec<_>>());
}

#[test]
fn comments_and_texts_are_in_plain_english() {
    let sources = with_extension("rs").filter(|file| file.path.starts_with("crates/") && file.path.contains("/src/"));
    assert_tidy(&sources.flat_map(|file| words::in_prose(&file.path, &file.text)).collect::<Vec<_>>());
}

#[test]
fn nothing_is_left_unfinished() {
    assert_tidy(&with_extension("rs").flat_map(|file| leftovers::check(&file.path, &file.text)).collect::<Vec<_>>());
}

#[test]
fn both_databases_have_the_same_statements() {
    let paths: Vec<_> = with_extension("sql").map(|file| file.path.as_str()).collect();
    assert_tidy(&sql::unpaired(&paths));
}

#[test]
fn sql_reads_no_clock_and_no_zone() {
    assert_tidy(&with_extension("sql").flat_map(|file| sql::clocks(&file.path, &file.text)).collect::<Vec<_>>());
}

#[test]
fn sql_names_the_columns_that_it_returns() {
    let statements = with_extension("sql").filter(|file| sql::is_statement(&file.path));
    assert_tidy(&statements.flat_map(|file| sql::stars(&file.path, &file.text)).collect::<Vec<_>>());
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    assert!(crate_manifests().count() >= 10, "the workspace has ten crates");
    assert_tidy(&crate_manifests().filter_map(|file| manifest::lints(&file.path, &file.text)).collect::<Vec<_>>());
}

#[test]
fn documents_are_read_as_types() {
    assert_tidy(&with_extension("rs").flat_map(|file| lookups::check(&file.path, &file.text)).collect::<Vec<_>>());
}

#[test]
fn links_between_documents_lead_somewhere() {
    let exists = |path: &str| tree::root().join(path).exists();
    let broken = with_extension("md").flat_map(|page| links::broken(&page.path, &page.text, exists));
    assert_tidy(&broken.collect::<Vec<_>>());
}
