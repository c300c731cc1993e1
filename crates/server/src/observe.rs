//! Placeholder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics;
impl Metrics {
    pub(crate) fn new(_: bool) -> Metrics {
        Metrics
    }
    pub(crate) fn observe(&self, _: &everbell::Event) {}
    pub(crate) fn http(&self, _: &str, _: &str, _: u16, _: f64) {}
    pub(crate) fn login_failed(&self) {}
    pub(crate) async fn render(&self, _: &everbell::Everbell) -> String {
        String::new()
    }
}
#[derive(Clone, Debug)]
pub(crate) struct Notifier;
impl Notifier {
    pub(crate) fn from_env() -> Notifier {
        Notifier
    }
    pub(crate) fn ready(&self, _: &str) {}
    pub(crate) fn stopping(&self) {}
    pub(crate) async fn watchdog(self) {}
}
pub(crate) fn init_logs(log: &crate::config::LogSettings) {
    use tracing_subscriber::prelude::*;
    let _ = tracing_subscriber::registry()
        .with(tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_filter(log.filter.clone()))
        .try_init();
}
pub(crate) struct Report {
    pub(crate) ok: bool,
    pub(crate) checks: Vec<Check>,
}
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) ok: bool,
    pub(crate) detail: String,
}
pub(crate) async fn readiness(_: &everbell::Everbell, _: &Metrics, _: bool) -> Report {
    Report { ok: true, checks: Vec::new() }
}
