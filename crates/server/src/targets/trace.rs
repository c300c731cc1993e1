//! The trace that targets receive with a run.

use everbell::{Run, TraceContext};
use uuid::Uuid;

/// The `traceparent` and the `tracestate` of a run.
///
/// Those of the request that asked for the run are passed on as they are: the server records no spans, so the span of that
/// request is the parent of the call. Every other run begins a trace.
pub(super) fn trace_of(run: &Run) -> (String, Option<String>) {
    match run.trace_context() {
        Some(context) => (context.traceparent().to_owned(), TraceContext::tracestate(context).map(str::to_owned)),
        None => (new_trace(run.id().as_uuid(), run.attempt()), None),
    }
}

/// A trace with the id of the run, so that one leads to the other. It is sampled: without that flag a receiver that follows its
/// caller would keep no trace.
fn new_trace(run: Uuid, attempt: u32) -> String {
    let (_, low) = run.as_u64_pair();
    // No id may be zero.
    let span = (low ^ u64::from(attempt)).max(1);
    format!("00-{}-{span:016x}-01", run.simple())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_trace_has_its_form() {
        let run = Uuid::from_u128(0xabc);
        assert_eq!(new_trace(run, 1), "00-00000000000000000000000000000abc-0000000000000abd-01");
        assert_eq!(new_trace(run, 0xabc), "00-00000000000000000000000000000abc-0000000000000001-01");
        assert!(TraceContext::parse(&new_trace(run, 7), None).is_ok());
    }
}
