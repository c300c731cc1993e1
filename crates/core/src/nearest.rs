//! Which of the known names somebody may have meant.

/// Up to `count` of the names, the most alike first.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>, count: usize) -> Vec<&'a str> {
    let mut ranked: Vec<(usize, &str)> = known.into_iter().map(|name| (distance(wanted, name), name)).collect();
    ranked.sort_unstable();
    ranked.into_iter().take(count).map(|(_, name)| name).collect()
}

/// How many characters must be put in, taken out or replaced.
pub(crate) fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_come_first() {
        assert_eq!(nearest("mial", ["invoice", "mail.send", "mail", "main"], 2), ["mail", "main"]);
        assert_eq!(nearest("x", [], 3), Vec::<&str>::new());
        assert_eq!((distance("", "abc"), distance("kitten", "sitting"), distance("é", "e")), (3, 3, 1));
    }
}
