//! [`Links`]: where the filters of a list lead. The whole state of a list is in its address.

use serde_json::{Map, Value};

use super::markup::{Markup, escaped, url_part};
use everbell_http::page::plain;

/// A filter that is set, shown with a link that removes it.
pub(crate) struct Chip {
    /// The parameter.
    pub(crate) name: &'static str,
    /// The name for people.
    pub(crate) label: &'static str,
    pub(crate) value: String,
    /// The list without this filter.
    pub(crate) clear: String,
}

/// A page with its query.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    path: String,
    query: Map<String, Value>,
}

impl Links {
    /// The list at this path, as it is filtered now. Another filter begins at the first page.
    pub(crate) fn new(path: impl Into<String>, query: &Value) -> Links {
        let mut query = query.as_object().cloned().unwrap_or_default();
        query.remove("cursor");
        Links { path: path.into(), query }
    }

    /// Returns the address of the list with this filter.
    pub(crate) fn with(&self, name: &str, value: &str) -> String {
        let mut query = self.query.clone();
        query.insert(name.to_owned(), Value::String(value.to_owned()));
        address(&self.path, &query)
    }

    /// A funnel that leads to the list with only this, beside a value that leads elsewhere.
    pub(crate) fn only(&self, name: &str, value: &str) -> Markup {
        let (href, value) = (escaped(&self.with(name, value)), escaped(value));
        Markup::from_html(format!(
            "<a class=\"only\" href=\"{href}\" title=\"Only {value}\" aria-label=\"Only {value}\"><svg class=\"i\" \
             viewBox=\"0 0 16 16\" aria-hidden=\"true\"><path d=\"M2.5 3.5h11l-4.2 5v4l-2.6-1.4v-2.6z\"/></svg></a>"
        ))
    }

    /// Returns the address of the list without this filter.
    pub(crate) fn without(&self, name: &str) -> String {
        let mut query = self.query.clone();
        query.remove(name);
        address(&self.path, &query)
    }

    /// The list as it is.
    pub(crate) fn here(&self) -> String {
        address(&self.path, &self.query)
    }

    /// Returns the value of a filter as written in the address, or an empty text.
    pub(crate) fn value(&self, name: &str) -> String {
        self.query.get(name).map(plain).unwrap_or_default()
    }

    pub(crate) fn is(&self, name: &str, value: &str) -> bool {
        self.value(name) == value
    }

    /// Whether there are filters besides the order.
    pub(crate) fn filtered(&self) -> bool {
        self.query.keys().any(|name| !["sort", "limit", "group"].contains(&name.as_str()))
    }

    /// Whether one of these is set.
    pub(crate) fn sets(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.query.contains_key(*name))
    }

    /// Returns the filters that are set, of these parameters and their names for people.
    pub(crate) fn chips(&self, filters: &[(&'static str, &'static str)]) -> Vec<Chip> {
        let set = filters.iter().filter(|(name, _)| !self.value(name).is_empty());
        let chip = |&(name, label): &(&'static str, &'static str)| Chip {
            name,
            label,
            value: match self.value(name).as_str() {
                "true" => "yes".to_owned(),
                "false" => "no".to_owned(),
                value => value.to_owned(),
            },
            clear: self.without(name),
        };
        set.map(chip).collect()
    }

    /// Returns the other filters, which a form has to carry as hidden fields.
    pub(crate) fn others(&self, names: &[&str]) -> Vec<(String, String)> {
        let others = self.query.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        others.map(|(name, value)| (name.clone(), plain(value))).collect()
    }
}

fn address(path: &str, query: &Map<String, Value>) -> String {
    let pairs: Vec<String> =
        query.iter().map(|(name, value)| format!("{name}={}", url_part(&plain(value)).replace("%2C", ","))).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_address_holds_the_whole_list() {
        let links = Links::new(
            "/jobs",
            &json!({"q": "a b&c", "status": ["active", "paused"], "cursor": "x", "sort": "jobKey"}),
        );
        assert_eq!(links.here(), "/jobs?q=a%20b%26c&sort=jobKey&status=active,paused");
        assert_eq!(links.with("status", "retired"), "/jobs?q=a%20b%26c&sort=jobKey&status=retired");
        assert_eq!(links.without("q"), "/jobs?sort=jobKey&status=active,paused");
        assert!(links.filtered() && links.is("status", "active,paused") && links.value("target").is_empty());
        assert_eq!(links.others(&["q", "status"]), [("sort".to_owned(), "jobKey".to_owned())]);
        assert!(!Links::new("/jobs", &json!({"sort": "jobKey"})).filtered());
    }

    #[test]
    fn each_filter_that_is_set_has_a_chip_that_clears_it() {
        let links = Links::new("/jobs", &json!({"label": "team=a b", "errored": "true", "sort": "jobKey", "q": ""}));
        let chips = links.chips(&[("q", "Text"), ("label", "Label"), ("errored", "Error")]);
        let shown: Vec<_> = chips.iter().map(|chip| (chip.label, chip.value.as_str(), chip.clear.as_str())).collect();
        let expected = [
            ("Label", "team=a b", "/jobs?errored=true&q=&sort=jobKey"),
            ("Error", "yes", "/jobs?label=team%3Da%20b&q=&sort=jobKey"),
        ];
        assert_eq!(shown, expected);
    }
}
