//! `everbell help`: the help of a command, or a page about what holds for all of them.

use super::output::Output;
use super::{CliError, Exit, Program};

/// A page and its name.
const TOPICS: [(&str, &str); 4] =
    [("environment", ENVIRONMENT), ("exit-codes", EXIT_CODES), ("formatting", FORMATTING), ("time", TIME)];

const EXIT_CODES: &str = "\
Exit codes of every command:

    0  success; with --wait: the run succeeded
    1  the operation failed, the server failed, or what was looked at is not in order
    2  usage or validation error; nothing was changed
    3  not found
    4  not authenticated, or not allowed
    5  conflict: a run was skipped because another is active, also with --wait; a key exists, somebody was faster
    6  with --wait, or of `runs watch`: the run failed, was canceled, or was skipped after it was made
    7  timed out, or the server cannot be reached
  130  interrupted

`everbell healthcheck` knows only 0 and 1.
";

const ENVIRONMENT: &str = "\
Variables that commands read which talk to a server:

  EVERBELL_SERVER      the address of the server; http://127.0.0.1:7070 if absent
  EVERBELL_TOKEN       the token to call it with
  EVERBELL_TOKEN_FILE  a file that holds the token
  EVERBELL_DATA_DIR    the data folder, whose `admin-token` is used if nothing else names a token and the server is on
                       this machine; `everbell-data` if absent
  NO_COLOR             no colours, if it is set to anything
  CLICOLOR_FORCE       colours also if no terminal reads them
  COLUMNS              how wide tables are; the width of the terminal if absent
  LC_ALL, LC_CTYPE, LANG
                       symbols such as a check mark only if the locale is UTF-8, else ASCII

A flag outweighs its variable, and a variable that is set to nothing is as if it was not set. There is no flag for a token itself: others on a machine can see command lines.
`everbell config --help` tells the variables that the server reads.
";

const FORMATTING: &str = "\
Data goes to standard output; counts, advice, progress, warnings and errors go to standard error.

  -o table   for people: a header, columns fitted to the width, symbols; on a terminal
  -o plain   for programs: no header, tabs between columns, every value whole, times as RFC 3339; if no terminal reads it
  --json     exactly what the API answers, in one document; the same as -o json
  -o jsonl   one JSON object per line
  -o name    only keys, ids or names

Lists follow pages up to --limit. In one document the last `nextCursor` says whether there is more.
Texts of others never reach a terminal with control characters in them: those are escaped.
";

const TIME: &str = "\
Times are shown in the zone of the schedule, with offset. --tz ZONE shows them elsewhere.

Flags and arguments that take a time read it in the zone of the job:

  2027-03-13T09:00:00Z        RFC 3339, with an offset
  2027-03-13 09:00            a local time
  2027-03-13                  the beginning of a day
  2027-03-13T09:00[Asia/Tokyo]
                              a local time of that zone
  now, +15m, -2h, +1d         from now; a day keeps the time of day
  today 08:00, tomorrow 08:00 days of the zone of the job

A local time that does not exist, or exists twice, because clocks change is refused with the two that it could be.
Durations are written as 90s, 15m, 1h30m, 7d or PT15M.
";

pub(crate) fn run(words: &[String], program: Program, output: &mut Output) -> Result<Exit, CliError> {
    if let [word] = words
        && let Some((_, page)) = TOPICS.iter().find(|(name, _)| name == word)
    {
        output.raw(page)?;
        return Ok(Exit::Success);
    }
    let mut command = (program.command)();
    command.build();
    for word in words {
        let Some(below) = command.find_subcommand(word).cloned() else {
            let topics: Vec<&str> = TOPICS.iter().map(|(name, _)| *name).collect();
            return Err(CliError::Invalid {
                message: format!("there is no help about `{}`", words.join(" ").escape_debug()),
                hint: Some(format!("name a command, or one of {}", topics.join(", "))),
            });
        };
        command = below;
    }
    output.raw(&command.render_long_help().to_string())?;
    Ok(Exit::Success)
}
