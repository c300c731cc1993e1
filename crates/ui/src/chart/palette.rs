//! The look of a status: a color by its class, and a shape or a pattern that does not depend on color.
//!
//! | status | filled | as a dot |
//! |---|---|---|
//! | succeeded | solid | disc |
//! | failed | hatched, outlined | cross |
//! | running | striped, the stripes move | ring with a dot |
//! | pending | hollow | ring |
//! | skipped | dotted | triangle |
//! | canceled | hollow, dashed | square, hollow |

use everbell_core::RunStatus;

use super::svg::{Element, Markup};
use super::words::{counted, grouped};

/// From the base line upwards: what is compared most often has a level base.
pub(super) const STACK: [RunStatus; 6] = [
    RunStatus::Failed,
    RunStatus::Canceled,
    RunStatus::Skipped,
    RunStatus::Succeeded,
    RunStatus::Running,
    RunStatus::Pending,
];

/// How a legend and a table list them.
const LISTED: [RunStatus; 6] = [
    RunStatus::Succeeded,
    RunStatus::Failed,
    RunStatus::Skipped,
    RunStatus::Canceled,
    RunStatus::Running,
    RunStatus::Pending,
];

/// The worst first.
const WORST: [RunStatus; 6] = [
    RunStatus::Failed,
    RunStatus::Canceled,
    RunStatus::Skipped,
    RunStatus::Running,
    RunStatus::Pending,
    RunStatus::Succeeded,
];

/// The class of a status; the style sheet gives it the colour.
pub(super) const fn class(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Succeeded => "c-ok",
        RunStatus::Failed => "c-bad",
        RunStatus::Running => "c-run",
        RunStatus::Pending => "c-wait",
        RunStatus::Skipped => "c-skip",
        RunStatus::Canceled => "c-off",
    }
}

/// How many runs there are of each status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts([u64; 6]);

impl Counts {
    pub(crate) fn new(counts: impl IntoIterator<Item = (RunStatus, u64)>) -> Counts {
        let mut all = Counts::default();
        for (status, count) in counts {
            all.add(status, count);
        }
        all
    }

    /// One of each of these.
    pub(crate) fn from_statuses(statuses: impl IntoIterator<Item = RunStatus>) -> Counts {
        Counts::new(statuses.into_iter().map(|status| (status, 1)))
    }

    pub(crate) fn add(&mut self, status: RunStatus, count: u64) {
        self.0[status as usize] = self.0[status as usize].saturating_add(count);
    }

    pub(crate) fn get(&self, status: RunStatus) -> u64 {
        self.0[status as usize]
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns the status that needs the most attention.
    pub(crate) fn worst(&self) -> Option<RunStatus> {
        WORST.into_iter().find(|status| self.get(*status) > 0)
    }

    /// The statuses that occur, as they are listed.
    pub(super) fn present(&self) -> impl Iterator<Item = (RunStatus, u64)> + '_ {
        LISTED.into_iter().map(|status| (status, self.get(status))).filter(|(_, count)| *count > 0)
    }

    /// `12 runs: 10 succeeded, 2 failed`; `3 succeeded` if they are all the same.
    pub(super) fn in_words(&self) -> String {
        let parts: Vec<String> = self.present().map(|(status, count)| format!("{} {status}", grouped(count))).collect();
        match parts.as_slice() {
            [] => "no runs".to_owned(),
            [only] => only.clone(),
            _ => format!("{}: {}", counted(self.total(), "run"), parts.join(", ")),
        }
    }
}

impl std::iter::Sum for Counts {
    fn sum<I: Iterator<Item = Counts>>(counts: I) -> Counts {
        Counts::new(counts.flat_map(|counts| LISTED.map(|status| (status, counts.get(status)))))
    }
}

/// The patterns of one picture. Their ids carry the id of the picture, so that pictures can share a page.
#[derive(Clone, Copy)]
pub(super) struct Patterns<'a>(pub(super) &'a str);

impl Patterns<'_> {
    /// Writes those that are needed.
    pub(super) fn define(self, markup: &mut Markup, used: &Counts) {
        let patterned = [RunStatus::Failed, RunStatus::Running, RunStatus::Skipped];
        if patterned.iter().all(|status| used.get(*status) == 0) {
            return;
        }
        markup.element("defs").inside(|markup| {
            for status in patterned.into_iter().filter(|status| used.get(*status) > 0) {
                self.pattern(markup, status);
            }
        });
    }

    fn pattern(self, markup: &mut Markup, status: RunStatus) {
        let side = if status == RunStatus::Skipped { 3.0 } else { 4.0 };
        let element = markup.element("pattern").attr("id", &self.name(status)).attr("patternUnits", "userSpaceOnUse");
        let element = element.attr("width", side).attr("height", side);
        let element =
            if status == RunStatus::Failed { element.attr("patternTransform", "rotate(45)") } else { element };
        element.inside(|markup| {
            markup.element("rect").class("c-ground").attr("width", side).attr("height", side).empty();
            match status {
                RunStatus::Skipped => {
                    markup.element("circle").class("c-speck").attr("cx", 1.5).attr("cy", 1.5).attr("r", 0.8).empty();
                }
                RunStatus::Failed => {
                    markup.element("rect").class("c-hatch").attr("width", 2.0).attr("height", side).empty();
                }
                // Two stripes, so that one comes in while the other moves out.
                _ => markup.element("path").class("c-go").attr("d", "M0 1h4M0 5h4").empty(),
            }
        });
    }

    fn name(self, status: RunStatus) -> String {
        format!("{}-{}", self.0, &class(status)[2..])
    }

    /// Gives an element the looks of a status.
    pub(super) fn fill(self, element: Element<'_>, status: RunStatus) -> Element<'_> {
        let element = element.class(class(status));
        match status {
            RunStatus::Failed | RunStatus::Running | RunStatus::Skipped => {
                element.attr("fill", &format!("url(#{})", self.name(status)))
            }
            RunStatus::Succeeded | RunStatus::Pending | RunStatus::Canceled => element,
        }
    }
}

