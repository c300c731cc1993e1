//! The keys of `[[notify]]` and `[[rule]]` blocks.

use everbell_core::alert::Kind as Problem;
use everbell_wire::body::target::{
    ALLOW_LINK_LOCAL, ALLOW_PRIVATE, CA_FILE, CWD, ENV, EXIT_CODES, GROUP, HEADERS, PASS_ENV, SIGNING_KEY_FILES,
    SIGNING_KEYS, USER,
};
use everbell_wire::form::{Field, Kind, TEXT, optional, required};

/// The types of channels.
pub(crate) const NOTIFY_TYPES: [&str; 4] = ["webhook", "slack", "email", "command"];

macro_rules! notify_fields {
    ($($own:expr),*) => {
        &[
            required("name", Kind::Text { min: 1, max: 100 }, "The name that rules refer to it by."),
            required("type", Kind::Word(&NOTIFY_TYPES), "The type of the channel."),
            optional("timeout", Kind::Span, "Time limit for sending one message, at most 60s; 30s if absent."),
            optional(
                "summarize",
                Kind::Integer { min: 1, max: 1_000 },
                "If more problems than this change at once, one message summarizes them; 10 for `slack` and `email` if absent, else never."
            ),
            $($own),*
        ]
    };
}

/// The keys of a `webhook` channel.
pub(crate) const WEBHOOK: &[Field] = notify_fields!(
    required("url", Kind::Secret, "The URL to call."),
    HEADERS,
    SIGNING_KEYS,
    SIGNING_KEY_FILES,
    CA_FILE,
    ALLOW_PRIVATE,
    ALLOW_LINK_LOCAL
);

/// The keys of a `slack` channel.
pub(crate) const SLACK: &[Field] = notify_fields!(
    required("url", Kind::Secret, "The URL of the incoming webhook."),
    CA_FILE,
    ALLOW_PRIVATE,
    ALLOW_LINK_LOCAL
);

/// The keys of an `email` channel.
pub(crate) const EMAIL: &[Field] = notify_fields!(
    required("host", Kind::Text { min: 1, max: 253 }, "The SMTP server."),
    optional(
        "port",
        Kind::Integer { min: 1, max: 65_535 },
        "Its port; 587 if absent, 465 with `tls = \"tls\"`, 25 with `tls = \"none\"`."
    ),
    optional(
        "tls",
        Kind::Word(&["starttls", "tls", "none"]),
        "How the connection is encrypted; `starttls` if absent. `none` is only for this machine."
    ),
    optional("user", TEXT, "The user to log in as; no login if absent."),
    optional("password", Kind::Secret, "The password of the user."),
    required("from", Kind::Text { min: 3, max: 320 }, "The sender, such as `everbell <cron@example.com>`."),
    required(
        "to",
        Kind::List { of: &Kind::Text { min: 3, max: 320 }, max: 50 },
        "The recipients. Each message goes to all of them."
    ),
    optional(
        "subject",
        Kind::Text { min: 1, max: 100 },
        "The text before the title in the subject; `[everbell]` if absent."
    ),
    CA_FILE
);

/// The keys of a `command` channel.
pub(crate) const NOTIFY_COMMAND: &[Field] = notify_fields!(
    required(
        "argv",
        Kind::List { of: &Kind::Text { min: 0, max: 10_000 }, max: 1_000 },
        "The program and its arguments; never a shell. It gets the message on standard input, in JSON."
    ),
    CWD,
    USER,
    GROUP,
    ENV,
    PASS_ENV,
    EXIT_CODES
);

/// The channel table of a type.
pub(crate) fn notify_fields(kind: &str) -> Option<&'static [Field]> {
    match kind {
        "webhook" => Some(WEBHOOK),
        "slack" => Some(SLACK),
        "email" => Some(EMAIL),
        "command" => Some(NOTIFY_COMMAND),
        _ => None,
    }
}

/// The kinds of problems, and the end of one.
const WHEN_WORDS: [&str; Problem::WORDS.len() + 1] = {
    let mut words = ["recovered"; Problem::WORDS.len() + 1];
    let mut n = 0;
    while n < Problem::WORDS.len() {
        words[n] = Problem::WORDS[n];
        n += 1;
    }
    words
};
const WHEN: Kind = Kind::Word(&WHEN_WORDS);

const RULE_JOBS: &[Field] = &[
    optional("all", Kind::Flag, "All jobs."),
    optional("label", TEXT, "Jobs with this label, such as `team=billing` or `team`."),
    optional(
        "keys",
        Kind::List { of: &Kind::Text { min: 1, max: 200 }, max: 1_000 },
        "Jobs with one of these keys; `*` matches any text.",
    ),
];

/// The keys of a rule.
pub(crate) const RULE: &[Field] = &[
    optional("name", TEXT, "The name of the rule; made from `when` and `jobs` if absent."),
    required(
        "when",
        Kind::List { of: &WHEN, max: 10 },
        "The problem kinds to report; `recovered` also reports when they close.",
    ),
    optional(
        "jobs",
        Kind::Object(RULE_JOBS),
        "The jobs that it is about: all, those with a label, or by key. Required, unless it is about `instance_lost` only.",
    ),
    optional(
        "orgs",
        Kind::List { of: &Kind::Text { min: 1, max: 200 }, max: 1_000 },
        "For `failed`: look at these orgs one by one, each with its own problems; `*` matches any text.",
    ),
    required("to", Kind::List { of: &TEXT, max: 20 }, "The channels to notify."),
    optional(
        "after",
        Kind::Integer { min: 1, max: 1_000 },
        "Failures in a row before `failed` is a problem; 1 if absent.",
    ),
    optional("remind", Kind::Span, "How often to repeat an open problem; never if absent."),
    optional(
        "by",
        TEXT,
        "For `no_success`: the local time of each day by which it must have succeeded, with its zone.",
    ),
    optional("within", Kind::Span, "For `no_success`: the longest time between two successes."),
    optional("startsWithin", Kind::Span, "For `late_start`: how long after its slot a run may start, at least 1s."),
    optional("takesAtMost", Kind::Span, "For `too_long`: how long a run may take, at least 1s."),
    optional(
        "p95Times",
        Kind::Integer { min: 1, max: 100 },
        "For `too_long`: how many times as long as 95% of the runs of the last week a run may take.",
    ),
    optional("quiet", TEXT, "Hours in which messages wait, such as `22:00-07:00 Europe/Paris`."),
];
