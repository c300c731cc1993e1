//! Selects the cells of the table to measure.

/// Batch size, connections, and a sufficient number of runs.
const CASES: [(u32, usize, u32); 12] = [
    (1, 1, 1_000),
    (1, 2, 1_000),
    (1, 4, 1_000),
    (10, 1, 5_000),
    (10, 2, 5_000),
    (10, 4, 5_000),
    (100, 1, 20_000),
    (100, 2, 20_000),
    (100, 4, 20_000),
    (500, 1, 20_000),
    (500, 2, 20_000),
    (500, 4, 20_000),
];

/// One cell.
pub(super) struct Case {
    pub(super) batch: u32,
    pub(super) connections: usize,
    pub(super) runs: u32,
}

/// Options of the command line; the default is everything.
pub(super) struct Options {
    pub(super) postgres: bool,
    pub(super) sqlite: bool,
    pub(super) rounds: u32,
    batch: Option<u32>,
    connections: Option<usize>,
}

impl Options {
    pub(super) fn read(arguments: &[&str]) -> Result<Options, String> {
        let mut wanted = Options { postgres: true, sqlite: true, rounds: 3, batch: None, connections: None };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut number = || {
                let text = rest.next().ok_or_else(|| format!("{argument} needs a number"))?;
                text.parse::<u32>().map_err(|error| format!("{argument} {text}: {error}"))
            };
            match *argument {
                "--postgres" => wanted.sqlite = false,
                "--sqlite" => wanted.postgres = false,
                "--rounds" => wanted.rounds = number()?.max(1),
                "--batch" => wanted.batch = Some(number()?),
                "--connections" => wanted.connections = Some(number()? as usize),
                other => return Err(format!("`{other}` is not known; see --help")),
            }
        }
        if wanted.cases().next().is_none() {
            return Err("there is no such cell: batches are 1, 10, 100, 500, and connections 1, 2, 4".to_owned());
        }
        Ok(wanted)
    }

    pub(super) fn cases(&self) -> impl Iterator<Item = Case> {
        let fits = |(batch, connections, _): &(u32, usize, u32)| {
            self.batch.is_none_or(|wanted| wanted == *batch)
                && self.connections.is_none_or(|wanted| wanted == *connections)
        };
        CASES.into_iter().filter(fits).map(|(batch, connections, runs)| Case { batch, connections, runs })
    }
}
