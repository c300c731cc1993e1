//! [`Redactor`]: hides the secrets of a target in its answers and output.
//!
//! A target may echo its request or its environment. Every secret that it received becomes `***` before it is stored or
//! shown, also if it arrives in pieces.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;

use super::{CommandSettings, HttpSettings};
use everbell_wire::percent;

/// Shorter values occur by chance, so they are not hidden.
const MIN_CHARS: usize = 8;
const MARK: &[u8] = b"***";

/// Headers whose values are no secrets and may well occur in an answer.
const PUBLIC_HEADERS: [&str; 6] =
    ["accept", "accept-charset", "accept-language", "cache-control", "prefer", "user-agent"];

/// The values that a target must not show.
#[derive(Clone)]
pub(super) struct Redactor {
    secrets: Arc<[Vec<u8>]>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} hidden)", self.secrets.len())
    }
}

impl Redactor {
    /// Hides these values, and the ways in which JSON and URLs write them.
    pub(super) fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Redactor {
        let mut secrets = BTreeSet::new();
        for value in values.into_iter().map(str::trim).filter(|value| value.chars().count() >= MIN_CHARS) {
            secrets.extend(spellings(value).into_iter().map(String::into_bytes));
        }
        Redactor { secrets: secrets.into_iter().collect() }
    }

    /// Hides headers, signing keys, and the query and user of the URL.
    pub(super) fn for_http(settings: &HttpSettings) -> Redactor {
        let mut values: Vec<String> = Vec::new();
        let is_public = |name: &str| PUBLIC_HEADERS.iter().any(|public| public.eq_ignore_ascii_case(name));
        for (_, value) in settings.headers.iter().filter(|(name, _)| !is_public(name)) {
            let value = value.reveal();
            // `Bearer TOKEN`: the token may come back alone.
            values.extend(value.split_whitespace().map(str::to_owned));
            values.extend(basic_password(value));
            values.push(value.to_owned());
        }
        for key in settings.signing_keys.iter().map(everbell_wire::secret::Secret::reveal) {
            values.push(key.trim_start_matches("whsec_").to_owned());
            values.push(key.to_owned());
        }
        if let Ok(url) = Url::parse(&settings.url) {
            values.extend(url.query().map(str::to_owned));
            values.extend(
                url.query()
                    .into_iter()
                    .flat_map(|query| query.split('&'))
                    .map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value).to_owned()),
            );
            values.extend(
                url.query_pairs().map(|(name, value)| if value.is_empty() { name } else { value }.into_owned()),
            );
            values.extend([url.username(), url.password().unwrap_or_default()].map(str::to_owned));
        }
        Redactor::new(values.iter().map(String::as_str))
    }

    /// Hides the variables that the settings give or pass on.
    pub(super) fn for_command(settings: &CommandSettings) -> Redactor {
        let given = settings.env.values().map(|value| value.reveal().to_owned());
        let passed = settings.pass_env.iter().filter_map(|name| std::env::var(name).ok());
        let values: Vec<String> = given.chain(passed).collect();
        Redactor::new(values.iter().map(String::as_str))
    }

    /// Hides secrets in bytes that end here. If they were cut off (`whole` is false), the beginning of a secret at the
    /// end is hidden too.
    pub(super) fn redact(&self, bytes: &[u8], whole: bool) -> Vec<u8> {
        let mut stream = self.stream();
        let mut clean = stream.push(bytes);
        clean.extend(if whole { stream.finish() } else { stream.cut_off() });
        clean
    }

    /// Like `redact`, for a text, which stays valid text.
    pub(super) fn redact_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.redact(text.as_bytes(), true)).into_owned()
    }

    /// Hides secrets in bytes that arrive in pieces.
    pub(super) fn stream(&self) -> RedactedStream {
        RedactedStream { secrets: Arc::clone(&self.secrets), held: Vec::new(), hide: 0, is_hiding: false }
    }
}

/// Bytes that arrive in pieces. Where they are split makes no difference to what comes out.
pub(super) struct RedactedStream {
    secrets: Arc<[Vec<u8>]>,
    /// Bytes that may be the start of a secret.
    held: Vec<u8>,
    /// How many bytes from the beginning of `held` belong to a secret that began before.
    hide: usize,
    /// Whether the last byte that was decided belongs to a secret.
    is_hiding: bool,
}

impl RedactedStream {
    /// Takes the next piece and returns what can be shown by now.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        self.decide(false)
    }

    /// Returns the rest, at the end of everything.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        self.decide(true)
    }

    /// Returns a mark instead of the rest, if there is one: more was to come, and it may have been a secret.
    fn cut_off(&mut self) -> Vec<u8> {
        let is_open = !self.held.is_empty() && !self.is_hiding;
        self.held.clear();
        if is_open { MARK.to_vec() } else { Vec::new() }
    }

    fn decide(&mut self, is_end: bool) -> Vec<u8> {
        let mut shown = Vec::with_capacity(self.held.len());
        let mut at = 0;
        while let Some(byte) = self.held.get(at) {
            let rest = &self.held[at..];
            let near = self.secrets.iter().filter(|secret| secret.first() == Some(byte));
            // A longer secret may still become whole.
            if !is_end && near.clone().any(|secret| secret.len() > rest.len() && secret.starts_with(rest)) {
                break;
            }
            let whole = near.filter(|secret| rest.starts_with(secret)).map(Vec::len).max().unwrap_or(0);
            self.hide = self.hide.max(whole);
            if self.hide == 0 {
                shown.push(*byte);
            } else if !self.is_hiding {
                shown.extend_from_slice(MARK);
            }
            self.is_hiding = self.hide > 0;
            self.hide = self.hide.saturating_sub(1);
            at += 1;
        }
        self.held.drain(..at);
        shown
    }
}

