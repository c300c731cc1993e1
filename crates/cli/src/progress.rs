//! Progress on a terminal.

use std::io::{self, IsTerminal, Write};

/// A line on standard error that is overwritten, and cleared at the end. Prints nothing without a terminal.
pub struct Progress {
    is_terminal: bool,
    is_shown: bool,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress::new()
    }
}

impl Progress {
    /// Shows progress on standard error if that is a terminal.
    pub fn new() -> Progress {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Progress { is_terminal: io::stderr().is_terminal() && !dumb, is_shown: false }
    }

    /// Replaces the line. Errors of the terminal are ignored.
    pub fn show(&mut self, text: &str) {
        if self.is_terminal {
            self.is_shown = true;
            let _ = write!(io::stderr(), "\r{text}\u{1b}[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}
