//! The output of a run: its end is kept, while the run is at work and afterwards.

use crate::ids::RunId;
use crate::json::storable_text;

/// The most bytes of output that are kept: the end of it.
pub const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// The output of a run so far, guarded by its id and attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSoFar {
    /// The run.
    pub run_id: RunId,
    /// The attempt that must still be at work.
    pub attempt: u32,
    /// The end of the output.
    pub text: String,
}

impl OutputSoFar {
    /// The end of what an attempt has printed, made fit to be stored; `None` if that is nothing.
    pub fn new(run_id: RunId, attempt: u32, printed: &str) -> Option<OutputSoFar> {
        end_of_output(printed).map(|text| OutputSoFar { run_id, attempt, text })
    }
}

/// The end of what was printed, made fit to be stored; `None` if that is nothing.
pub(crate) fn end_of_output(printed: &str) -> Option<String> {
    let clean = storable_text(end_of(printed), usize::MAX);
    let tail = end_of(&clean).to_owned();
    (!tail.is_empty()).then_some(tail)
}

/// The last bytes of a text, as many as are kept, cut between characters.
fn end_of(text: &str) -> &str {
    let mut start = text.len().saturating_sub(MAX_OUTPUT_BYTES);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_output_is_kept() {
        assert_eq!(end_of_output(""), None);
        let long = format!("{}é\0end", "x".repeat(MAX_OUTPUT_BYTES));
        let kept = end_of_output(&long).unwrap();
        assert!(kept.len() <= MAX_OUTPUT_BYTES && kept.ends_with("é\u{fffd}end"), "{}", kept.len());
    }
}
