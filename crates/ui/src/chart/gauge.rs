//! How far a run is, if it takes as long as runs of its job do.

use super::svg::{Markup, Percent, Picture, Size, real};
use super::words::took;

/// The input of a gauge.
pub(crate) struct Gauge<'a> {
    /// Unique in its page; letters, digits and dashes.
    pub(crate) id: &'a str,
    /// Whose run it is.
    pub(crate) job: &'a str,
    pub(crate) elapsed_ms: i64,
    /// How long its job's runs take as a rule; `None` if there were none yet.
    pub(crate) expected_ms: Option<i64>,
}

const HEIGHT: f64 = 10.0;

/// The picture.
pub(crate) fn gauge(input: &Gauge<'_>) -> String {
    let elapsed = input.elapsed_ms.max(0);
    let expected = input.expected_ms.map(|expected| expected.max(1));
    let (class, summary) = match expected {
        None => ("c-gauge", format!("{} so far; the usual duration is unknown.", took(elapsed))),
        Some(expected) if elapsed > expected => {
            let times = real(elapsed) / real(expected);
            ("c-gauge c-over", format!("{} so far, {times:.1} times the usual {}.", took(elapsed), took(expected)))
        }
        Some(expected) => ("c-gauge", format!("{} of about {}.", took(elapsed), took(expected))),
    };
    // Beyond what is expected the bar is full, and a mark stands where it should have ended.
    let (done, mark) = match expected {
        None => (1.0, None),
        Some(expected) if elapsed > expected => (1.0, Some(real(expected) / real(elapsed))),
        Some(expected) => (real(elapsed) / real(expected), None),
    };
    let title = format!("{} is running", input.job);
    let picture =
        Picture { id: input.id, class, title: &title, summary: &summary, linked: false, size: Size::Fluid(HEIGHT) };
    let mut markup = Markup::default();
    picture.draw(&mut markup, |markup| {
        let bar = |markup: &mut Markup, class: &str, share: f64| {
            let rect = markup.element("rect").class(class).attr("y", 1.0).attr("width", Percent(share));
            rect.attr("height", HEIGHT - 2.0).attr("rx", 4.0).empty();
        };
        bar(markup, "c-track", 1.0);
        bar(markup, if expected.is_some() { "c-done" } else { "c-unknown" }, done);
        if expected.is_none() || done < 1.0 || mark.is_some() {
            let flow = markup.element("line").class("c-flow").attr("x2", Percent(done));
            flow.attr("y1", HEIGHT / 2.0).attr("y2", HEIGHT / 2.0).empty();
        }
        if let Some(mark) = mark {
            let line = markup.element("line").class("c-due").attr("x1", Percent(mark)).attr("x2", Percent(mark));
            line.attr("y2", HEIGHT).empty();
        }
    });
    markup.finish()
}

#[test]
fn a_gauge_tells_how_far_a_run_is() {
    let draw = |elapsed_ms, expected_ms| gauge(&Gauge { id: "g", job: "a<b", elapsed_ms, expected_ms });
    let half = draw(20_000, Some(40_000));
    assert!(half.contains("class=\"c-done\" y=\"1\" width=\"50%\"") && !half.contains("c-due"), "{half}");
    assert!(
        half.contains(">a&lt;b is running</title>") && half.contains("20.0\u{a0}s of about 40.0\u{a0}s."),
        "{half}"
    );
    let over = draw(120_000, Some(40_000));
    assert!(over.contains("c-gauge c-over") && over.contains("class=\"c-due\" x1=\"33.33%\""), "{over}");
    assert!(over.contains("2\u{a0}m so far, 3.0 times the usual 40.0\u{a0}s."), "{over}");
    assert!(draw(5, None).contains("c-unknown"));
    for (elapsed, expected) in [(-5, Some(0)), (0, Some(0)), (i64::MAX, Some(1)), (0, Some(i64::MAX)), (0, None)] {
        let drawn = draw(elapsed, expected);
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }
}
