//! Runs seeds: one with its trace, many for a verdict, or many with a bug planted.

use std::process::ExitCode;

use clap::Parser;
use seckill_simulation::batch::{Batch, SEEDS, new_base};
use seckill_simulation::bug::Bug;
use seckill_simulation::judge::Violation;
use seckill_simulation::sim::Run;

/// Runs the simulation.
#[derive(Debug, Parser)]
struct Args {
    /// Run this seed alone, and print its trace.
    #[arg(long)]
    seed: Option<u64>,
    /// How many seeds to run.
    #[arg(long, default_value_t = SEEDS)]
    seeds: u64,
    /// The first of them; without it new ones each time, but for a bug those from 1.
    #[arg(long)]
    base: Option<u64>,
    /// Plant this bug, by a part of its name; `all` tries each, and prints how many seeds find it.
    #[arg(long)]
    bug: Option<String>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let bugs: Vec<Bug> = match &args.bug {
        None => Vec::new(),
        Some(all) if all == "all" => Bug::ALL.to_vec(),
        Some(part) => Bug::ALL
            .iter()
            .filter(|it| it.word().contains(part))
            .copied()
            .collect(),
    };
    if args.bug.is_some() && bugs.is_empty() {
        eprintln!("no bug of that name; there are:");
        for bug in Bug::ALL {
            eprintln!("  {bug}");
        }
        return ExitCode::FAILURE;
    }
    match args.seed {
        Some(seed) => one(seed, bugs.first().copied()),
        None if bugs.is_empty() => {
            let base = args.base.unwrap_or_else(new_base);
            println!("{} seeds from {base}", args.seeds);
            many(&Batch::of(base, args.seeds))
        }
        None => planted(&args, &bugs),
    }
}

fn one(seed: u64, bug: Option<Bug>) -> ExitCode {
    let prints = true;
    let outcome = Run { seed, bug, prints }.go();
    let (hash, lines) = outcome.trace;
    let time = outcome.time;
    println!("{}", outcome.coverage);
    println!("trace {hash:016x}: {lines} lines, {time:?} of virtual time");
    let failures: Vec<_> = outcome.violation.map(|it| (seed, it)).into_iter().collect();
    exit(verdict(&failures, bug))
}

fn exit(well: bool) -> ExitCode {
    if well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn many(batch: &Batch) -> ExitCode {
    let found = batch.go();
    println!("{}", found.coverage);
    let (ran, steps, sum) = (found.ran, found.steps, found.sum());
    println!("{ran} seeds, {steps} steps, traces {sum:016x}");
    let rare = found.too_rare();
    for line in &rare {
        println!("too rare: {line}");
    }
    let holds = verdict(&found.failures, None);
    exit(holds && rare.is_empty())
}

/// Says what did not hold, and how to see it; whether all did.
fn verdict(failures: &[(u64, Violation)], bug: Option<Bug>) -> bool {
    for (seed, violation) in failures {
        println!("seed {seed}: {violation}");
    }
    if failures.is_empty() {
        println!("every promise holds");
        return true;
    }
    println!(
        "\n{} do not hold; each again, with its trace:",
        failures.len()
    );
    for (seed, _) in failures {
        println!("{}", again(*seed, bug));
    }
    false
}

/// The command that runs a seed again.
fn again(seed: u64, bug: Option<Bug>) -> String {
    let bug = bug.map_or(String::new(), |bug| format!(" --bug '{bug}'"));
    format!("cargo run --release -p seckill-simulation -- --seed {seed}{bug}")
}

/// The table of bugs: a bug that no seed finds is a failure.
fn planted(args: &Args, bugs: &[Bug]) -> ExitCode {
    println!("| bug | layer it takes away | found by | first seed | what shows it |");
    println!("|---|---|---|---|---|");
    let mut missed = false;
    let mut first_of_each = Vec::new();
    for bug in bugs {
        let batch = Batch {
            bug: Some(*bug),
            ..Batch::of(args.base.unwrap_or(1), args.seeds)
        };
        let found = batch.go();
        let (by, of) = (found.failures.len(), found.ran);
        let first = found.failures.first().map(|(seed, _)| *seed);
        first_of_each.extend(first.map(|seed| again(seed, Some(*bug))));
        let first = first.map_or("never".to_owned(), |seed| seed.to_string());
        println!(
            "| {bug} | {} | {by} of {of} | {first} | {} |",
            bug.layer(),
            found.rules()
        );
        missed |= by == 0;
    }
    println!("\nThe first that finds each, with its trace:");
    for command in first_of_each {
        println!("{command}");
    }
    exit(!missed)
}
