//! Options of the measurements of the engine.

const PARTS: [&str; 6] = ["drain", "instances", "lag", "idle", "start", "queue"];

/// Options of the command line; the default is everything.
pub(super) struct Options {
    parts: Vec<String>,
    pub(super) quick: bool,
    pub(super) postgres: bool,
    pub(super) sqlite: bool,
    /// How often the engine and plain SQL drain by turns.
    pub(super) rounds: u32,
    /// How many connections a drain has, instead of the default.
    pub(super) connections: Option<u32>,
    concurrency: Option<u32>,
    jobs: Option<u32>,
}

impl Options {
    pub(super) fn read(arguments: &[&str]) -> Result<Options, String> {
        let mut options = Options {
            parts: Vec::new(),
            quick: false,
            postgres: true,
            sqlite: true,
            rounds: 3,
            connections: None,
            concurrency: None,
            jobs: None,
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut number = || {
                let text = rest.next().ok_or_else(|| format!("{argument} needs a number"))?;
                text.parse::<u32>().map(|number| number.max(1)).map_err(|error| format!("{argument} {text}: {error}"))
            };
            match *argument {
                "--quick" => options.quick = true,
                "--postgres" => options.sqlite = false,
                "--sqlite" => options.postgres = false,
                "--rounds" => options.rounds = number()?,
                "--connections" => options.connections = Some(number()?),
                "--concurrency" => options.concurrency = Some(number()?),
                "--jobs" => options.jobs = Some(number()?),
                part if PARTS.contains(&part) => options.parts.push(part.to_owned()),
                other => return Err(format!("`{other}` is neither an option nor one of {}", PARTS.join(", "))),
            }
        }
        Ok(options)
    }

    pub(super) fn wants(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|wanted| wanted == part)
    }

    /// How many jobs a drain has.
    pub(super) fn drains(&self) -> Vec<u32> {
        match self.jobs {
            Some(jobs) => vec![jobs],
            None if self.quick => vec![1_000, 10_000],
            None => vec![1_000, 10_000, 100_000],
        }
    }

    /// How many handlers run at once in a drain: the default of an instance, and more.
    pub(super) fn concurrencies(&self) -> Vec<u32> {
        self.concurrency.map_or_else(|| vec![256, 2_000], |concurrency| vec![concurrency])
    }
}
