//! Standard output: tables for people, tabs for programs, JSON on request.

use std::io::{self, BufWriter, IsTerminal, Write};

use jiff::civil::Time;
use serde::Serialize;

/// Where a command writes its data. Nothing else writes to standard output, and errors are never swallowed: a closed
/// pipe has to end the command.
pub(crate) struct Output<W: Write = io::StdoutLock<'static>> {
    writer: BufWriter<W>,
    is_terminal: bool,
}

impl Output {
    pub(crate) fn stdout() -> Output {
        let stdout = io::stdout();
        Output { is_terminal: stdout.is_terminal(), writer: BufWriter::with_capacity(1 << 16, stdout.lock()) }
    }
}

impl<W: Write> Output<W> {
    /// One line of text.
    pub(crate) fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.writer, "{line}")
    }

    /// One JSON document on a line of its own.
    pub(crate) fn json(&mut self, document: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.writer, document)?;
        self.writer.write_all(b"\n")
    }

    /// Rows in aligned columns, or separated by tabs if no person looks.
    pub(crate) fn table(&mut self, rows: &[Vec<String>], gaps: Gaps) -> io::Result<()> {
        if self.is_terminal {
            return aligned(rows, gaps).iter().try_for_each(|line| self.line(line));
        }
        rows.iter().try_for_each(|row| self.line(&row.join("\t")))
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// The spaces behind each column; the last number is that of all further columns.
pub(crate) type Gaps = &'static [usize];

/// The rows as lines in which columns stand below each other. No line ends in spaces.
pub(crate) fn aligned(rows: &[Vec<String>], gaps: Gaps) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let gap = |column: usize| gaps.get(column).or(gaps.last()).copied().unwrap_or(1);
    let padded = |(column, (cell, width)): (usize, (&String, &usize))| format!("{cell:0$}", width + gap(column));
    let line = |row: &Vec<String>| row.iter().zip(&widths).enumerate().map(padded).collect::<String>();
    rows.iter().map(|row| line(row).trim_end().to_owned()).collect()
}

/// A time of day as a clock shows it; seconds only if there are any.
pub(crate) fn clock_face(time: Time) -> String {
    let format = if time.second() == 0 { "%H:%M" } else { "%H:%M:%S" };
    time.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        vec![row(&["Mon", "a", "in 18h 18m"]), row(&["Tue", "bcd", "in 8d", "second 01:30"])]
    }

    fn written(is_terminal: bool) -> String {
        let mut bytes = Vec::new();
        let mut output = Output { writer: BufWriter::new(&mut bytes), is_terminal };
        output.table(&rows(), &[1, 2]).unwrap();
        output.flush().unwrap();
        drop(output);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn people_see_columns() {
        assert_eq!(written(true), "Mon a    in 18h 18m\nTue bcd  in 8d       second 01:30\n");
    }

    #[test]
    fn programs_see_tabs() {
        assert_eq!(written(false), "Mon\ta\tin 18h 18m\nTue\tbcd\tin 8d\tsecond 01:30\n");
    }
}
