//! The checker, tested: a sound run is sound, and each planted wrong is found, by its name. What is
//! planted is planted in a run that is made up, and in what Redis and MySQL have after a real one.

mod behind;
mod real;
mod run;
mod told;

/// The service under test: its library's entry point, built with these tests.
const PROGRAM: &str = env!("CARGO_BIN_EXE_seckill-under-test");
