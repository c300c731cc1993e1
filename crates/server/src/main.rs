//! The `everbell` command.

use std::process::ExitCode;

/// A run allocates some hundred small blocks in one thread and frees them in another, at which it is quicker than the one of
/// the system: `docs/scale.md`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    everbell_server::main(std::env::args_os())
}
