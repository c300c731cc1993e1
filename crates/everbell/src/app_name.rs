//! The name of a program that gives itself none.

use std::ffi::OsStr;
use std::path::Path;

use everbell_core::App;

/// The name of a program that was started without a name.
const NAMELESS: &str = "program";
/// The hex digits that Cargo adds to the name of a test.
const CARGO_HASH_LENGTH: usize = 16;

/// Returns the name by which this program was started. The path of its file would be less stable: a deployment may replace
/// the file while the program runs, or link to a file whose name has a version.
fn default() -> App {
    let started_as = std::env::args_os().next();
    name_of(started_as.as_deref())
}

/// Returns the name that a program gives itself, or the default.
pub(crate) fn check(given: Option<&str>, problems: &mut Vec<String>) -> Option<App> {
    let Some(name) = given else { return Some(default()) };
    let app = App::new(name).and_then(|app| app.expect_visible().map(|()| app));
    app.map_err(|problem| problems.push(format!("app `{}`: {}", name.escape_debug(), problem.reason))).ok()
}

fn name_of(started_as: Option<&OsStr>) -> App {
    let file = started_as.and_then(|path| Path::new(path).file_name());
    let file = file.map(OsStr::to_string_lossy).unwrap_or_default();
    let name = file.strip_suffix(".exe").unwrap_or(&file);
    let name = match name.rsplit_once('-') {
        Some((name, hash)) if hash.len() == CARGO_HASH_LENGTH && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            name
        }
        _ => name,
    };
    let visible: String = name.chars().filter(|c| !c.is_control() && !everbell_core::is_invisible(*c)).collect();
    App::new(visible.trim()).or_else(|_| App::new(NAMELESS)).unwrap_or_else(|_| unreachable!("a valid name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_the_name_by_which_it_was_started() {
        for (started_as, name) in [
            ("/usr/local/bin/billing", "billing"),
            ("./billing", "billing"),
            ("billing.exe", "billing"),
            ("billing-1.4.2", "billing-1.4.2"),
            ("target/debug/deps/billing-0123456789abcdef", "billing"),
            ("night\u{200b}ly", "nightly"),
            ("", NAMELESS),
            ("..", NAMELESS),
            ("\u{7}", NAMELESS),
        ] {
            assert_eq!(name_of(Some(OsStr::new(started_as))).as_str(), name, "{started_as:?}");
        }
        assert_eq!(name_of(None).as_str(), NAMELESS);
        assert_eq!(name_of(Some(OsStr::new(&"x".repeat(300)))).as_str(), NAMELESS);
    }
}
