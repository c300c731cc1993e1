//! Standard output: tables for people, tabs for programs, JSON on request.

mod symbols;
mod table;

use std::io::{self, BufWriter, IsTerminal, Write};

use anstream::AutoStream;
use anstyle::Style;
pub(crate) use everbell_wire::clock_face;
use serde::Serialize;

pub(crate) use everbell_wire::printable;
pub(crate) use symbols::{Mark, Symbols};
pub(crate) use table::{Cell, Column, Table};

/// The output of a command. Nothing else writes to standard output, and errors are always returned: a closed pipe must end
/// the command.
pub struct Output<W: Write = io::StdoutLock<'static>> {
    writer: BufWriter<W>,
    is_terminal: bool,
    /// Whether people read the output: on a terminal, or because a flag asks for tables.
    for_people: bool,
    /// The maximal width of a line.
    width: Option<usize>,
    colors: bool,
    pub(crate) symbols: Symbols,
}

impl Output {
    /// Writes to standard output.
    pub fn stdout() -> Output {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        let mut output = Output::new(stdout.lock(), is_terminal);
        output.symbols = Symbols::from_locale(|name| std::env::var(name).ok());
        output.width = columns(is_terminal);
        output.choose_colors();
        output
    }

    /// Decides whether to use colors, after flags were parsed.
    pub(crate) fn choose_colors(&mut self) {
        self.colors = AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
    }
}

/// The width of the terminal, unless `COLUMNS` overrides it.
fn columns(is_terminal: bool) -> Option<usize> {
    let variable = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse::<usize>().ok());
    let measured = || {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
    };
    variable.filter(|columns| *columns >= 20).or_else(|| is_terminal.then(measured).flatten())
}

impl<W: Write> Output<W> {
    fn new(writer: W, is_terminal: bool) -> Output<W> {
        Output {
            writer: BufWriter::with_capacity(1 << 16, writer),
            is_terminal,
            for_people: is_terminal,
            width: None,
            colors: false,
            symbols: Symbols::Ascii,
        }
    }

    /// Writes for people or for programs, regardless of the terminal.
    pub(crate) fn force(&mut self, for_people: bool) {
        self.for_people = for_people;
    }

    pub(crate) fn is_for_people(&self) -> bool {
        self.for_people
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes a line.
    pub fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.writer, "{line}")
    }

    /// Writes a name on a line, unless it is empty.
    pub(crate) fn name(&mut self, name: &str) -> io::Result<()> {
        if name.is_empty() { Ok(()) } else { self.line(&printable(name)) }
    }

    /// Writes text without escaping it.
    pub fn raw(&mut self, text: &str) -> io::Result<()> {
        self.writer.write_all(text.as_bytes())
    }

    /// Writes a JSON document on a line.
    pub fn json(&mut self, document: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.writer, document)?;
        self.writer.write_all(b"\n")
    }

    /// Writes rows in aligned columns for people, or separated by tabs for programs.
    pub fn table(&mut self, rows: &[Vec<String>], gaps: Gaps) -> io::Result<()> {
        if self.for_people {
            return aligned(rows, gaps).iter().try_for_each(|line| self.line(line));
        }
        rows.iter().try_for_each(|row| self.line(&row.join("\t")))
    }

    /// Writes a table: with a header and fitted to the terminal for people, without a header and untruncated for programs.
    pub(crate) fn list(&mut self, table: &Table) -> io::Result<()> {
        let lines = if self.for_people { table.fitted(self.width, self.colors) } else { table.tabbed() };
        lines.iter().try_for_each(|line| self.line(line))
    }

    /// Applies a style, if colors are used.
    pub(crate) fn styled(&self, text: &str, style: Style) -> String {
        if self.colors && style != Style::new() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// The symbol of a mark, in its color.
    pub(crate) fn mark(&self, mark: Mark) -> String {
        self.styled(self.symbols.symbol(mark), mark.style())
    }

    /// Flushes the buffer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// The spaces behind each column; the last number is that of all further columns.
pub(crate) type Gaps = &'static [usize];

/// Aligns the columns of rows. No line ends with spaces.
pub fn aligned(rows: &[Vec<String>], gaps: Gaps) -> Vec<String> {
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

/// `1 job`, `2 jobs`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
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
        let mut output = Output::new(&mut bytes, is_terminal);
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
