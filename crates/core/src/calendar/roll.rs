//! [`Roll`]: the fate of slots on days that calendars exclude.

use std::fmt;

/// The fate of a slot on a day that the calendars of its job exclude.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Roll {
    /// The slot does not fire.
    #[default]
    Skip,
    /// The slot fires at its local time of the next allowed day.
    Next,
    /// The slot fires at its local time of the last allowed day before.
    Previous,
}

impl Roll {
    /// Every choice, in the order in which they are documented.
    pub const ALL: &[Roll] = &[Roll::Skip, Roll::Next, Roll::Previous];

    /// The word used in the API, the configuration and the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Roll::Skip => "skip",
            Roll::Next => "next",
            Roll::Previous => "previous",
        }
    }

    /// The choice of this word.
    pub fn from_word(word: &str) -> Option<Roll> {
        Self::ALL.iter().copied().find(|choice| choice.as_str() == word)
    }
}

impl fmt::Display for Roll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
