//! Targets at work: real programs and real connections, on this machine only, driven by a real engine.

mod commands;
mod given;
mod http_answers;
mod http_calls;
mod log;
mod settings;
mod shell;
mod stopping;
mod tls;
