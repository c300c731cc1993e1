//! [`BuildError`]: why a builder failed.

use std::fmt;

use everbell_core::store::StoreError;

/// The reason why [`Builder::build`](crate::Builder::build) failed.
///
/// Its debug form is its text, because a `main` that returns it shows that.
#[non_exhaustive]
pub enum BuildError {
    /// The program asks for something impossible: all problems.
    Invalid(Vec<String>),
    /// Jobs of the program have another owner, and it may not adopt them: all of them.
    Owned(Vec<String>),
    /// The database could not be opened or read.
    Store(StoreError),
}

impl From<StoreError> for BuildError {
    fn from(error: StoreError) -> Self {
        BuildError::Store(error)
    }
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Invalid(problems) | BuildError::Owned(problems) => match problems.as_slice() {
                [problem] => f.write_str(problem),
                problems => {
                    write!(f, "{} problems:", problems.len())?;
                    problems.iter().try_for_each(|problem| write!(f, "\n- {problem}"))
                }
            },
            BuildError::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BuildError::Invalid(_) | BuildError::Owned(_) => None,
            // Its text is this one's already.
            BuildError::Store(error) => error.source(),
        }
    }
}
