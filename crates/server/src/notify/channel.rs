//! Channels: how a message reaches people.

use std::time::Duration;

use everbell_core::alert::Delivery;
use serde_json::{Value, json};

use super::email::{Email, EmailSettings};
use super::program;
use crate::targets::{CommandSettings, Http, HttpSettings, Problem, command_problems};

/// A channel as it is configured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChannelSettings {
    /// The name that rules refer to it by.
    pub(crate) name: String,
    pub(crate) kind: ChannelKind,
    /// More messages than this at once become one.
    pub(crate) summarize: Option<u32>,
}

/// The messages that people get at once before they become one, if nothing else is said.
const DEFAULT_LIMIT: usize = 10;

/// The kinds of channels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ChannelKind {
    /// A signed call in the format of `CloudEvents`.
    Webhook(HttpSettings),
    /// A call that Slack, Mattermost, Discord (`/slack`) and others understand.
    Slack(HttpSettings),
    /// A mail.
    Email(EmailSettings),
    /// A program, and how long it may take.
    Command(CommandSettings, Duration),
    /// The type could not be read, which is reported elsewhere.
    Unknown,
}

impl ChannelSettings {
    /// The word in the configuration and in the API.
    pub(crate) fn type_name(&self) -> &'static str {
        match self.kind {
            ChannelKind::Webhook(_) => "webhook",
            ChannelKind::Slack(_) => "slack",
            ChannelKind::Email(_) => "email",
            ChannelKind::Command(..) => "command",
            ChannelKind::Unknown => "unknown",
        }
    }

    /// How many messages it gets at once before they become one. Programs want each of them, if nothing else is said.
    pub(super) fn limit(&self) -> Option<usize> {
        let is_for_people = matches!(self.kind, ChannelKind::Slack(_) | ChannelKind::Email(_));
        let said = self.summarize.map(|limit| limit as usize);
        said.or_else(|| is_for_people.then_some(DEFAULT_LIMIT))
    }

    /// Everything that is wrong with them, each with the name of its field.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        match &self.kind {
            ChannelKind::Webhook(settings) | ChannelKind::Slack(settings) => {
                Http::new(settings).err().unwrap_or_default()
            }
            ChannelKind::Email(settings) => Email::open(settings).err().unwrap_or_default(),
            ChannelKind::Command(settings, _) => command_problems(settings),
            ChannelKind::Unknown => Vec::new(),
        }
    }

    /// Returns the channel, or its first problem.
    pub(super) fn open(&self) -> Result<Channel, Problem> {
        let first = |problems: Vec<Problem>| {
            problems.into_iter().next().unwrap_or_else(|| ("url", "cannot be called".to_owned()))
        };
        Ok(match &self.kind {
            ChannelKind::Webhook(settings) => Channel::Webhook(Http::new(settings).map_err(first)?, path_of(settings)),
            ChannelKind::Slack(settings) => Channel::Slack(Http::new(settings).map_err(first)?, path_of(settings)),
            ChannelKind::Email(settings) => Channel::Email(Email::open(settings).map_err(first)?),
            ChannelKind::Command(settings, timeout) => Channel::Command(settings.clone(), *timeout),
            ChannelKind::Unknown => return Err(("type", "is not known".to_owned())),
        })
    }
}

/// The path of the address. Services like Slack keep their secret there.
fn path_of(settings: &HttpSettings) -> String {
    let address = settings.url.as_str();
    let path = address.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..]));
    path.unwrap_or_default().split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// An error without the path of the address, which a redirect may repeat.
fn without(path: &str, error: String) -> String {
    if path.len() > 1 { error.replace(path, "/***") } else { error }
}

/// A channel that can be used; calls have the path of their address beside them.
pub(super) enum Channel {
    Webhook(Http, String),
    Slack(Http, String),
    Email(Email),
    Command(CommandSettings, Duration),
}

impl Channel {
    /// Sends a message once. The error is for people, and names no secret.
    pub(super) async fn send(&self, delivery: &Delivery, at: everbell::Timestamp) -> Result<(), String> {
        let new = &delivery.new;
        let message: Value = serde_json::from_str(new.message.as_str())
            .map_err(|error| format!("the message cannot be read: {error}"))?;
        match self {
            Channel::Webhook(http, path) => {
                let kind = format!("problem.{}", new.change.as_str());
                let body = json!({ "type": kind, "timestamp": new.created_at.to_string(), "data": message });
                let about = [
                    ("ce-specversion", "1.0".to_owned()),
                    ("ce-id", new.id.to_string()),
                    ("ce-type", format!("dev.everbell.{kind}")),
                    ("ce-source", "/everbell/problems".to_owned()),
                    ("ce-time", new.created_at.to_string()),
                    ("idempotency-key", format!("\"{}\"", new.id)),
                ];
                let sent = http.send(&new.id.to_string(), at, &about, body.to_string().into_bytes()).await;
                sent.map_err(|error| without(path, error))
            }
            Channel::Slack(http, path) => {
                let body = json!({ "text": slack_text(&message) });
                let sent = http.send(&new.id.to_string(), at, &[], body.to_string().into_bytes()).await;
                sent.map_err(|error| without(path, error))
            }
            Channel::Email(email) => email.send(new, &message, at).await,
            Channel::Command(settings, timeout) => program::run(settings, *timeout, delivery, &message).await,
        }
    }
}

/// The message in the markup of Slack. Text is text: no name of a job can mention a channel or make a link.
fn slack_text(message: &Value) -> String {
    let text = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
    let plain = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mark = match text("change") {
        "opened" => ":red_circle:",
        "reminded" => ":large_orange_circle:",
        "recovered" => ":large_green_circle:",
        _ => ":bell:",
    };
    let mut lines = vec![format!("{mark} *{}*", plain(text("title")))];
    lines.extend(text("text").lines().map(plain));
    let url = text("url");
    if url.starts_with("http://") || url.starts_with("https://") {
        lines.push(format!("<{}|Open in everbell>", plain(url)));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_does_not_show_the_path_of_the_address() {
        let settings = |url: &str| HttpSettings::new(url);
        let path = path_of(&settings("https://hooks.example/T0/B0/s3cret?a=b#c"));
        assert_eq!(path, "/T0/B0/s3cret");
        let error = "answered 302 and pointed to https://other.example/T0/B0/s3cret: no".to_owned();
        assert_eq!(without(&path, error), "answered 302 and pointed to https://other.example/***: no");
        assert_eq!(without(&path_of(&settings("https://hooks.example/")), "a/b".to_owned()), "a/b");
    }

    #[test]
    fn a_job_cannot_mention_a_channel_of_slack() {
        let message = json!({
            "change": "opened", "title": "<!channel> is failing", "text": "a & b\n<https://evil|click>",
            "url": "https://bell.example/jobs/1",
        });
        assert_eq!(
            slack_text(&message),
            ":red_circle: *&lt;!channel&gt; is failing*\na &amp; b\n&lt;https://evil|click&gt;\n\
             <https://bell.example/jobs/1|Open in everbell>"
        );
        assert_eq!(slack_text(&json!({ "change": "test", "title": "t", "text": "" })), ":bell: *t*");
    }
}
