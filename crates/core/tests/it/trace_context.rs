//! Trace contexts: every header that W3C allows is read, and no other one.

use everbell_core::TraceContext;
use proptest::prelude::*;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn parent(text: &str) -> Option<String> {
    TraceContext::parse(text, None).ok().map(|context| context.to_string())
}

#[test]
fn the_parts_of_a_header_are_read() {
    let context = TraceContext::parse(PARENT, Some("rojo=00f067aa0ba902b7, congo=t61rcWkgMzE")).unwrap();
    assert_eq!(context.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(context.parent_id(), "00f067aa0ba902b7");
    assert_eq!(context.tracestate(), Some("rojo=00f067aa0ba902b7, congo=t61rcWkgMzE"));
    assert!(context.sampled());
    assert_eq!((context.to_string().as_str(), context.traceparent()), (PARENT, PARENT));
    assert_eq!(TraceContext::from_stored(context.as_stored()), Ok(context));
}

#[test]
fn flags_of_version_00_stay_as_they_are() {
    for (flags, sampled) in [("00", false), ("01", true), ("02", false), ("03", true), ("ff", true), ("fe", false)] {
        let context = TraceContext::parse(&format!("{}{flags}", &PARENT[..53]), None).unwrap();
        assert_eq!((context.sampled(), &context.traceparent()[53..]), (sampled, flags));
    }
}

#[test]
fn later_versions_are_read_by_what_00_knows() {
    let later = |tail: &str| parent(&format!("cc{}{tail}", &PARENT[2..]));
    assert_eq!(later("").as_deref(), Some(PARENT));
    assert_eq!(later("-what-the-future-brings").as_deref(), Some(PARENT));
    assert_eq!(later("-").as_deref(), Some(PARENT));
    assert_eq!(later(".what"), None);
    assert_eq!(
        parent(&format!("cc{}ff", &PARENT[2..53])).as_deref(),
        Some(PARENT),
        "other flags may mean something else"
    );
}

#[test]
fn headers_that_the_standard_forbids_are_refused() {
    let refused = [
        "",
        "00",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
        "0-04bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
        "00-4bf92f3577b34da6a3ce929d0e0e47é-00f067aa0ba902b7-01x",
    ];
    for text in refused {
        let problem = TraceContext::parse(text, None).unwrap_err();
        assert!(problem.field == "traceparent" && problem.reason.contains("32, 16 and 2"), "{text}: {problem}");
    }
}

#[test]
fn a_tracestate_that_cannot_be_kept_is_dropped() {
    let state = |text: &str| TraceContext::parse(PARENT, Some(text)).unwrap().tracestate().map(str::to_owned);
    assert_eq!(state(&"x".repeat(512)).map(|kept| kept.len()), Some(512));
    for dropped in ["", "  ", "a=é", "a=1\nb=2", "a=\u{7f}", &"x".repeat(513)] {
        assert_eq!(state(dropped), None, "{dropped:?}");
    }
}

proptest! {
    #[test]
    fn reading_never_panics(parent in ".{0,60}", state in proptest::option::of(".{0,600}"), stored in ".{0,80}") {
        let _ = TraceContext::parse(&parent, state.as_deref());
        let _ = TraceContext::from_stored(&stored);
    }

    #[test]
    fn valid_headers_round_trip(
        trace in "[0-9a-f]{31}[1-9a-f]",
        span in "[1-9a-f][0-9a-f]{15}",
        flags in "[0-9a-f]{2}",
        state in proptest::option::of("[!-~][ -~]{0,510}[!-~]"),
    ) {
        let header = format!("00-{trace}-{span}-{flags}");
        let context = TraceContext::parse(&header, state.as_deref()).unwrap();
        prop_assert_eq!(context.traceparent(), &header);
        prop_assert_eq!((context.trace_id(), context.parent_id()), (trace.as_str(), span.as_str()));
        prop_assert_eq!(context.tracestate(), state.as_deref());
        prop_assert_eq!(TraceContext::from_stored(context.as_stored()), Ok(context));
    }

    #[test]
    fn almost_valid_headers_are_read_or_refused(header in "[0-9a-fg]{2}-[0-9a-f]{31,33}-[0-9a-f]{15,17}-[0-9a-fé]{1,3}(-x)?") {
        if let Ok(context) = TraceContext::parse(&header, None) {
            prop_assert_eq!(&context.traceparent()[2..53], &header[2..53]);
        }
    }
}
