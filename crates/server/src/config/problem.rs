//! Problems of a configuration, each with its position.

use std::fmt;

/// A problem, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The file, as it was named; nothing for what a variable or a flag says.
    pub(crate) file: Option<String>,
    /// Counted from 1.
    pub(crate) line: Option<usize>,
    /// The key in the file, such as `database.url`, or the name of the variable or flag; empty for the whole.
    pub(crate) key: String,
    /// The problem, and the values that are allowed. Never a secret.
    pub(crate) message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file}:{line}: ")?,
            (Some(file), None) => write!(f, "{file}: ")?,
            (None, _) => {}
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// A configuration that cannot be used: every problem there is, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigError {
    pub(crate) problems: Vec<Problem>,
}

impl ConfigError {
    /// Sorts problems by their position, and reports each position once.
    pub(super) fn new(mut problems: Vec<Problem>) -> ConfigError {
        // Variables and flags come last; the order within a line stays.
        problems.sort_by_key(|problem| (problem.file.is_none(), problem.line));
        let mut told: Vec<Problem> = Vec::with_capacity(problems.len());
        for problem in problems {
            let is_same = |known: &Problem| {
                (known.line, &known.key, &known.file) == (problem.line, &problem.key, &problem.file)
                    && !problem.key.is_empty()
            };
            if !told.iter().rev().take_while(|known| known.line == problem.line).any(is_same) {
                told.push(problem);
            }
        }
        ConfigError { problems: told }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.problems.iter().enumerate() {
            let separator = if n == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

impl From<ConfigError> for everbell_cli::CliError {
    fn from(error: ConfigError) -> everbell_cli::CliError {
        everbell_cli::CliError::Config { problems: error.problems.len(), text: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(file: Option<&str>, line: Option<usize>, key: &str, message: &str) -> Problem {
        Problem { file: file.map(str::to_owned), line, key: key.to_owned(), message: message.to_owned() }
    }

    #[test]
    fn problems_stand_on_a_line_each_in_the_order_of_the_file() {
        let error = ConfigError::new(vec![
            problem(None, None, "EVERBELL_ROLE", "must be one of all, scheduler, api"),
            problem(Some("a.toml"), Some(9), "log.level", "late"),
            problem(Some("a.toml"), Some(2), "database.url", "early"),
            problem(Some("a.toml"), Some(2), "database.url", "reported already"),
            problem(Some("a.toml"), Some(2), "", "odd"),
            problem(Some("a.toml"), None, "", "cannot be read"),
        ]);
        let expected = "a.toml: cannot be read\n\
                        a.toml:2: database.url: early\n\
                        a.toml:2: odd\n\
                        a.toml:9: log.level: late\n\
                        EVERBELL_ROLE: must be one of all, scheduler, api";
        assert_eq!(error.to_string(), expected);
    }
}
