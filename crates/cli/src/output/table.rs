//! [`Table`]: rows for a terminal or a program.

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr;

use everbell_wire::printable;

use super::{Mark, Symbols};

/// The spaces between columns.
const GAP: usize = 2;
/// The width to which a column shrinks by default.
const MIN_SHRUNK_WIDTH: usize = 12;

/// A column, and how it adapts to a narrow terminal.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    /// Its texts may be cut to this width.
    shrinks_to: Option<usize>,
    /// Columns with smaller numbers are dropped first; 0 is never dropped.
    drop_order: u8,
    right: bool,
}

impl Column {
    /// A column that neither shrinks nor is dropped.
    pub(crate) const fn new(title: &'static str) -> Column {
        Column { title, shrinks_to: None, drop_order: 0, right: false }
    }

    /// Lets its texts be cut.
    pub(crate) const fn shrinks(self) -> Column {
        Column { shrinks_to: Some(MIN_SHRUNK_WIDTH), ..self }
    }

    /// Lets its texts be cut to this width.
    pub(crate) const fn shrinks_to(self, width: usize) -> Column {
        Column { shrinks_to: Some(width), ..self }
    }

    /// Lets the column be dropped: smaller numbers are dropped first.
    pub(crate) const fn drop_order(self, drop_order: u8) -> Column {
        Column { drop_order, ..self }
    }

    /// Aligns its texts to the right.
    pub(crate) const fn right(self) -> Column {
        Column { right: true, ..self }
    }
}

/// A value, as people and as programs read it.
pub(crate) struct Cell {
    shown: String,
    plain: Option<String>,
    style: Style,
}

impl Cell {
    /// An untrusted text, in which control characters are escaped.
    pub(crate) fn text(text: &str) -> Cell {
        Cell { shown: if text.is_empty() { "-".to_owned() } else { printable(text) }, plain: None, style: Style::new() }
    }

    /// A value that people and programs read differently.
    pub(crate) fn both(shown: impl Into<String>, plain: &str) -> Cell {
        Cell { shown: shown.into(), plain: Some(printable(plain)), style: Style::new() }
    }

    /// A status: a symbol and a word for people, only the word for programs.
    pub(crate) fn status(word: &str, symbols: Symbols) -> Cell {
        let mark = Mark::from_status(word);
        Cell::both(format!("{} {}", symbols.symbol(mark), printable(word)), word).styled(mark.style())
    }

    pub(crate) fn styled(self, style: Style) -> Cell {
        Cell { style, ..self }
    }

    fn plain(&self) -> &str {
        self.plain.as_deref().unwrap_or(&self.shown)
    }
}

/// Rows with a header.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    cut: &'static str,
}

impl Table {
    pub(crate) fn new(columns: &[Column], symbols: Symbols) -> Table {
        let cut = if symbols == Symbols::Unicode { "…" } else { "~" };
        Table { columns: columns.to_vec(), rows: Vec::new(), cut }
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Untruncated values, separated by tabs.
    pub(super) fn tabbed(&self) -> Vec<String> {
        let line = |row: &Vec<Cell>| row.iter().map(Cell::plain).collect::<Vec<_>>().join("\t");
        self.rows.iter().map(line).collect()
    }

    /// Lines with a header, fitted to this width if possible.
    pub(super) fn fitted(&self, width: Option<usize>, colors: bool) -> Vec<String> {
        let (kept, widths) = self.layout(width.unwrap_or(usize::MAX));
        let titles = kept.iter().map(|at| (self.columns[*at].title, header()));
        let mut lines = vec![self.line(titles, &kept, &widths, colors)];
        for row in &self.rows {
            let cells = kept.iter().map(|at| row.get(*at).map_or(("", Style::new()), |c| (c.shown.as_str(), c.style)));
            lines.push(self.line(cells, &kept, &widths, colors));
        }
        lines
    }

    /// The columns that are shown, and their widths. Columns are added in the reverse order of dropping while their shrunk
    /// forms fit; then texts are cut, the widest first.
    fn layout(&self, width: usize) -> (Vec<usize>, Vec<usize>) {
        let total = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        let narrow = |kept: &[usize]| total(&kept.iter().map(|at| self.narrowest(*at)).collect::<Vec<_>>());
        let (mut kept, mut others): (Vec<usize>, Vec<usize>) =
            (0..self.columns.len()).partition(|at| self.columns[*at].drop_order == 0);
        others.sort_by_key(|at| std::cmp::Reverse(self.columns[*at].drop_order));
        for at in others {
            kept.push(at);
            if narrow(&kept) > width {
                kept.pop();
            }
        }
        kept.sort_unstable();
        let mut widths: Vec<usize> = kept.iter().map(|at| self.natural(*at)).collect();
        while total(&widths) > width {
            let may_shrink = |at: &usize| widths[*at] > self.narrowest(kept[*at]);
            let Some(widest) = (0..kept.len()).filter(may_shrink).max_by_key(|at| widths[*at]) else { break };
            widths[widest] -= 1;
        }
        (kept, widths)
    }

    fn narrowest(&self, at: usize) -> usize {
        let Column { title, shrinks_to, .. } = self.columns[at];
        let least = shrinks_to.map(|width| width.max(title.chars().count()));
        self.natural(at).min(least.unwrap_or(usize::MAX))
    }

    fn natural(&self, at: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.shown.width());
        cells.max().unwrap_or(0).max(self.columns[at].title.chars().count())
    }

