//! Lists grouped by the value of a label.

use everbell_wire::form::{Field, TEXT, optional};

/// The parameter that names the label.
pub(crate) const GROUP: Field = optional("group", TEXT, "Group the jobs by the value of this label.");

/// The items in the order of their groups: by value, and those without the label last. Inside of a group the order stays.
/// Returns the groups with the places of their items.
pub(crate) fn groups<T>(items: &[T], value: impl Fn(&T) -> Option<String>) -> Vec<(Option<String>, Vec<usize>)> {
    let mut groups: Vec<(Option<String>, Vec<usize>)> = Vec::new();
    for (place, item) in items.iter().enumerate() {
        let value = value(item);
        match groups.iter_mut().find(|(own, _)| *own == value) {
            Some((_, places)) => places.push(place),
            None => groups.push((value, vec![place])),
        }
    }
    groups.sort_by(|(a, _), (b, _)| (a.is_none(), a).cmp(&(b.is_none(), b)));
    groups
}

/// The name of a group of a label for people.
pub(crate) fn group_name(label: &str, value: Option<&str>) -> String {
    value.map_or_else(|| format!("without {label}"), |value| format!("{label}={value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_in_order_and_items_without_the_label_last() {
        let items = ["x:2", "", "y:1", "z:2"];
        let found = groups(&items, |item| item.split_once(':').map(|(_, value)| value.to_owned()));
        let value = |text: &str| Some(text.to_owned());
        assert_eq!(found, [(value("1"), vec![2]), (value("2"), vec![0, 3]), (None, vec![1])]);
        assert_eq!(group_name("team", None), "without team");
    }
}
