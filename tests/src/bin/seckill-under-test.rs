//! The service, built with the tests, so that they do not depend on an earlier build of it.

use std::process::ExitCode;

fn main() -> ExitCode {
    seckill::main(std::env::args_os())
}
