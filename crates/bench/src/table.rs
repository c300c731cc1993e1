//! Rows of text in columns.

/// A table with a heading: the first columns are words, the others are numbers and stand to the right.
pub(crate) struct Table {
    words: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(words: usize, heading: &[&str]) -> Table {
        Table { words, rows: vec![heading.iter().map(ToString::to_string).collect()] }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(crate) fn print(&self, title: &str) {
        println!("\n{title}\n");
        let columns = self.rows[0].len();
        let width =
            |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        for (index, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                if column < self.words { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            println!("| {} |", cells.collect::<Vec<_>>().join(" | "));
            if index == 0 {
                let rule = |(column, width): (usize, &usize)| {
                    if column < self.words { "-".repeat(width + 2) } else { "-".repeat(width + 1) + ":" }
                };
                println!("|{}|", widths.iter().enumerate().map(rule).collect::<Vec<_>>().join("|"));
            }
        }
    }
}

/// `12,345`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
