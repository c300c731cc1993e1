//! Retired words: names that a stranger cannot guess. New code does not bring them back, and those that are left only
//! become fewer.

use super::lexer::lex;

/// Words that no type, function, module or file is called any more, each with its replacement.
const RETIRED: [(&str, &str); 24] = [
    ("Fate", "TimerChange"),
    ("Glance", "RecentRuns"),
    ("Heir", "successor_timer"),
    ("Keeper", "Supervisor"),
    ("Learned", "LoadedJobs"),
    ("Lent", "PooledConnection"),
    ("Life", "JobLifecycle"),
    ("Reconciled", "TimerChanges"),
    ("RunGlimpse", "RunSummary"),
    ("Standing", "Eligibility"),
    ("few", "small_tables"),
    ("glance", "recent_runs"),
    ("heir", "successor_timer"),
    ("keep_outputs", "save_outputs"),
    ("lending", "pool"),
    ("meant", "did_you_mean"),
    ("mended", "recover"),
    ("no_faults", "fault_injection_off"),
    ("scribe", "output_saver"),
    ("some_of", "format_suggestions"),
    ("standing", "eligibility"),
    ("sweeper", "reconciler"),
    ("tally", "count_runs_by_time"),
    ("unkept", "unsaved_outputs"),
];

/// Words that are on their way out: how many definitions still have them. A smaller number goes here when one is renamed.
const LEFT: [(&str, usize); 9] = [
    ("Kept", 2),
    ("Place", 7),
    ("Told", 6),
    ("Visit", 1),
    ("Wish", 3),
    ("seal", 3),
    ("tell", 8),
    ("told", 29),
    ("wish", 4),
];

/// Doc comments that begin with one of these words do not name their subject.
const OPENINGS: [&str; 2] = ["What", "Whoever"];

/// How many doc comments still begin so. It only becomes smaller.
const OPENINGS_LEFT: usize = 807;

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

/// Counts the definitions that still have a word which is on its way out, and complains if a count differs.
pub(super) fn left<'a>(files: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut counts = [0; LEFT.len()];
    for source in files {
        for (name, _) in defined(source) {
            if let Some(at) = LEFT.iter().position(|(word, _)| *word == name) {
                counts[at] += 1;
            }
        }
    }
    let compared = LEFT.iter().zip(counts).filter(|((_, allowed), count)| allowed != count);
    compared
        .map(|((word, allowed), count)| {
            format!("`{word}`: {count} definitions, {allowed} are known; rename, and lower the number in words.rs")
        })
        .collect()
}

/// Counts the doc comments that begin with a word which names no subject.
pub(super) fn openings<'a>(files: impl Iterator<Item = &'a str>) -> Option<String> {
    let count: usize = files.map(openings_in).sum();
    (count != OPENINGS_LEFT).then(|| {
        format!("{count} doc comments begin with {OPENINGS:?}, {OPENINGS_LEFT} are known: name the subject, and lower the number in words.rs")
    })
}

fn openings_in(source: &str) -> usize {
    let mut before = "";
    let mut count = 0;
    for line in source.lines().map(str::trim_start) {
        let doc = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "));
        let continues = before.starts_with("///") || before.starts_with("//!");
        let first = doc.and_then(|text| text.split_whitespace().next());
        count += usize::from(!continues && first.is_some_and(|word| OPENINGS.contains(&word)));
        before = line;
    }
    count
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
fn openings_without_a_subject_are_counted() {
    let source = "//! What this is.\n//! What follows is not an opening.\n\n/// Whoever reads it.\nfn a() {}\n\n/// Returns it.\n/// What else.\nfn b() {}\n";
    assert_eq!(openings_in(source), 2);
}
