//! How far something is, for somebody who watches.

use std::io::{self, IsTerminal, Write};

/// One line on standard error that is written over and over, and is gone in the end. Nothing if nobody watches.
pub struct Progress {
    is_watched: bool,
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
        Progress { is_watched: io::stderr().is_terminal() && !dumb, is_shown: false }
    }

    /// Shows a text in place of the last one. A terminal that cannot be written to is ignored.
    pub fn show(&mut self, text: &str) {
        if self.is_watched {
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
