//! The `seckill` program.

use std::process::ExitCode;

/// Many small allocations per request, freed on other threads than they were made on.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    seckill::main(std::env::args_os())
}
