//! Retired words: names that a stranger cannot guess, openings of comments that name no subject, and comments of one word.
//! New code does not bring them back.

use super::lexer::lex;

/// Words that no type, function, constant, module or file is called any more, each with a replacement.
const RETIRED: [(&str, &str); 62] = [
    ("Answer", "ApiResponse"),
    ("Fate", "TimerChange"),
    ("Found", "SearchResult"),
    ("Gate", "Authenticator"),
    ("Glance", "RecentRuns"),
    ("Heir", "successor_timer"),
    ("Held", "TrackedRuns"),
    ("Keeper", "Supervisor"),
    ("Kept", "UiCache"),
    ("LONGEST", "MAX_BAR_WIDTH"),
    ("Learned", "LoadedJobs"),
    ("Lent", "PooledConnection"),
    ("Life", "JobLifecycle"),
    ("Looked", "PlannedTimers"),
    ("MANY", "HELD_RUNS"),
    ("Moved", "TimezoneChange"),
    ("NAMED", "OUTCOME_COLUMNS"),
    ("Off", "OffReason"),
    ("Place", "Position"),
    ("Reconciled", "TimerChanges"),
    ("Reply", "UiResponse"),
    ("RunGlimpse", "RunSummary"),
    ("Scribe", "OutputSaver"),
    ("Seen", "HandlerTraces"),
    ("Standing", "Eligibility"),
    ("Sweep", "OrgUpdate"),
    ("Swept", "OrgUpdateProgress"),
    ("Told", "Event"),
    ("Visit", "UiRequest"),
    ("WAIT", "RETRY_DELAY"),
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
    ("of", "from_run"),
    ("offers", "suggestions"),
    ("panel", "preview"),
    ("questions", "statistics"),
    ("said", "failure_text"),
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
const OPENINGS: [&str; 6] = ["Nobody", "So", "Somebody", "What", "Which", "Whoever"];

/// Words and phrases that comments and texts of `src` do not use, each with a replacement.
const DIALECT: [(&str, &str); 6] = [
    ("anew", "again"),
    ("became of", "the outcome of"),
    ("becomes of", "the outcome of"),
    ("so many", "this many"),
    ("told", "reported, notified"),
    ("whoever", "anyone who, the caller"),
];

/// The names that a file defines: types, functions, constants and modules, each with its line.
fn defined(source: &str) -> Vec<(&str, usize)> {
    let tokens = lex(source);
    let introduces = ["struct", "enum", "trait", "type", "fn", "mod", "const", "static"];
    let pairs = tokens.windows(2).filter(|pair| introduces.contains(&pair[0].text) && pair[1].is_word());
    // `words!(Name { … })` and `words!(Name from Other { … })` define an enum.
    let of_macros = tokens.windows(5).filter_map(|five| match five {
        [words, bang, open, name, next] => {
            let is_macro = words.text == "words" && bang.text == "!" && open.text == "(";
            (is_macro && ["{", "from"].contains(&next.text)).then_some(name)
        }
        _ => None,
    });
    pairs.map(|pair| &pair[1]).chain(of_macros).map(|name| (name.text, name.line)).collect()
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

/// Complains about doc comments of a single word, such as `When.`, which add nothing to the name below them.
pub(super) fn in_single_words(path: &str, source: &str) -> Vec<String> {
    let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
    let doc = |at: usize| lines.get(at).and_then(|line| line.strip_prefix("///"));
    let is_word = |text: &str| text.strip_suffix('.').is_some_and(|word| word.chars().all(char::is_alphabetic));
    (0..lines.len())
        .filter(|&at| doc(at).is_some_and(|text| is_word(text.trim())))
        .filter(|&at| doc(at + 1).is_none() && at.checked_sub(1).and_then(doc).is_none())
        .map(|at| format!("{path}:{}: a doc comment of one word: say what the item is", at + 1))
        .collect()
}

/// Complains about dialect in comments and texts of a file.
pub(super) fn in_prose(path: &str, source: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in source.lines().enumerate() {
        let lower = line.to_ascii_lowercase();
        for (word, instead) in DIALECT {
            let is_used = lower.match_indices(word).any(|(at, _)| {
                let (before, after) = (&lower[..at], &lower[at + word.len()..]);
                let is_part = |c: char| c.is_alphanumeric() || "_{}.".contains(c);
                let is_whole =
                    !before.ends_with(is_part) && !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
                // Behind a sign of a comment, or inside of quotes.
                let is_prose = before.contains("//") || before.matches('"').count() % 2 == 1;
                is_whole && is_prose
            });
            if is_used {
                complaints.push(format!("{path}:{}: `{word}` is dialect: say `{instead}`", number + 1));
            }
        }
    }
    complaints
}

#[test]
fn dialect_is_found_in_comments_and_texts() {
    for (word, _) in DIALECT {
        for source in
            [format!("/// Is {word} it.\nfn a() {{}}"), format!("let a = \"{word}, b\";"), format!("// {word}")]
        {
            let said = in_prose("a.rs", &source);
            assert_eq!(said.len(), 1, "{source}: {said:?}");
            assert!(said[0].starts_with("a.rs:1: `"), "{said:?}");
        }
    }
    for source in ["let told = 1;", "x.told, \"{told}\"", "// untold, told_apart", "told: Vec::new(), // a"] {
        let source = format!("fn a() {{ {source} }}");
        assert_eq!(in_prose("a.rs", &source), Vec::<String>::new(), "{source}");
    }
}

#[test]
fn retired_words_are_found_as_names() {
    for source in
        ["struct Standing;", "pub(crate) fn glance() {}", "mod scribe;", "enum Fate { A }", "const MANY: u32 = 1;"]
    {
        let said = in_names("crates/core/src/job.rs", &format!("\n{source}"));
        assert_eq!(said.len(), 1, "{source}: {said:?}");
        assert!(said[0].starts_with("crates/core/src/job.rs:2: `"), "{said:?}");
    }
    assert_eq!(in_names("crates/store/src/sqlite/lending.rs", "").len(), 1);
    let words = "words!(\n    /// Whether a job fires.\n    Standing {\n        Off = \"off\",\n    }\n);";
    assert_eq!(in_names("crates/wire/src/org_job.rs", words).len(), 1, "the name, and no variant");
    assert_eq!(in_names("crates/core/src/org.rs", "crate::policy::words!(Off { A = \"a\" });").len(), 1);
    assert_eq!(in_names("crates/wire/src/a.rs", "words!(Seen from core::A { A = \"a\" });").len(), 1);
    for source in ["// struct Standing;", "let glance = \"fn glance\";", "struct Outstanding;", "x.glance()"] {
        assert_eq!(in_names("crates/core/src/job.rs", source), Vec::<String>::new(), "{source}");
    }
}

#[test]
fn openings_without_a_subject_are_found() {
    for word in OPENINGS {
        assert_eq!(
            in_openings("a.rs", &format!("fn a() {{}}\n\n/// {word} are listed.\nfn b() {{}}")).len(),
            1,
            "{word}"
        );
    }
    let source = "//! What this is.\n//! What follows is not an opening.\n\n/// Whoever reads it.\nfn a() {}\n\n/// Returns it.\n/// What else.\nfn b() {}\n";
    let said = in_openings("crates/core/src/job.rs", source);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[1].starts_with("crates/core/src/job.rs:4: the doc comment begins with `Whoever`"), "{said:?}");
}

#[test]
fn doc_comments_of_one_word_are_found() {
    let said = in_single_words("a.rs", "struct A {\n    /// When.\n    at: u8,\n    /// Why.\n    reason: u8,\n}");
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("a.rs:2: a doc comment of one word"), "{said:?}");
    for source in [
        "/// The last line of several is one\n/// word.\nfn a() {}",
        "/// `[server]`.\nstruct A;",
        "// Why.\nfn a() {}",
    ] {
        assert_eq!(in_single_words("a.rs", source), Vec::<String>::new(), "{source}");
    }
}
