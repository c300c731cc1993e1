//! Tables with the data of charts.

use super::svg::Markup;

/// A table with a caption; the first cell of each row names it.
pub(super) struct Table<'a> {
    pub(super) caption: &'a str,
    pub(super) columns: &'a [&'a str],
}

/// The content of a cell.
pub(super) enum Cell<'a> {
    Text(String),
    Link { text: String, href: &'a str },
}

impl From<String> for Cell<'_> {
    fn from(text: String) -> Self {
        Cell::Text(text)
    }
}

impl Table<'_> {
    pub(super) fn write<'c>(&self, rows: impl IntoIterator<Item = Vec<Cell<'c>>>) -> String {
        self.write_parts([(None, rows)])
    }

    /// Writes rows in parts. A part with a name is not sent again while it stays the same.
    pub(super) fn write_parts<'c, R>(&self, parts: impl IntoIterator<Item = (Option<&'c str>, R)>) -> String
    where
        R: IntoIterator<Item = Vec<Cell<'c>>>,
    {
        let mut markup = Markup::default();
        markup.element("table").class("c-table").inside(|markup| {
            markup.element("caption").text(self.caption);
            markup.element("thead").inside(|markup| {
                markup.element("tr").inside(|markup| {
                    for column in self.columns {
                        markup.element("th").attr("scope", "col").text(column);
                    }
                });
            });
            for (name, rows) in parts {
                let body = markup.element("tbody");
                let body = if let Some(name) = name { body.attr("data-row", name) } else { body };
                body.inside(|markup| {
                    for row in rows {
                        markup
                            .element("tr")
                            .inside(|markup| row.iter().enumerate().for_each(|place| cell(markup, place)));
                    }
                });
            }
        });
        markup.finish()
    }
}

fn cell(markup: &mut Markup, (index, cell): (usize, &Cell<'_>)) {
    let element = if index == 0 { markup.element("th").attr("scope", "row") } else { markup.element("td") };
    match cell {
        Cell::Text(text) => element.text(text),
        Cell::Link { text, href } => element.inside(|markup| markup.element("a").attr("href", *href).text(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_are_named() {
        let table = Table { caption: "A <table>", columns: &["When", "Runs"] };
        let rows = [vec![Cell::Link { text: "08:00".to_owned(), href: "/runs?a&b" }, Cell::Text("3".to_owned())]];
        assert_eq!(
            table.write(rows),
            "<table class=\"c-table\"><caption>A &lt;table&gt;</caption><thead><tr><th scope=\"col\">When</th>\
             <th scope=\"col\">Runs</th></tr></thead><tbody><tr><th scope=\"row\"><a href=\"/runs?a&amp;b\">08:00</a></th>\
             <td>3</td></tr></tbody></table>"
        );
    }
}
