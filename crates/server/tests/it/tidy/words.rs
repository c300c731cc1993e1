//! Retired words: names that a stranger cannot guess, and openings of comments that name no subject. New code does not
//! bring them back.

use super::lexer::lex;

/// Words that no type, function, module or file is called any more, each with a replacement.
const RETIRED: [(&str, &str); 50] = [
    ("Answer", "ApiResponse"),
    ("Fate", "TimerChange"),
    ("Gate", "Authenticator"),
    ("Glance", "RecentRuns"),
    ("Heir", "successor_timer"),
    ("Keeper", "Supervisor"),
    ("Kept", "UiCache"),
    ("Learned", "LoadedJobs"),
    ("Lent", "PooledConnection"),
    ("Life", "JobLifecycle"),
    ("Place", "Position"),
    ("Reconciled", "TimerChanges"),
    ("Reply", "UiResponse"),
    ("RunGlimpse", "RunSummary"),
    ("Scribe", "OutputSaver"),
    ("Standing", "Eligibility"),
    ("Sweep", "OrgUpdate"),
    ("Swept", "OrgUpdateProgress"),
    ("Told", "Event"),
    ("Visit", "UiRequest"),
    ("Wish", "Override"),
    ("assembled", "request_body"),
    ("door", "middleware"),
    ("few", "small_tables"),
    ("glance", "recent_runs"),
    ("heir", "successor_timer"),
    ("house", "cluster"),
    ("keep_outputs", "save_outputs"),
    ("knobs", "policy_fields"),
    ("lending", "pool"),
    ("let_in", "authorize"),
    ("meant", "did_you_mean"),
    ("mended", "recover"),
    ("no_faults", "fault_injection_off"),
    ("nowhere", "not_found"),
    ("offers", "suggestions"),
    ("panel", "preview"),
    ("questions", "statistics"),
    ("scribe", "output_saver"),
    ("seal", "csrf_token"),
    ("some_of", "format_suggestions"),
    ("standing", "eligibility"),
    ("sweep", "org_update"),
    ("sweeper", "reconciler"),
    ("sweeps", "org_updates"),
    ("tally", "count_runs_by_time"),
    ("tell", "publish"),
    ("told", "report"),
    ("unkept", "unsaved_outputs"),
    ("wish", "override_"),
];

/// Doc comments that begin with one of these words do not name their subject.
const OPENINGS: [&str; 2] = ["What", "Whoever"];

/// The names that a file defines: types, functions and modules, each with its line.
fn defined(source: &str) -> Vec<(&str, usize)> {
    let tokens = lex(source);
    let introduces = ["struct", "enum", "trait", "type", "fn", "mod"];
    let pairs = tokens.windows(2).filter(|pair| introduces.contains(&pair[0].text) && pair[1].is_word());
    pairs.map(|pair| (pair[1].text, pair[1].line)).collect()
}

/// Complains about retired words in names of a file and in its own name.
pub(super) fn in_names(path: &str, source: &str) -> Vec<String> {
    let stem = path.rsplit('/').next().and_then(|name| name.split('.').next()).unwrap_or_default();
    let file = (stem, 1);
    let found = defined(source).into_iter().chain([file]);
    found
        .filter_map(|(name, line)| {
            let (word, instead) = RETIRED.iter().find(|(word, _)| *word == name)?;
            Some(format!("{path}:{line}: `{word}` is a retired word: say `{instead}`"))
        })
        .collect()
}

/// Complains about doc comments of a file that begin with a word which names no subject.
pub(super) fn in_openings(path: &str, source: &str) -> Vec<String> {
    let mut before = "";
    let mut complaints = Vec::new();
    for (number, line) in source.lines().map(str::trim_start).enumerate() {
        let doc = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "));
        let continues = before.starts_with("///") || before.starts_with("//!");
        let first = doc.filter(|_| !continues).and_then(|text| text.split_whitespace().next());
        if let Some(word) = first.filter(|word| OPENINGS.contains(word)) {
            complaints.push(format!("{path}:{}: the doc comment begins with `{word}`: name its subject", number + 1));
        }
        before = line;
    }
    complaints
}

#[test]
fn retired_words_are_found_as_names() {
    for source in ["struct Standing;", "pub(crate) fn glance() {}", "mod scribe;", "enum Fate { A }"] {
        let said = in_names("crates/core/src/job.rs", &format!("\n{source}"));
        assert_eq!(said.len(), 1, "{source}: {said:?}");
        assert!(said[0].starts_with("crates/core/src/job.rs:2: `"), "{said:?}");
    }
    assert_eq!(in_names("crates/store/src/sqlite/lending.rs", "").len(), 1);
    for source in ["// struct Standing;", "let glance = \"fn glance\";", "struct Outstanding;", "x.glance()"] {
        assert_eq!(in_names("crates/core/src/job.rs", source), Vec::<String>::new(), "{source}");
    }
}

#[test]
fn openings_without_a_subject_are_found() {
    let source = "//! What this is.\n//! What follows is not an opening.\n\n/// Whoever reads it.\nfn a() {}\n\n/// Returns it.\n/// What else.\nfn b() {}\n";
    let said = in_openings("crates/core/src/job.rs", source);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[1].starts_with("crates/core/src/job.rs:4: the doc comment begins with `Whoever`"), "{said:?}");
}
