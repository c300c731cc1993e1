//! A shop that is traced with OpenTelemetry. A checkout enqueues a mail; the handler that sends it belongs to the trace
//! of the checkout, whichever instance runs it. The program checks that, and fails if it is not so.

use std::collections::HashMap;
use std::error::Error;

use everbell::{Event, Everbell, Run, TraceContext, Tracing};
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tracing::{Span, info, instrument};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Connects everbell to OpenTelemetry, by way of the two headers that both understand.
#[derive(Default)]
struct OpenTelemetry(TraceContextPropagator);

impl Tracing for OpenTelemetry {
    fn current(&self) -> Option<TraceContext> {
        let mut headers = HashMap::new();
        self.0.inject_context(&Span::current().context(), &mut headers);
        let tracestate = headers.get("tracestate").map(String::as_str);
        TraceContext::parse(headers.get("traceparent")?, tracestate).ok()
    }

    fn set_parent(&self, span: &Span, parent: &TraceContext) {
        let mut headers = HashMap::from([("traceparent".to_owned(), parent.traceparent().to_owned())]);
        headers.extend(parent.tracestate().map(|state| ("tracestate".to_owned(), state.to_owned())));
        if let Err(error) = span.set_parent(self.0.extract(&headers)) {
            tracing::debug!(%error, "the span of a run has no parent"); // a filter turned the span off, for instance
        }
    }
}

#[instrument(skip_all)]
async fn checkout(bell: &Everbell) -> Result<(), everbell::StoreError> {
    bell.jobs().enqueue("send-mail", &()).await?;
    Ok(())
}

async fn send_mail(run: Run) {
    info!("sending"); // an event of the span `everbell.run`
    run.log("sent");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // A real program sends its spans to a collector; this one keeps them to look at them.
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("shop"));
    tracing_subscriber::registry().with(layer).init();

    let bell = Everbell::builder()
        .database("sqlite::memory:")
        .tracing(OpenTelemetry::default())
        .target("send-mail", send_mail)
        .build()
        .await?;
    let mut events = bell.events();
    checkout(&bell).await?;
    bell.run_until(async { while !matches!(events.recv().await.as_deref(), Some(Event::Finished { .. }) | None) {} })
        .await?;
    provider.force_flush()?;

    let spans = exporter.get_finished_spans()?;
    let (checkout, run) = (find(&spans, "checkout")?, find(&spans, "everbell.run")?);
    println!("checkout      trace {} span {}", checkout.span_context.trace_id(), checkout.span_context.span_id());
    println!("everbell.run  trace {} parent {}", run.span_context.trace_id(), run.parent_span_id);
    assert_eq!(run.span_context.trace_id(), checkout.span_context.trace_id(), "one trace");
    assert_eq!(run.parent_span_id, checkout.span_context.span_id(), "the checkout asked for the mail");
    assert!(run.events.events.iter().any(|event| event.name == "sending"), "the handler ran inside of its span");
    Ok(())
}

fn find<'a>(spans: &'a [SpanData], name: &str) -> Result<&'a SpanData, Box<dyn Error>> {
    spans.iter().find(|span| span.name == name).ok_or_else(|| format!("there is no span `{name}`").into())
}
