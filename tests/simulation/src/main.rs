//! Runs seeds, and prints the trace of one.

use std::process::ExitCode;

use clap::Parser;
use seckill_simulation::coverage::Coverage;
use seckill_simulation::sim::Run;

/// Runs the simulation.
#[derive(Debug, Parser)]
struct Args {
    /// Run this seed alone, and print its trace.
    #[arg(long)]
    seed: Option<u64>,
    /// How many seeds to run.
    #[arg(long, default_value_t = 2_000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 1)]
    base: u64,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(seed) = args.seed {
        let run = Run {
            prints: true,
            ..Run::of(seed)
        };
        let outcome = run.go();
        println!("{}", outcome.coverage);
        println!(
            "trace {:016x}, {} lines, {} steps, {:?}",
            outcome.trace.0, outcome.trace.1, outcome.steps, outcome.time
        );
        return match outcome.violation {
            None => ExitCode::SUCCESS,
            Some(violation) => {
                println!("seed {seed}: {violation}");
                ExitCode::FAILURE
            }
        };
    }
    let total = Coverage::default();
    let mut failed = 0;
    for seed in args.base..args.base + args.seeds {
        let outcome = Run::of(seed).go();
        total.absorb(&outcome.coverage);
        if let Some(violation) = outcome.violation {
            failed += 1;
            println!("seed {seed}: {violation}");
        }
    }
    println!("{total}\n{failed} of {} seeds failed", args.seeds);
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
