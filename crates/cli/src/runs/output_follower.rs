//! [`OutputFollower`]: prints the output of a run as it grows.

use everbell_wire as wire;

use crate::error::note;
use crate::{CliError, Session};
use everbell_wire::printable;

/// The output that was printed so far.
#[derive(Debug, Default)]
pub(super) struct OutputFollower {
    attempt: u32,
    shown: String,
}

impl OutputFollower {
    /// Prints new output: whole lines, and the rest when the run has ended. Control characters are escaped for a terminal.
    pub(super) fn show(&mut self, session: &mut Session<'_>, run: &wire::Run, ended: bool) -> Result<(), CliError> {
        let attempt = run.attempt;
        if attempt != self.attempt {
            if self.attempt > 0 && !session.quiet {
                note(format!("attempt {attempt} started"));
            }
            *self = OutputFollower { attempt, shown: String::new() };
        }
        let NewOutput { missed, lines } = self.new_output(run.output.as_deref().unwrap_or_default(), ended);
        if missed && !session.quiet {
            note("some output was lost: only the last 64 KiB are stored");
        }
        if session.out.is_terminal() {
            lines.lines().try_for_each(|line| session.out.line(&printable(line)))?;
        } else {
            session.out.raw(lines)?;
        }
        session.out.flush()?;
        Ok(())
    }

    /// Returns the new output. The server stores only the end, so output that was printed before may be gone from its start.
    fn new_output<'a>(&mut self, output: &'a str, ended: bool) -> NewOutput<'a> {
        let known =
            self.shown.char_indices().map(|(start, _)| &self.shown[start..]).find(|end| output.starts_with(end));
        let missed = known.is_none() && !self.shown.is_empty();
        let from = known.map_or(0, str::len);
        let to = if ended { output.len() } else { output.rfind('\n').map_or(from, |at| from.max(at + 1)) };
        if to > from || missed {
            output[..to].clone_into(&mut self.shown);
        }
        NewOutput { missed, lines: &output[from..to] }
    }
}

struct NewOutput<'a> {
    /// Output in between was lost.
    missed: bool,
    lines: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(printed: &mut OutputFollower, output: &str, ended: bool) -> (bool, String) {
        let NewOutput { missed, lines } = printed.new_output(output, ended);
        (missed, lines.to_owned())
    }

    #[test]
    fn whole_lines_are_shown_once_and_the_rest_at_the_end() {
        let mut printed = OutputFollower::default();
        let mut all = String::new();
        for (output, ended) in
            [("", false), ("on", false), ("one\ntw", false), ("one\ntw", false), ("one\ntwo\nthree", true)]
        {
            let (missed, lines) = follow(&mut printed, output, ended);
            assert!(!missed, "{output}");
            all.push_str(&lines);
        }
        assert_eq!(all, "one\ntwo\nthree");
    }

    #[test]
    fn lost_output_is_reported() {
        let mut printed = OutputFollower::default();
        assert_eq!(follow(&mut printed, "é1\né2\n", false), (false, "é1\né2\n".to_owned()));
        assert_eq!(follow(&mut printed, "2\né3\n", false), (false, "é3\n".to_owned()));
        assert_eq!(follow(&mut printed, "é3\n", false), (false, String::new()));
        assert_eq!(follow(&mut printed, "é3\né4\n", false), (false, "é4\n".to_owned()));
        assert_eq!(follow(&mut printed, "x9\nx10\n", false), (true, "x9\nx10\n".to_owned()));
        assert_eq!(follow(&mut printed, "x10\nx11", true), (false, "x11".to_owned()));
    }
}
