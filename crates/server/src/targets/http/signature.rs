//! Signatures as Standard Webhooks has them: `v1,BASE64(HMAC-SHA256(key, "{id}.{timestamp}.{body}"))`.

use std::fmt;

use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use everbell_wire::secret::Secret;

/// The prefix of a key in base64.
const PREFIX: &str = "whsec_";

/// Accepts keys with and without padding, because both are in use.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The bytes of a signing key.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key(Vec<u8>);

impl Key {
    /// `whsec_` and base64, or any other text as it is.
    pub(super) fn read(secret: &Secret) -> Result<Key, String> {
        let bytes = match secret.reveal().strip_prefix(PREFIX) {
            Some(encoded) => LENIENT
                .decode(encoded)
                .map_err(|_| format!("a key that starts with `{PREFIX}` must continue in base64"))?,
            None => secret.reveal().as_bytes().to_vec(),
        };
        if bytes.is_empty() { Err("a key must not be empty".to_owned()) } else { Ok(Key(bytes)) }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(hidden)")
    }
}

/// One signature for each key, with spaces between; nothing without keys.
pub(super) fn sign(keys: &[Key], id: &str, timestamp: i64, body: &[u8]) -> Option<String> {
    let signatures: Vec<String> = keys.iter().filter_map(|key| sign_with(key, id, timestamp, body)).collect();
    (!signatures.is_empty()).then(|| signatures.join(" "))
}

/// An HMAC takes keys of any length, so there is always a signature.
fn sign_with(key: &Key, id: &str, timestamp: i64, body: &[u8]) -> Option<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&key.0).ok()?;
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::read(&Secret::new(text)).unwrap()
    }

    /// The example that the libraries of Standard Webhooks test themselves with.
    #[test]
    fn a_signature_is_the_published_one() {
        let key = key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signed = sign(&[key], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signed.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }

    #[test]
    fn a_plain_key_is_taken_as_it_is_and_every_key_signs() {
        let (plain, other) = (key("plain secret"), key("whsec_cGxhaW4gc2VjcmV0"));
        assert_eq!(plain, other);
        let body = "{\"a\":\"é\"}".as_bytes();
        let once = "v1,CtAwBMo/LsZmWI6AXO/LyKUHl0RmccKTJlbpIxN0M/g=";
        assert_eq!(sign(&[plain.clone(), other], "0192f3a9", 1_794_812_400, body).unwrap(), format!("{once} {once}"));
        assert_ne!(sign(&[plain], "0192f3a9", 1_794_812_401, body).unwrap(), once);
        assert_eq!(sign(&[], "0192f3a9", 1_794_812_400, body), None);
    }

    #[test]
    fn a_bad_key_is_refused_without_being_shown() {
        for bad in ["whsec_not!base64", "whsec_", ""] {
            let said = Key::read(&Secret::new(bad)).unwrap_err();
            assert!(!said.contains("not!"), "{said}");
        }
        assert_eq!(key("whsec_YQ"), key("whsec_YQ=="));
        assert_eq!(format!("{:?}", key("hunter2")), "Key(hidden)");
    }
}