/// The outline of a dot around the origin.
pub(super) const fn dot(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Succeeded | RunStatus::Pending => "M-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0",
        RunStatus::Failed => "M-3-3 3 3M-3 3 3-3",
        RunStatus::Running => "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0M-.5 0h1",
        RunStatus::Skipped => "M0-3 3 2.5h-6z",
        RunStatus::Canceled => "M-2.5-2.5h5v5h-5z",
    }
}

/// The labels of a legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Words,
    WordsAndCounts,
}

/// A legend entry that is not a run status.
pub(super) struct Other {
    pub(super) class: &'static str,
    /// In a square of 12.
    pub(super) shape: &'static str,
    pub(super) word: &'static str,
    pub(super) count: u64,
}

/// Renders the legend as a list that wraps.
pub(super) fn legend(markup: &mut Markup, patterns: Patterns<'_>, used: &Counts, others: &[Other], shown: Shown) {
    markup.element("ul").class("c-legend").inside(|markup| {
        for (status, count) in used.present() {
            markup.element("li").inside(|markup| {
                swatch(markup, |markup| {
                    let rect = patterns.fill(markup.element("rect"), status);
                    rect.attr("x", 1.0).attr("y", 1.0).attr("width", 10.0).attr("height", 10.0).empty();
                });
                explained(markup, status.as_str(), count, shown);
            });
        }
        for Other { class, shape, word, count } in others.iter().filter(|other| other.count > 0) {
            markup.element("li").inside(|markup| {
                swatch(markup, |markup| markup.element("path").class(class).attr("d", *shape).empty());
                explained(markup, word, *count, shown);
            });
        }
    });
}

fn explained(markup: &mut Markup, word: &str, count: u64, shown: Shown) {
    markup.text(word);
    if shown == Shown::WordsAndCounts {
        markup.element("b").text(&grouped(count));
    }
}

/// A small picture beside a word.
pub(super) fn swatch(markup: &mut Markup, draw: impl FnOnce(&mut Markup)) {
    let element = markup.element("svg").class("c-sw").attr("width", 12.0).attr("height", 12.0);
    element.attr("aria-hidden", "true").inside(draw);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_looks_of_its_own() {
        let mut classes: Vec<&str> = RunStatus::ALL.iter().map(|status| class(*status)).collect();
        classes.sort_unstable();
        classes.dedup();
        assert_eq!(classes.len(), 6);
        for order in [STACK, LISTED, WORST] {
            assert!(RunStatus::ALL.iter().all(|status| order.contains(status)));
        }
    }

    #[test]
    fn counts_add_up_and_tell_the_worst() {
        let counts = Counts::new([(RunStatus::Succeeded, 40), (RunStatus::Skipped, 2)]);
        assert_eq!((counts.total(), counts.worst()), (42, Some(RunStatus::Skipped)));
        assert_eq!(counts.in_words(), "42 runs: 40 succeeded, 2 skipped");
        let both: Counts = [counts, Counts::from_statuses([RunStatus::Failed])].into_iter().sum();
        assert_eq!((both.total(), both.worst()), (43, Some(RunStatus::Failed)));
        assert_eq!((Counts::default().in_words(), Counts::default().worst()), ("no runs".to_owned(), None));
        assert_eq!(Counts::from_statuses([RunStatus::Pending]).in_words(), "1 pending");
        assert_eq!(Counts::new([(RunStatus::Failed, u64::MAX), (RunStatus::Failed, 1)]).total(), u64::MAX);
    }

    #[test]
    fn patterns_are_written_only_where_they_are_needed() {
        let defined = |counts: Counts| {
            let mut markup = Markup::default();
            Patterns("p7").define(&mut markup, &counts);
            markup.finish()
        };
        assert_eq!(defined(Counts::from_statuses([RunStatus::Succeeded, RunStatus::Pending, RunStatus::Canceled])), "");
        let failed = defined(Counts::from_statuses([RunStatus::Failed]));
        assert!(failed.contains("id=\"p7-bad\"") && !failed.contains("p7-run"), "{failed}");
        let all = defined(Counts::from_statuses(RunStatus::ALL.iter().copied()));
        assert!(["p7-bad", "p7-run", "p7-skip"].iter().all(|id| all.contains(&format!("id=\"{id}\""))), "{all}");
    }
}
