//! `seckill-bench`: see `docs/performance.md`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail, ensure};
use clap::{Args, Parser, Subcommand};
use seckill_bench::book::{Book, Row};
use seckill_bench::lab::Lab;
use seckill_bench::machine::{Busy, Machine};
use seckill_bench::published::{self, PublishedArgs};
use seckill_bench::rows::Experiment;
use seckill_bench::servers::Programs;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

/// As in the product, so that the published design has it as well.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures the product against references, side by side.
#[derive(Debug, Parser)]
#[command(max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Mode,
}

#[derive(Debug, Subcommand)]
enum Mode {
    /// Two pairs of the most telling rows, in about three minutes
    Quick(Options),
    /// All rows, five pairs and longer runs
    Full(Options),
    /// The published design as a process (the benchmark starts it by itself)
    #[command(hide = true)]
    Published(PublishedArgs),
}

#[derive(Debug, Args)]
struct Options {
    /// Only these goals, such as G1,G7 (G12b: all of G12)
    #[arg(long, value_delimiter = ',', value_name = "GOALS")]
    rows: Vec<String>,
    /// How many pairs of runs per row [default: 2, or 5 with full]
    #[arg(long, value_name = "COUNT")]
    pairs: Option<usize>,
    /// How long a run takes at most, in seconds: it ends when it has made 30,000 purchases for each
    /// (0.1 to 6) [default: 3, or 5 with full]
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// The product's program [default: built by cargo, in release]
    #[arg(long, value_name = "PROGRAM")]
    product: Option<PathBuf>,
    /// Where the result is written as JSON [default: bench.json beside this program]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const QUICK: [&str; 7] = ["G1", "G5", "G7", "G9", "G11", "G18", "G19"];

#[derive(Serialize)]
struct Report<'a> {
    machine: Machine,
    programs: Vec<String>,
    /// Unix seconds.
    begun_at: u64,
    pairs: usize,
    seconds_per_run: f64,
    settings: &'static str,
    took_s: f64,
    /// The share of all CPUs that was busy from start to end, ours and others'.
    machine_busy: f64,
    rows: Vec<Row>,
    measured: &'a Book,
}

const SETTINGS: &str = "appendfsync always, innodb_flush_log_at_trx_commit=1, no binary log, \
    authentication on (HS256, every request another buyer with a token never seen before), \
    keep-alive, loopback, one API and one worker process, 4 partitions, reconciliation off";

fn main() -> anyhow::Result<()> {
    let (options, is_quick) = match Cli::parse().command {
        Mode::Published(args) => return published::run(&args),
        Mode::Quick(options) => (options, true),
        Mode::Full(options) => (options, false),
    };
    if cfg!(debug_assertions) {
        eprintln!("This is a debug build: the numbers mean nothing. Use cargo run --release.");
    }
    let experiments = selected(&goals(&options.rows), is_quick)?;
    let pairs = options.pairs.unwrap_or(if is_quick { 2 } else { 5 });
    let seconds = options.seconds.unwrap_or(if is_quick { 3.0 } else { 5.0 });
    ensure!(pairs > 0, "at least one pair of runs");
    // The API alone lets no more than 200,000 orders wait for the ledger.
    ensure!((0.1..=6.0).contains(&seconds), "a run takes 0.1 to 6 s");
    let product = match &options.product {
        Some(product) => product.clone(),
        None => build()?,
    };
    // One thread: the generator has one of its own, and the rest of the machine is for what is
    // measured. Children are killed when this thread ends, however that happens.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            measured = measure(&options, &experiments, pairs, seconds, product) => measured,
            stopped = tokio::signal::ctrl_c() => {
                stopped?;
                bail!("interrupted")
            }
            _ = terminate.recv() => bail!("terminated"),
        }
    })
}

