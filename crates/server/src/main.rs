//! The `everbell` command.

use std::process::ExitCode;

/// A third of an engine's time went into the system's allocator: a run is many small blocks, which one thread allocates and
/// another frees. `docs/scale.md` has the figures.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    everbell_server::main(std::env::args_os())
}
