//! Run tokens, which let the remote side of a run report about it.
//!
//! ```text
//!   evr_RUN.ATTEMPT.LEASE_MS.DEADLINE_MICROS.MAC      MAC = HMAC-SHA256(key in the database, everything before it)
//! ```
//!
//! A token says what its holder may do, so nothing has to be stored when it is issued, and any instance can verify it. It ends
//! with its attempt: the stores refuse every other one.

use std::fmt;
use std::time::Duration;

use everbell_core::RunId;
use everbell_core::handover::Handover;
use everbell_core::store::{Store, StoreResult};
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;
use uuid::Uuid;

/// How every run token begins, so that it is known for what it is wherever it turns up.
pub const RUN_TOKEN_PREFIX: &str = "evr_";

/// Longer texts are no tokens.
const MAX_TOKEN_BYTES: usize = 200;

/// Issues and verifies run tokens. Reads the key once.
#[derive(Default)]
pub(crate) struct RunTokens {
    key: OnceCell<[u8; 32]>,
}

impl RunTokens {
    /// Returns the token for a hand-over.
    pub(crate) async fn issue(&self, store: &dyn Store, handover: &Handover) -> StoreResult<String> {
        Ok(sign(self.key(store).await?, handover))
    }

    /// Returns what a token allows; `None` if it is not one of these instances.
    pub(crate) async fn verify(&self, store: &dyn Store, token: &str) -> StoreResult<Option<Handover>> {
        let Some((handover, signed, mac)) = parse(token) else { return Ok(None) };
        let key = self.key(store).await?;
        Ok(mac_of(key, signed).verify_slice(&mac).is_ok().then_some(handover))
    }

    async fn key(&self, store: &dyn Store) -> StoreResult<&[u8; 32]> {
        self.key.get_or_try_init(|| async { store.run_token_key(&random_key()).await }).await
    }
}

impl fmt::Debug for RunTokens {
    /// Leaves out the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunTokens")
    }
}

/// 256 bits. Each random UUID has 122 of them.
fn random_key() -> [u8; 32] {
    let mut hash = Sha256::new();
    for _ in 0..4 {
        hash.update(Uuid::new_v4().as_bytes());
    }
    hash.finalize().into()
}

fn mac_of(key: &[u8; 32], signed: &str) -> Hmac<Sha256> {
    // As HMAC says, a key that is shorter than a block is filled up with zeros.
    let mut block = [0; 64];
    block[..key.len()].copy_from_slice(key);
    let mut mac = Hmac::<Sha256>::new(&block.into());
    mac.update(signed.as_bytes());
    mac
}

fn sign(key: &[u8; 32], handover: &Handover) -> String {
    let Handover { run, attempt, lease, deadline } = handover;
    let (run, lease, deadline) = (run.as_uuid().simple(), lease.as_millis(), deadline.as_microsecond());
    let signed = format!("{RUN_TOKEN_PREFIX}{run}.{attempt}.{lease}.{deadline}");
    let mac = mac_of(key, &signed).finalize().into_bytes();
    let hex = mac.iter().fold(String::with_capacity(64), |text, byte| text + &format!("{byte:02x}"));
    format!("{signed}.{hex}")
}

/// Returns the content of a token, the text that it signs, and its signature.
fn parse(token: &str) -> Option<(Handover, &str, [u8; 32])> {
    let (signed, hex) = token.rsplit_once('.').filter(|_| token.len() <= MAX_TOKEN_BYTES)?;
    let mut parts = signed.strip_prefix(RUN_TOKEN_PREFIX)?.split('.');
    let mut next = || parts.next();
    let handover = Handover {
        run: RunId::from_uuid(Uuid::try_parse(next()?).ok()?),
        attempt: next()?.parse().ok()?,
        lease: Duration::from_millis(next()?.parse().ok()?),
        deadline: Timestamp::from_microsecond(next()?.parse().ok()?).ok()?,
    };
    if next().is_some() || hex.len() != 64 {
        return None;
    }
    let mut mac = [0; 32];
    for (byte, digits) in mac.iter_mut().zip(hex.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some((handover, signed, mac))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handover() -> Handover {
        Handover {
            run: RunId::from_uuid(Uuid::from_u128(7)),
            attempt: 3,
            lease: Duration::from_millis(90_500),
            deadline: "2026-11-19T03:00:00.000001Z".parse().unwrap(),
        }
    }

    fn verified(key: [u8; 32], token: &str) -> Option<Handover> {
        let (handover, signed, mac) = parse(token)?;
        mac_of(&key, signed).verify_slice(&mac).is_ok().then_some(handover)
    }

    #[test]
    fn a_token_reads_back_and_no_part_of_it_can_be_changed() {
        let token = sign(&[1; 32], &handover());
        assert!(token.len() <= MAX_TOKEN_BYTES && token.starts_with(RUN_TOKEN_PREFIX), "{token}");
        assert_eq!(verified([1; 32], &token), Some(handover()));
        assert_eq!(verified([2; 32], &token), None, "another key");
        for place in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[place] = if changed[place] == b'1' { b'2' } else { b'1' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(verified([1; 32], &changed), None, "{changed}");
        }
        for other in ["", "evr_", "evb_1", &token[1..], &token[..token.len() - 1], &format!("{token}0")] {
            assert_eq!(verified([1; 32], other), None, "{other}");
        }
    }

    #[test]
    fn keys_are_never_the_same() {
        assert_ne!(random_key(), random_key());
    }
}
