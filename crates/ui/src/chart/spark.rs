//! A small histogram for a tile: the shape of a day, no axes.

use super::svg::{Markup, Percent, Picture, Size, real};
use super::words::counted;

/// The input of a sparkline.
pub(crate) struct Spark<'a> {
    /// Unique in its page; letters, digits and dashes.
    pub(crate) id: &'a str,
    /// Such as `Failed, last 24 hours`.
    pub(crate) title: &'a str,
    /// The noun of the counted things, such as `run`.
    pub(crate) noun: &'a str,
    pub(crate) colour: Colour,
    /// From the oldest to the newest.
    pub(crate) counts: &'a [u64],
}

/// The color of a sparkline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Plain,
    Good,
    Bad,
    Skipped,
}

impl Colour {
    const fn class(self) -> &'static str {
        match self {
            Colour::Plain => "c-spark",
            Colour::Good => "c-spark c-ok",
            Colour::Bad => "c-spark c-bad",
            Colour::Skipped => "c-spark c-skip",
        }
    }
}

const HEIGHT: f64 = 24.0;
const BAR: f64 = 0.7;

/// The picture.
pub(crate) fn spark(input: &Spark<'_>) -> String {
    let most = input.counts.iter().copied().max().unwrap_or(0);
    let total = input.counts.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
    let summary = format!("{} in all, at most {most} in one bar.", counted(total, input.noun));
    let (id, class, title, size) = (input.id, input.colour.class(), input.title, Size::Fluid(HEIGHT));
    let slot = 1.0 / real(input.counts.len().max(1) as i64);
    let mut markup = Markup::default();
    Picture { id, class, title, summary: &summary, linked: false, size }.draw(&mut markup, |markup| {
        let base = markup.element("line").class("c-grid").attr("x2", "100%").attr("y1", HEIGHT - 0.5);
        base.attr("y2", HEIGHT - 0.5).empty();
        for (index, count) in input.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let height = (HEIGHT * real(*count as i64) / real(most as i64)).round().max(2.0);
            let x = Percent((real(index as i64) + (1.0 - BAR) / 2.0) * slot);
            let bar = markup.element("rect").attr("x", x).attr("width", Percent(slot * BAR));
            bar.attr("y", HEIGHT - height).attr("height", height).empty();
        }
    });
    markup.finish()
}

#[test]
fn bars_are_as_high_as_their_share() {
    let draw = |counts| spark(&Spark { id: "k", title: "Failed", noun: "run", colour: Colour::Bad, counts });
    let drawn = draw(&[0, 1, 1_000, 500]);
    assert_eq!(drawn.matches("<rect").count(), 3);
    assert!(drawn.contains("y=\"0\" height=\"24\"") && drawn.contains("y=\"12\" height=\"12\""), "{drawn}");
    assert!(drawn.contains("y=\"22\" height=\"2\""), "what there is one of is seen: {drawn}");
    assert!(drawn.contains("<desc id=\"k-d\">1501 runs in all, at most 1000 in one bar.</desc>"), "{drawn}");
    for counts in [&[] as &[u64], &[0; 24], &[u64::MAX; 24]] {
        let drawn = draw(counts);
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }
}
