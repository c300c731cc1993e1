//! Suggestions for names that are unknown.

use everbell_core::{distance, nearest};

/// The most names in a list of suggestions.
const MAX_SUGGESTIONS: usize = 5;
/// Longer texts are not compared.
const MAX_COMPARED_CHARS: usize = 64;

/// Returns the nearest known name, if at most a third of its letters differ, or if one name begins or ends with the other.
pub fn did_you_mean<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if typed.chars().count() > MAX_COMPARED_CHARS {
        return None;
    }
    let typed = typed.to_lowercase();
    let near = |name: &&str| is_near(&typed, &name.to_lowercase());
    nearest(&typed, known.into_iter().filter(near), 1).first().copied()
}

fn is_near(typed: &str, name: &str) -> bool {
    let (short, long) = if typed.len() < name.len() { (typed, name) } else { (name, typed) };
    let is_part = short.chars().count() >= 3 && (long.starts_with(short) || long.ends_with(short));
    let most = (name.chars().count() / 3).max(1);
    // A much shorter text cannot be near.
    is_part || (long.len() - short.len() <= 4 * most && distance(typed, name) <= most)
}

/// Lists the nearest names, and how many more there are: `a`, `b` and 3 more.
pub fn format_suggestions<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<&str> = known.into_iter().collect();
    let names: Vec<String> = nearest(typed, all.iter().copied(), MAX_SUGGESTIONS)
        .into_iter()
        .map(|name| format!("`{}`", crate::time_input::excerpt(name)))
        .collect();
    let more = all.len() - names.len();
    if more > 0 { format!("{} and {more} more", names.join(", ")) } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_near_is_meant() {
        let known = ["scope", "startAt", "jobKey", "cronExpression", "timezone", "status2", "url", "runAt"];
        for (typed, name) in [
            ("foo", None),
            ("status", Some("status2")),
            ("stauts2", Some("status2")),
            ("ulr", Some("url")),
            ("cron", Some("cronExpression")),
            ("zone", Some("timezone")),
            ("job_key", Some("jobKey")),
            ("tmezone", Some("timezone")),
            ("at", None),
            ("", None),
        ] {
            assert_eq!(did_you_mean(typed, known), name, "{typed}");
        }
        assert_eq!(did_you_mean("status", ["startAt", "scope"]), None);
        assert_eq!(did_you_mean(&"runAt".repeat(20), known), None);
    }

    #[test]
    fn long_list_counts_the_names_it_leaves_out() {
        assert_eq!(format_suggestions("fax", ["print", "fix"]), "`fix`, `print`");
        let many: Vec<String> = (0..8).map(|n| format!("target-{n}")).collect();
        let list = format_suggestions("target-7", many.iter().map(String::as_str));
        assert!(list.starts_with("`target-7`, ") && list.ends_with(" and 3 more"), "{list}");
        assert_eq!(format_suggestions("x", []), "");
    }
}