async fn measure(
    options: &Options,
    experiments: &[Experiment],
    pairs: usize,
    seconds: f64,
    product: PathBuf,
) -> anyhow::Result<()> {
    let json = match &options.json {
        Some(json) => json.clone(),
        None => std::env::current_exe()?.with_file_name("bench.json"),
    };
    // Now, and not when all is measured; and so that an older result is not taken for this one.
    std::fs::write(&json, "").with_context(|| format!("{} cannot be written", json.display()))?;
    let (machine, begun, busy) = (Machine::look(), Instant::now(), Busy::now());
    let begun_at = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let programs = Programs::find()?;
    let versions = programs.versions();
    describe(&machine, &versions);
    let mut lab = Lab::start(programs, product, Duration::from_secs_f64(seconds)).await?;
    let mut book = Book::default();
    let gone_through = go_through(experiments, pairs, &mut lab, &mut book).await;
    let report = Report {
        machine,
        programs: versions,
        begun_at,
        pairs,
        seconds_per_run: seconds,
        settings: SETTINGS,
        took_s: begun.elapsed().as_secs_f64(),
        machine_busy: Busy::now().since(busy),
        rows: book.rows(),
        measured: &book,
    };
    println!("\n{}\n{SETTINGS}", book.table());
    println!(
        "{pairs} pairs of runs of at most {seconds} s, {:.0} s in all",
        report.took_s
    );
    std::fs::write(&json, serde_json::to_string_pretty(&report)?)
        .with_context(|| format!("{} cannot be written", json.display()))?;
    println!("{}", json.display());
    let void = book.runs_void();
    if void == 0 {
        println!("conservation held after every run");
    }
    gone_through?;
    lab.stop().await?;
    ensure!(void == 0, "{void} runs have no number; why, is said above");
    Ok(())
}

/// Makes all pairs. A pair that fails is noted as void; what ends it all is that no fresh
/// deployment can be had.
async fn go_through(
    experiments: &[Experiment],
    pairs: usize,
    lab: &mut Lab,
    book: &mut Book,
) -> anyhow::Result<()> {
    for (at, experiment) in experiments.iter().enumerate() {
        if at > 0 {
            lab.renew(&[]).await?;
        }
        for pair in 1..=pairs {
            eprintln!("{} pair {pair} of {pairs}", experiment.goals().join(" "));
            if let Err(error) = experiment.pair(lab, book).await {
                for goal in experiment.goals() {
                    book.void(goal, format!("{error:#}"));
                }
                // Whatever it left behind is no ground for the next.
                lab.renew(&[]).await?;
            }
        }
    }
    Ok(())
}

/// The goals of these rows, however they are written.
fn goals(rows: &[String]) -> Vec<String> {
    let goal = |row: &String| {
        let row = row.to_ascii_uppercase();
        row.trim_end_matches(|c: char| c.is_ascii_uppercase())
            .to_owned()
    };
    rows.iter().map(goal).collect()
}

fn selected(rows: &[String], is_quick: bool) -> anyhow::Result<Vec<Experiment>> {
    let all = || Experiment::ALL.into_iter();
    for row in rows {
        ensure!(
            all().any(|it| it.goals().contains(&row.as_str())),
            "no row {row}: there are G1 to G19 without G13, which comes with buckets"
        );
    }
    let wanted = |goal: &&str| match (rows.is_empty(), is_quick) {
        (true, true) => QUICK.contains(goal),
        (true, false) => true,
        (false, _) => rows.iter().any(|row| row == goal),
    };
    Ok(all().filter(|it| it.goals().iter().any(wanted)).collect())
}

fn describe(machine: &Machine, versions: &[String]) {
    println!(
        "{} cores of {}, {:.0} GiB, Linux {}; load before {}, {:.0} % of the CPUs busy with others",
        machine.cores,
        machine.processor,
        machine.memory_gib,
        machine.kernel,
        machine.load_before,
        machine.busy_before * 100.0
    );
    for version in versions {
        println!("{version}");
    }
    if machine.busy_before > 0.25 {
        println!("This machine is busy: only the ratios count, and they are noisier than usual.");
    }
}

/// Builds the product as it is shipped; it is found beside this program.
fn build() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name("seckill");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let built = Command::new(cargo)
        .args(["build", "--release", "--package", "seckill"])
        .current_dir(root)
        .status()?;
    ensure!(built.success(), "the product could not be built");
    ensure!(program.is_file(), "{} was not built", program.display());
    Ok(program)
}
