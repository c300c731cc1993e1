//! Channels of type `email`: a message as a mail, handed to an SMTP server.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use everbell::Timestamp;
use everbell_core::alert::NewDelivery;
use everbell_wire::secret::Secret;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use serde_json::Value;

use crate::targets::Problem;

/// How a mail reaches people.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EmailSettings {
    /// The SMTP server.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) encryption: Encryption,
    /// The user and the password.
    pub(crate) login: Option<(String, Secret)>,
    pub(crate) from: String,
    pub(crate) to: Vec<String>,
    /// The text before each title.
    pub(crate) subject: String,
    /// Certificates to trust in addition to those of the system.
    pub(crate) ca_file: Option<PathBuf>,
    /// How long a message may take.
    pub(crate) timeout: Duration,
}

/// How the connection to the server is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encryption {
    /// Plain at first. No mail and no password is sent unless the server agrees to encrypt.
    StartTls,
    /// From the beginning.
    Tls,
    /// Not at all, on this machine.
    None,
}

impl Encryption {
    /// The usual port.
    pub(crate) fn port(self) -> u16 {
        match self {
            Encryption::StartTls => 587,
            Encryption::Tls => 465,
            Encryption::None => 25,
        }
    }
}

/// A channel that can be used.
pub(super) struct Email {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    to: Vec<Mailbox>,
    subject: String,
    timeout: Duration,
}

impl Email {
    /// Returns the channel, or everything that is wrong with its settings.
    pub(super) fn open(settings: &EmailSettings) -> Result<Email, Vec<Problem>> {
        let mut problems: Vec<Problem> = Vec::new();
        let mut read = |field: &'static str, text: &String| {
            let why = |error| (field, format!("`{text}` is not an address such as `cron@example.com`: {error}"));
            text.parse::<Mailbox>().map_err(|error| problems.push(why(error))).ok()
        };
        let from = read("from", &settings.from);
        let to: Vec<Mailbox> = settings.to.iter().filter_map(|text| read("to", text)).collect();
        let transport = transport(settings).map_err(|problem| problems.push(problem)).ok();
        match (from, transport) {
            (Some(from), Some(transport)) if problems.is_empty() => {
                Ok(Email { transport, from, to, subject: settings.subject.clone(), timeout: settings.timeout })
            }
            _ => Err(problems),
        }
    }

    /// Hands a message to the server once. The error is for people.
    pub(super) async fn send(&self, new: &NewDelivery, message: &Value, at: Timestamp) -> Result<(), String> {
        let mail = self.mail(new, message, at).map_err(|error| format!("the mail cannot be written: {error}"))?;
        match tokio::time::timeout(self.timeout, self.transport.send(mail)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(described(&error)),
            Err(_) => Err(format!("the mail server did not accept the mail within {} s", self.timeout.as_secs_f64())),
        }
    }

    /// Mails about a problem belong together, and a mail that is sent again has the same id.
    fn mail(&self, new: &NewDelivery, message: &Value, at: Timestamp) -> Result<Message, lettre::error::Error> {
        let text = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
        let subject = format!("{} {}", self.subject, text("title")).replace(char::is_control, " ");
        let domain = self.from.email.domain();
        let mut mail = Message::builder()
            .from(self.from.clone())
            .subject(subject.trim())
            .date(SystemTime::from(at))
            .message_id(Some(format!("<{}@{domain}>", new.id)))
            // Nobody's holiday notice answers it (RFC 3834).
            .raw_header(HeaderValue::new(
                HeaderName::new_from_ascii_str("Auto-Submitted"),
                "auto-generated".to_owned(),
            ));
        for recipient in &self.to {
            mail = mail.to(recipient.clone());
        }
        if let Some(problem) = new.problem {
            mail = mail.references(format!("<{problem}@{domain}>"));
        }
        let mut body = text("text").to_owned();
        if !text("url").is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(body, "\n\nOpen in everbell: {}", text("url"));
        }
        mail.header(ContentType::TEXT_PLAIN).body(body + "\n")
    }
}

