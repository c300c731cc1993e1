//! The `everbell` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    everbell_server::main(std::env::args_os())
}
