//! The declarations of jobs.

use everbell_core as core;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::words::words;

words!(
    /// The owner of a job.
    Source from core::Source {
        /// A client of the API.
        Api = "api",
        /// The configuration file.
        Config = "config",
        /// A program that embeds everbell.
        Code = "code",
    }
);

/// The declaration of a job, as of the last sync.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobDeclaration {
    /// Where it is declared.
    pub source: Source,
    /// The name of the program or server that declares it.
    pub app: String,
    /// The version that has the declared content.
    pub version: u32,
    /// Whether the job has been edited since, and differs from its declaration. The edit stays until the declaration changes.
    pub edited: bool,
}

impl JobDeclaration {
    /// The place of the declaration, as in `This job is declared in code by billing`.
    pub fn place(&self) -> String {
        match self.source {
            Source::Config => format!("in the configuration file of {}", self.app),
            _ => format!("in code by {}", self.app),
        }
    }

    /// The declaration of a job, if it has one.
    pub fn from_job(job: &core::Job) -> Option<JobDeclaration> {
        let record = job.state.declaration.as_ref()?;
        Some(JobDeclaration {
            source: job.definition.source.into(),
            app: record.app.to_string(),
            version: record.version,
            edited: job.is_edited(),
        })
    }
}
