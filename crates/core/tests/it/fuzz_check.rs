//! Properties that hold for any text given as an expression. Used by `tests/it/fuzz.rs` and by the target in `/fuzz`.

use everbell_core::cron::{Dst, DstFold, DstGap, Expression, MAX_EXPRESSION_BYTES, ParseError};
use everbell_core::{Spec, Zone};
use jiff::{SignedDuration, Timestamp};

/// Reads the text and, if it is an expression, asks it everything. `true` if it was one.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    match Expression::parse(&text) {
        Ok(expression) => {
            check_expression(&expression);
            true
        }
        Err(error) => {
            check_error(&error, &text);
            false
        }
    }
}

fn check_error(error: &ParseError, text: &str) {
    assert!(error.expression.len() <= MAX_EXPRESSION_BYTES && text.starts_with(&error.expression));
    assert!(error.expression.get(error.span.clone()).is_some(), "{:?} is not inside {text:?}", error.span);
    let line = error.to_string();
    let printable = |text: &str| text.chars().all(|c| c == '\n' || !c.is_control());
    assert!(!line.is_empty() && !line.contains('\n') && printable(&line), "{line:?}");
    assert!(line.len() < 1_000, "{line:?} is too long");
    assert!(printable(&error.render()), "{:?}", error.render());
    assert!(!error.allowed().is_empty() && !error.code().is_empty() && error.hint() != Some(""));
}

fn check_expression(expression: &Expression) {
    let normalized = expression.normalized();
    let again = Expression::parse(normalized).unwrap_or_else(|error| panic!("{expression}: {normalized}: {error}"));
    assert_eq!(again.normalized(), normalized, "{expression}");
    assert_eq!(again.is_fixed_rate(), expression.is_fixed_rate(), "{expression}");
    assert!(expression.warnings().iter().all(|warning| !warning.detail.is_empty()), "{expression}");
    let description = expression.describe();
    if normalized != expression.as_str() {
        assert_eq!(again.describe(), description, "{expression}");
    }
    assert!(description.len() < 20 * MAX_EXPRESSION_BYTES, "{expression}: {description}");

    let other = Dst { gap: DstGap::Skip, fold: DstFold::Both };
    let places = [
        ("UTC", 1_800_000_000, Dst::default()),
        ("America/New_York", 1_804_000_000, Dst::default()),
        ("Australia/Lord_Howe", 951_782_399, other),
        ("Pacific/Apia", 1_325_200_000, Dst::default()),
    ];
    // Two of the four, by the length of the text: twice as many texts in the same time.
    for (zone, start, dst) in places.into_iter().skip(normalized.len() % 2).step_by(2) {
        let zone = Zone::get(zone).expect("a known zone");
        let start = Timestamp::from_second(start).expect("a small number");
        let spec = Spec::recurring(expression.clone(), zone.clone(), start).with_dst(dst);
        let same = Spec::recurring(again.clone(), zone, start).with_dst(dst);
        let mut after = start;
        for slot in spec.slots_after(start).take(2) {
            assert!(slot > after && spec.matches(slot), "{expression}: {slot} after {after}");
            assert_eq!(spec.count_between(after, slot), 1, "{expression}: between {after} and {slot}");
            assert_eq!(same.next_after(after), Some(slot), "{expression}: {normalized} differs");
            after = slot;
        }
        assert!(after > start, "{expression}: no slot after {start}");
        let before = spec.prev_at_or_before(after - SignedDuration::from_secs(1));
        assert!(before.is_none_or(|before| before < after), "{expression}");
    }
}