    fn line<'a>(
        &self,
        cells: impl Iterator<Item = (&'a str, Style)>,
        kept: &[usize],
        widths: &[usize],
        colors: bool,
    ) -> String {
        let mut line = String::new();
        let mut spaces = 0;
        for ((text, style), (at, room)) in cells.zip(kept.iter().zip(widths)) {
            let text = self.shortened(text, *room);
            let padding = room.saturating_sub(text.width());
            if self.columns[*at].right {
                spaces += padding;
            }
            if !text.is_empty() {
                line.push_str(&" ".repeat(spaces));
                spaces = 0;
                if colors && style != Style::new() {
                    line.extend([&style.to_string(), &text, &format!("{style:#}")].map(String::as_str));
                } else {
                    line.push_str(&text);
                }
            }
            // Spaces are written before the next text, so that no line ends with them.
            spaces += GAP + if self.columns[*at].right { 0 } else { padding };
        }
        line
    }

    fn shortened(&self, text: &str, room: usize) -> String {
        if text.width() <= room {
            return text.to_owned();
        }
        let mut kept = String::new();
        for character in text.chars() {
            kept.push(character);
            if kept.width() >= room {
                kept.pop();
                break;
            }
        }
        kept + self.cut
    }
}

fn header() -> Style {
    Style::new().bold().fg_color(Some(AnsiColor::BrightBlack.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let columns = [
            Column::new("KEY").shrinks(),
            Column::new("VER").right().drop_order(2),
            Column::new("TARGET").drop_order(1),
            Column::new("NEXT"),
        ];
        let mut table = Table::new(&columns, Symbols::Unicode);
        for (key, version, next) in [("a-very-long-key-of-a-job", "7", "2027-01-01"), ("b", "12", "-")] {
            let cells = vec![Cell::text(key), Cell::text(version), Cell::text("print"), Cell::both(next, "x\ty")];
            table.row(cells);
        }
        table
    }

    #[test]
    fn everything_is_shown_if_there_is_room() {
        let expected = [
            "KEY                       VER  TARGET  NEXT",
            "a-very-long-key-of-a-job    7  print   2027-01-01",
            "b                          12  print   -",
        ];
        assert_eq!(table().fitted(None, false), expected);
        assert_eq!(table().fitted(Some(49), false), expected);
    }

    #[test]
    fn columns_are_dropped_if_cutting_is_not_enough() {
        assert_eq!(table().fitted(Some(40), false)[1], "a-very-long-ke…    7  print   2027-01-01");
        assert_eq!(table().fitted(Some(30), false)[1], "a-very-long-…    7  2027-01-01");
        assert_eq!(
            table().fitted(Some(25), false),
            ["KEY            NEXT", "a-very-long-…  2027-01-01", "b              -"]
        );
        // Narrower than the columns that are never dropped.
        assert_eq!(table().fitted(Some(5), false)[2], "b             -");
    }

    #[test]
    fn wide_letters_take_two_columns() {
        let mut table = Table::new(&[Column::new("KEY").shrinks(), Column::new("B")], Symbols::Unicode);
        table.row(vec![Cell::text("日本語の仕事です"), Cell::text("x")]);
        table.row(vec![Cell::text("e\u{301}te\u{301}"), Cell::text("y")]);
        let wide = ["KEY               B", "日本語の仕事です  x", "e\u{301}te\u{301}               y"];
        assert_eq!(table.fitted(None, false), wide);
        let cut = ["KEY           B", "日本語の仕…   x", "e\u{301}te\u{301}           y"];
        assert_eq!(table.fitted(Some(15), false), cut);
    }

    #[test]
    fn programs_get_untruncated_values() {
        assert_eq!(table().tabbed(), ["a-very-long-key-of-a-job\t7\tprint\tx\\ty", "b\t12\tprint\tx\\ty"]);
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("\u{1b}[31mred\u{7}\u{202e}é\n"), "\\u{1b}[31mred\\u{7}\\u{202e}é\\n");
        assert_eq!(printable("日本"), "日本");
    }
}
