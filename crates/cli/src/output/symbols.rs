//! Symbols and colors of statuses.

use anstyle::{AnsiColor, Style};

/// The characters of symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbols {
    Unicode,
    Ascii,
}

/// Things that have a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Good,
    Bad,
    Skipped,
    Canceled,
    Active,
    Waiting,
    Paused,
    Ended,
    Warning,
    Arrow,
}

impl Symbols {
    /// Chooses by the locale, with the variables in the order of POSIX.
    pub(crate) fn from_locale(get: impl Fn(&str) -> Option<String>) -> Symbols {
        let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| get(name).filter(|text| !text.is_empty()));
        let locale = set.unwrap_or_default().to_ascii_lowercase();
        if locale.contains("utf-8") || locale.contains("utf8") { Symbols::Unicode } else { Symbols::Ascii }
    }

    pub(crate) fn symbol(self, mark: Mark) -> &'static str {
        let (unicode, ascii) = match mark {
            Mark::Good => ("✓", "+"),
            Mark::Bad => ("✕", "x"),
            Mark::Skipped => ("⤼", ">"),
            Mark::Canceled => ("⊘", "/"),
            Mark::Active => ("●", "*"),
            Mark::Waiting => ("○", "o"),
            Mark::Paused => ("‖", "="),
            Mark::Ended => ("■", "#"),
            Mark::Warning => ("⚠", "!"),
            Mark::Arrow => ("→", "->"),
        };
        if self == Symbols::Unicode { unicode } else { ascii }
    }

    /// The separator of parts of a line.
    pub(crate) fn dot(self) -> &'static str {
        if self == Symbols::Unicode { "·" } else { "-" }
    }
}

impl Mark {
    /// The mark of the status of a run or a job.
    pub(crate) fn from_status(word: &str) -> Mark {
        match word {
            "succeeded" => Mark::Good,
            "failed" => Mark::Bad,
            "skipped" => Mark::Skipped,
            "canceled" => Mark::Canceled,
            "running" | "active" => Mark::Active,
            "pending" => Mark::Waiting,
            "paused" => Mark::Paused,
            "errored" => Mark::Warning,
            _ => Mark::Ended,
        }
    }

    pub(crate) fn style(self) -> Style {
        let color = match self {
            Mark::Good => AnsiColor::Green,
            Mark::Bad => AnsiColor::Red,
            Mark::Skipped | Mark::Paused | Mark::Warning => AnsiColor::Yellow,
            Mark::Active | Mark::Arrow => AnsiColor::Cyan,
            Mark::Waiting | Mark::Canceled | Mark::Ended => AnsiColor::BrightBlack,
        };
        Style::new().fg_color(Some(color.into()))
    }
}

#[test]
fn the_first_variable_that_is_set_decides() {
    let locale = |all: &'static str, lang: &'static str| {
        Symbols::from_locale(move |name| match name {
            "LC_ALL" => Some(all.to_owned()),
            "LANG" => Some(lang.to_owned()),
            _ => None,
        })
    };
    assert_eq!(locale("", "de_DE.UTF-8"), Symbols::Unicode);
    assert_eq!(locale("C.utf8", "C"), Symbols::Unicode);
    assert_eq!(locale("C", "de_DE.UTF-8"), Symbols::Ascii);
    assert_eq!(locale("", ""), Symbols::Ascii);
    assert_eq!(Symbols::Ascii.symbol(Mark::from_status("failed")), "x");
}
