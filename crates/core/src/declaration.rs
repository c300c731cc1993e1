//! [`Declaration`]: what a program said about a job when it last synced it.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::ids::{App, Invalid};

/// The version of the way in which a declaration is hashed. Hashes of different versions are never equal.
const HASH_VERSION: &str = "1";

/// The record of a sync, kept with a job that a program or a configuration file declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The program that declares the job.
    pub app: App,
    /// The hash of what it declared when it last synced the job.
    pub hash: DeclarationHash,
    /// The version of the job that has this content.
    pub version: u32,
}

/// A hash of everything that a declaration says about a job, with the version of its format: `1:` and 64 hex digits.
///
/// Policies that have their default are not part of it, so a release that adds a policy does not change it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeclarationHash(Box<str>);

impl DeclarationHash {
    /// The hash with this content.
    pub(crate) fn of_content(hash: &[u8]) -> DeclarationHash {
        DeclarationHash(versioned(hash).into())
    }

    /// Reads a hash that was stored, also one of another format.
    pub fn parse(text: &str) -> Result<DeclarationHash, Invalid> {
        let is_hash = text.split_once(':').is_some_and(|(version, hash)| {
            let hex = |text: &str| text.bytes().all(|digit| digit.is_ascii_hexdigit());
            !version.is_empty() && !hash.is_empty() && hex(version) && hex(hash)
        });
        if is_hash && text.len() <= 200 {
            return Ok(DeclarationHash(text.into()));
        }
        Err(Invalid::new("declaration", "must be a version, a colon and hex digits"))
    }

    /// The text, as it is stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeclarationHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Declaration {
    /// Returns this declaration for another version of the job, the one that has its content now.
    #[must_use]
    pub fn at_version(self, version: u32) -> Declaration {
        Declaration { version, ..self }
    }
}

/// A hash as it is stored, with the version of its format.
pub(crate) fn versioned(hash: &[u8]) -> String {
    use fmt::Write;
    let mut text = format!("{HASH_VERSION}:");
    for byte in hash {
        // Writing into a string never fails.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Hashes texts, each with its length, so that no two lists give the same bytes.
pub(crate) fn hash_of<'a>(texts: impl IntoIterator<Item = &'a str>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    hash.finalize().into()
}
