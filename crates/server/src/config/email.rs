//! The keys of `[[notify]]` blocks of type `email`.

use std::path::PathBuf;
use std::time::Duration;

use super::secrets::Secrets;
use crate::notify::{EmailSettings, Encryption};
use everbell_wire::FaultCode;
use everbell_wire::form::Form;

/// How long a message may take if nothing else is said.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The beginning of each subject if nothing else is said.
const SUBJECT: &str = "[everbell]";

pub(super) fn email(form: &mut Form<'_>, secrets: Secrets<'_>, timeout: Option<Duration>) -> EmailSettings {
    let encryption = match form.text("tls") {
        Some("tls") => Encryption::Tls,
        Some("none") => Encryption::None,
        _ => Encryption::StartTls,
    };
    let user = form.text("user").map(str::to_owned);
    let password = form.value("password").map(|value| secrets.read(value));
    let password =
        password.and_then(|read| read.map_err(|reason| form.fault("password", FaultCode::Invalid, reason)).ok());
    if user.is_some() != form.has("password") {
        let (missing, other) = if user.is_some() { ("password", "user") } else { ("user", "password") };
        form.fault(missing, FaultCode::Required, format!("is required together with `{other}`"));
    }
    let to: Vec<String> = form.list("to").into_iter().map(str::to_owned).collect();
    if form.has("to") && to.is_empty() {
        form.fault("to", FaultCode::Invalid, "must name at least one recipient");
    }
    EmailSettings {
        host: form.text("host").unwrap_or_default().to_owned(),
        port: form.count("port").and_then(|port| u16::try_from(port).ok()).unwrap_or(encryption.port()),
        encryption,
        login: user.zip(password),
        from: form.text("from").unwrap_or_default().to_owned(),
        to,
        subject: form.text("subject").unwrap_or(SUBJECT).to_owned(),
        ca_file: form.text("caFile").map(PathBuf::from),
        timeout: timeout.unwrap_or(TIMEOUT),
    }
}