fn transport(settings: &EmailSettings) -> Result<AsyncSmtpTransport<Tokio1Executor>, Problem> {
    let host = settings.host.trim_matches(['[', ']']);
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let tls = match settings.encryption {
        Encryption::None if !is_here => {
            return Err((
                "tls",
                "`none` is only for servers on this machine: mails and passwords could be read".to_owned(),
            ));
        }
        Encryption::None => Tls::None,
        Encryption::StartTls => Tls::Required(tls(settings)?),
        Encryption::Tls => Tls::Wrapper(tls(settings)?),
    };
    let mut transport = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host)
        .port(settings.port)
        .tls(tls)
        .timeout(Some(settings.timeout));
    if let Some((user, password)) = &settings.login {
        transport = transport.credentials(Credentials::new(user.clone(), password.reveal().to_owned()));
    }
    Ok(transport.build())
}

fn tls(settings: &EmailSettings) -> Result<TlsParameters, Problem> {
    let mut tls = TlsParameters::builder(settings.host.trim_matches(['[', ']']).to_owned());
    if let Some(path) = &settings.ca_file {
        let odd = |why: String| ("ca_file", format!("`{}` {why}", path.display()));
        let pem = std::fs::read(path).map_err(|error| odd(format!("cannot be read: {error}")))?;
        let certificate = Certificate::from_pem(&pem).map_err(|error| odd(format!("has no certificates: {error}")))?;
        tls = tls.add_root_certificate(certificate);
    }
    tls.build_rustls().map_err(|error| ("tls", format!("cannot be used: {}", described(&error))))
}

/// An error with its causes.
fn described(error: &lettre::transport::smtp::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let why = error.to_string();
        if !text.contains(&why) {
            text = format!("{text}: {why}");
        }
        cause = error.source();
    }
    format!("the mail server: {text}")
}

#[cfg(test)]
mod tests {
    use everbell_core::Json;
    use everbell_core::alert::Change;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn settings() -> EmailSettings {
        EmailSettings {
            host: "127.0.0.1".to_owned(),
            port: 25,
            encryption: Encryption::None,
            login: None,
            from: "everbell <cron@example.com>".to_owned(),
            to: vec!["ops@example.com".to_owned(), "Ana <ana@example.com>".to_owned()],
            subject: "[prod]".to_owned(),
            ca_file: None,
            timeout: Duration::from_secs(5),
        }
    }

    fn problems(settings: &EmailSettings) -> Vec<&'static str> {
        Email::open(settings).err().unwrap_or_default().into_iter().map(|(field, _)| field).collect()
    }

    #[test]
    fn settings_that_cannot_work_name_their_fields() {
        assert_eq!(problems(&settings()), [""; 0]);
        let odd = EmailSettings { from: "nobody".to_owned(), to: vec!["a b".to_owned()], ..settings() };
        assert_eq!(problems(&odd), ["from", "to"]);
        assert_eq!(problems(&EmailSettings { host: "mail.example".to_owned(), ..settings() }), ["tls"]);
        let ca_file = Some(PathBuf::from("/nowhere/ca.pem"));
        assert_eq!(problems(&EmailSettings { encryption: Encryption::Tls, ca_file, ..settings() }), ["ca_file"]);
    }

    #[test]
    fn a_job_cannot_add_headers_to_a_mail() {
        let at: Timestamp = "2026-11-15T06:00:00Z".parse().unwrap();
        let new = NewDelivery {
            id: Uuid::from_u128(7),
            problem: Some(Uuid::from_u128(8)),
            rule: Some("all".to_owned()),
            channel: "mail".to_owned(),
            change: Change::Opened,
            message: Json::empty(),
            created_at: at,
            available_at: at,
        };
        let message =
            json!({ "title": "tägliche\r\nBcc: evil@example.com", "text": "line\n.\nend", "url": "https://bell/1" });
        let mail = Email::open(&settings()).unwrap().mail(&new, &message, at).unwrap();
        let formatted = String::from_utf8(mail.formatted()).unwrap();
        let (head, body) = formatted.split_once("\r\n\r\n").unwrap();
        assert!(!head.lines().any(|line| line.starts_with("Bcc")), "{head}");
        assert!(head.contains(&format!("Message-ID: <{}@example.com>", new.id)), "{head}");
        assert!(
            head.contains("Auto-Submitted: auto-generated") && head.contains("Sun, 15 Nov 2026 06:00:00"),
            "{head}"
        );
        assert_eq!(mail.envelope().to().len(), 2);
        assert!(body.contains("Open in everbell: https://bell/1"), "{body}");
    }
}
