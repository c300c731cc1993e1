//! [`Declaration`]: what a program said about a job when it last synced it, and whether the job still is like that.
//!
//! A sync compares two questions. Did the declaration change since this program last synced the job? Then the declaration
//! wins. Did only the job change? Then an operator edited it, and the edit stays. The hash that is kept with the job shows
//! the two apart.
//!
//! | hash of the declaration | content of the job | [`compare`] |
//! |---|---|---|
//! | as synced last | as declared | [`Comparison::Same`] |
//! | as synced last | something else | [`Comparison::Edited`]: the edit stays |
//! | another one, or none yet | as declared | [`Comparison::Unrecorded`]: only the hash is written |
//! | another one, or none yet | something else | [`Comparison::Changed`]: the declaration wins |

use std::fmt;

use sha2::{Digest, Sha256};

use crate::ids::{App, Invalid};
use crate::job::{Definition, Job};

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

/// How a declared job differs from its declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Not at all.
    Same,
    /// The job was edited since the declaration was synced, and the declaration is still the same.
    Edited,
    /// The job is as declared, and its record says something else or is missing.
    Unrecorded,
    /// The declaration changed, or was never synced.
    Changed {
        /// Whether the job was edited since the declaration before was synced.
        replaces_edit: bool,
    },
}

impl DeclarationHash {
    /// The hash of a definition.
    pub fn new(definition: &Definition) -> DeclarationHash {
        DeclarationHash(versioned(&definition.content_hash()).into())
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
    /// The record of a definition that a program declares.
    pub fn new(app: App, definition: &Definition) -> Declaration {
        Declaration { app, hash: DeclarationHash::new(definition), version: definition.version }
    }

    /// Returns this declaration for another version of the job, the one that has its content now.
    #[must_use]
    pub fn at_version(self, version: u32) -> Declaration {
        Declaration { version, ..self }
    }

    /// Whether this version of the job was edited since the declaration was synced, and differs from it.
    pub fn is_edited(&self, definition: &Definition) -> bool {
        self.version != definition.version && self.hash != DeclarationHash::new(definition)
    }
}

/// Compares a living job with what its program declares now.
pub fn compare(job: &Job, declared: &Definition) -> Comparison {
    let hash = DeclarationHash::new(declared);
    let is_declared = DeclarationHash::new(&job.definition) == hash;
    let record = job.state.declaration.as_ref();
    match (record.is_some_and(|record| record.hash == hash), is_declared) {
        (true, true) => Comparison::Same,
        (true, false) => Comparison::Edited,
        (false, true) => Comparison::Unrecorded,
        (false, false) => {
            let replaces_edit = record.is_some_and(|record| record.is_edited(&job.definition));
            Comparison::Changed { replaces_edit }
        }
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
