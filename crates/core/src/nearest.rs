//! Which of the known names somebody may have meant.

/// Up to `count` of the names, the most alike first.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>, count: usize) -> Vec<&'a str> {
    let mut ranked: Vec<(usize, &str)> = known.into_iter().map(|name| (distance(wanted, name), name)).collect();
    ranked.sort_unstable();
    ranked.into_iter().take(count).map(|(_, name)| name).collect()
}

/// How many letters must be put in, taken out, replaced, or swapped with the one beside them.
pub fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![(0..=to.len()).collect::<Vec<_>>()];
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
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
