//! `everbell help`: help for a command, or a page that applies to all of them.

use super::output::Output;
use super::{CliError, Exit, Program};

/// A page and its name.
const TOPICS: [(&str, &str); 4] =
    [("environment", ENVIRONMENT), ("exit-codes", EXIT_CODES), ("formatting", FORMATTING), ("time", TIME)];

const EXIT_CODES: &str = "\
Exit codes of every command:

    0  success; with --wait: the run succeeded
    1  the operation failed, the server failed, or a check found an error
    2  usage or validation error; nothing was changed
    3  not found
    4  not authenticated, or not allowed
    5  conflict: a run was skipped because another one is active (also with --wait), a key already exists, or
       the object has changed in the meantime
    6  with --wait, or from `runs watch`: the run failed, was canceled, or was skipped after it was created
    7  timed out, or the server cannot be reached
  130  interrupted

`everbell healthcheck` uses only 0 and 1.
";

const ENVIRONMENT: &str = "\
Variables of the commands that connect to a server:

  EVERBELL_SERVER      the address of the server; default: that of the context, else http://127.0.0.1:7070
  EVERBELL_CONTEXT     the context whose server and token to use, as `everbell context` lists them
  EVERBELL_TOKEN       the token
  EVERBELL_TOKEN_FILE  a file that holds the token
  EVERBELL_DATA_DIR    the data folder; its `admin-token` is used if no other token is named and the server is on this
                       machine; default: everbell-data
  TRACEPARENT, TRACESTATE
                       the trace that runs and one-time jobs of this command continue, as W3C Trace Context says
  VISUAL, EDITOR       the editor that `everbell jobs edit` opens; default: vi
  XDG_CONFIG_HOME      the folder of contexts, in everbell/contexts.json; default: ~/.config
  NO_COLOR             if set, use no colors
  CLICOLOR_FORCE       if set, use colors even without a terminal
  COLUMNS              the width of tables; default: the width of the terminal
  LC_ALL, LC_CTYPE, LANG
                       symbols such as a check mark are used only in a UTF-8 locale, ASCII otherwise

A flag takes precedence over its variable, and both over the current context. The token of a context is sent only to the
server of that context. An empty variable counts as not set. There is no flag for the token itself,
because other users of a machine can see command lines.
`everbell config --help` lists the variables of the server.
";

const FORMATTING: &str = "\
Data goes to standard output; counts, advice, progress, warnings and errors go to standard error.

  -o table   for people: a header, symbols, columns fitted to the width; the default on a terminal
  -o plain   for programs: no header, tabs between columns, nothing truncated, times in RFC 3339; the default otherwise
  --json     the JSON document that the API returns; short for -o json
  -o jsonl   one JSON object per line
  -o name    only keys, ids or names

Lists read as many pages as --limit needs. With --json, `nextCursor` is not null if there is more.
Control characters in texts from the server are escaped before they reach a terminal.
";

const TIME: &str = "\
Times are shown in the time zone of the schedule, with an offset. --tz ZONE shows them in another zone.

Flags and arguments that take a time read it in the time zone of the job:

  2027-03-13T09:00:00Z        RFC 3339, with an offset
  2027-03-13 09:00            a local time
  2027-03-13                  the start of a day
  2027-03-13T09:00[Asia/Tokyo]
                              a local time in that zone
  now, +15m, -2h, +1d         relative to now; a day keeps the time of day
  today 08:00, tomorrow 08:00 days in the time zone of the job

A local time that does not exist, or exists twice, because of a clock change is refused, with the two times that it
could mean. Durations are written as 90s, 15m, 1h30m, 7d or PT15M.
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
                message: format!("no help for `{}`", words.join(" ").escape_debug()),
                hint: Some(format!("use a command, or one of {}", topics.join(", "))),
            });
        };
        command = below;
    }
    output.raw(&command.render_long_help().to_string())?;
    Ok(Exit::Success)
}
