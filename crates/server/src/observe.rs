//! Placeholder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics;
impl Metrics {
    pub(crate) fn http(&self, _: &str, _: &str, _: u16, _: f64) {}
    pub(crate) fn login_failed(&self) {}
    pub(crate) async fn render(&self, _: &everbell::Everbell) -> String { String::new() }
}
pub(crate) struct Report { pub(crate) ok: bool, pub(crate) checks: Vec<Check> }
pub(crate) struct Check { pub(crate) name: &'static str, pub(crate) ok: bool, pub(crate) detail: String }
pub(crate) async fn readiness(_: &everbell::Everbell, _: &Metrics, _: bool) -> Report { Report { ok: true, checks: Vec::new() } }
