//! Files of cases with their answers: blocks of what is given, `---`, and what came of it.

use std::fmt::Write as _;

/// Compares every answer on file with the one that is found now. `EVERBELL_BLESS=1` writes the answers anew; read the diff
/// before you commit it.
pub(crate) fn compare(name: &str, answer: impl Fn(&str) -> String) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::read_to_string(&path).unwrap();
    let (mut blessed, mut wrong) = (String::new(), Vec::new());
    for block in file.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let (input, expect) = block.split_once("\n---\n").unwrap_or((block.trim_end(), ""));
        let found = answer(input);
        if found.trim_end() != expect.trim_end() {
            wrong.push(format!("{input}\n--- found\n{found}--- on file\n{expect}\n"));
        }
        write!(blessed, "{input}\n---\n{found}\n").unwrap();
    }
    if std::env::var_os("EVERBELL_BLESS").is_some() {
        std::fs::write(path, blessed).unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{} answers differ:\n{}", wrong.len(), wrong.join("\n"));
}
