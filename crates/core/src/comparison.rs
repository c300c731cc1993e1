//! [`compare`]: whether a job still is what its program declared when it last synced it.
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

use crate::declaration::{Declaration, DeclarationHash};
use crate::ids::App;
use crate::job::{Definition, Job};

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
        DeclarationHash::of_content(&definition.content_hash())
    }
}

impl Declaration {
    /// The record of a definition that a program declares.
    pub fn new(app: App, definition: &Definition) -> Declaration {
        Declaration { app, hash: DeclarationHash::new(definition), version: definition.version }
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
