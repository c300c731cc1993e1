//! The verdict of an experiment.

use std::fmt;

use super::clock::load_per_processor;

/// One line of the result.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The name of the experiment.
    pub name: String,
    /// The actions taken.
    pub did: String,
    /// The observations, in numbers.
    pub saw: String,
    /// Broken promises; empty if all is well.
    pub broken: Vec<String>,
    /// The load per processor at the end.
    pub load: f64,
    /// The length of the experiment, in seconds.
    pub seconds: f64,
}

impl Verdict {
    pub(crate) fn new(name: &str, did: impl Into<String>) -> Verdict {
        Verdict {
            name: name.to_owned(),
            did: did.into(),
            saw: String::new(),
            broken: Vec::new(),
            load: load_per_processor(),
            seconds: 0.0,
        }
    }

    /// Whether everything held.
    pub fn is_ok(&self) -> bool {
        self.broken.is_empty()
    }

    pub(crate) fn saw(&mut self, what: impl fmt::Display) {
        if !self.saw.is_empty() {
            self.saw.push_str(", ");
        }
        self.saw.push_str(&what.to_string());
    }

    /// Notes what was observed, and that it must not be if it is `bad`.
    pub(crate) fn check(&mut self, bad: bool, what: impl fmt::Display) {
        let what = what.to_string();
        if bad {
            self.broken.push(what.clone());
        }
        self.saw(what);
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_ok() { "ok  " } else { "FAIL" };
        write!(f, "{word} {:<20} {} -> {}", self.name, self.did, self.saw)?;
        if !self.is_ok() {
            write!(f, " [broken: {}]", self.broken.join("; "))?;
        }
        write!(f, " (load {:.1} per processor, {:.0} s)", self.load, self.seconds)
    }
}