/// A value as it is, in JSON, and in a URL.
fn spellings(value: &str) -> BTreeSet<String> {
    let json = serde_json::to_string(value).unwrap_or_default();
    let json = json.trim_start_matches('"').strip_suffix('"').unwrap_or_default().to_owned();
    let encoded = percent::encode(value, percent::RESERVED);
    let all = [value.to_owned(), json.replace('/', "\\/"), json, encoded.to_lowercase(), encoded];
    all.into_iter().filter(|spelling| spelling.chars().count() >= MIN_CHARS).collect()
}

/// The password of `Basic …`.
fn basic_password(value: &str) -> Option<String> {
    let (scheme, encoded) = value.split_once(' ')?;
    let decoded = STANDARD.decode(encoded.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let text = String::from_utf8(decoded).ok()?;
    text.split_once(':').map(|(_, password)| password.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use everbell_wire::secret::Secret;

    fn clean(secrets: &[&str], text: &str) -> String {
        Redactor::new(secrets.iter().copied()).redact_text(text)
    }

    #[test]
    fn values_of_eight_characters_and_more_are_hidden() {
        assert_eq!(clean(&["hunter2!"], "a hunter2! b hunter2!hunter2! c"), "a *** b *** c");
        assert_eq!(clean(&["short"], "a short text"), "a short text");
        assert_eq!(
            clean(&["12345678", "5678abcd", "123456789"], "x12345678abcdy 123456789 1234567"),
            "x***y *** 1234567"
        );
        assert_eq!(
            clean(&["pass\"word/1"], r#"{"a":"pass\"word/1","b":"pass\"word\/1","c":"pass%22word%2f1"}"#),
            r#"{"a":"***","b":"***","c":"***"}"#
        );
        assert_eq!(clean(&["geheimes Wort é"], "ein geheimes Wort é."), "ein ***.");
    }

    #[test]
    fn a_beginning_is_hidden_only_where_it_was_cut_off() {
        let redactor = Redactor::new(["hunter2hunter2"]);
        assert_eq!(redactor.redact(b"see hunter2hun", true), b"see hunter2hun");
        assert_eq!(redactor.redact(b"see hunter2hun", false), b"see ***");
        assert_eq!(redactor.redact(b"see nothing", false), b"see nothing");
    }

    #[test]
    fn every_secret_of_a_call_is_known() {
        let mut settings = HttpSettings::new("https://h.example/p?key=query%20value&plainsecret");
        for (name, value) in [
            ("authorization", "Basic dXNlcjpwYXNzd29yZDE="),
            ("x-token", "Bearer token-of-the-hook"),
            ("accept", "application/json"),
        ] {
            settings.headers.insert(name.to_owned(), Secret::new(value));
        }
        settings.signing_keys.push(Secret::new("whsec_c2lnbmluZ2tleQ=="));
        let redactor = Redactor::for_http(&settings);
        for secret in [
            "password1",
            "dXNlcjpwYXNzd29yZDE=",
            "token-of-the-hook",
            "query value",
            "query%20value",
            "plainsecret",
            "c2lnbmluZ2tleQ==",
        ] {
            assert_eq!(redactor.redact_text(&format!("<{secret}>")), "<***>", "{secret}");
        }
        assert_eq!(redactor.redact_text("application/json Bearer"), "application/json Bearer");
        assert!(!format!("{redactor:?}").contains("token-of"), "{redactor:?}");
    }

    proptest! {
        #[test]
        fn where_it_is_split_makes_no_difference(
            secrets in vec("[ab]{8,12}", 1..4),
            text in "[abc]{0,80}",
            splits in vec(0_usize..80, 0..6),
        ) {
            let redactor = Redactor::new(secrets.iter().map(String::as_str));
            let whole = redactor.redact(text.as_bytes(), true);
            let mut places: Vec<usize> = splits.into_iter().map(|at| at.min(text.len())).collect();
            places.sort_unstable();
            let mut stream = redactor.stream();
            let (mut pieces, mut from) = (Vec::new(), 0);
            for at in places.into_iter().chain([text.len()]) {
                pieces.extend(stream.push(&text.as_bytes()[from..at]));
                from = at;
            }
            pieces.extend(stream.finish());
            prop_assert_eq!(&pieces, &whole);
            let shown = String::from_utf8(whole).unwrap();
            prop_assert!(secrets.iter().all(|secret| !shown.contains(secret.as_str())), "{}", shown);
        }
    }
}
