//! Ranks known names by their similarity to a name that was typed.

/// Returns up to `count` of the known names, the most similar first.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>, count: usize) -> Vec<&'a str> {
    let mut ranked: Vec<(usize, &str)> = known.into_iter().map(|name| (distance(wanted, name), name)).collect();
    ranked.sort_unstable();
    ranked.into_iter().take(count).map(|(_, name)| name).collect()
}

/// Counts the edits between two texts: letters inserted, deleted, replaced, or swapped with their neighbor.
pub fn distance(from: &str, to: &str) -> usize {
    strsim::osa_distance(from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_come_first() {
        assert_eq!(nearest("mial", ["invoice", "mail.send", "mail", "main"], 2), ["mail", "main"]);
        assert_eq!(nearest("x", [], 3), Vec::<&str>::new());
        assert_eq!((distance("ulr", "url"), distance("abcd", "badc")), (1, 2), "letters that are swapped");
        assert_eq!((distance("", "abc"), distance("kitten", "sitting"), distance("é", "e")), (3, 3, 1));
    }
}
