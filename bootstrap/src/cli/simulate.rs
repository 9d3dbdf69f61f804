//! `seckill simulate`: a crowd, what it was told, and whether every promise was kept.
//!
//! The crowd goes through the same wiring as `serve`, or over HTTP to a server that runs. What it is
//! told is recorded, and judged afterwards against what the ledger then says.

mod buyer;
mod door;
mod history;
mod plan;
mod remote;
mod report;
mod verdict;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::value_parser;
use futures::StreamExt as _;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::print;
use crate::config::{Auth, AuthArgs, EngineConfig, GateArgs, LogArgs, StoreArgs, WorkerArgs};
use crate::engine::Engine;
use crate::failure::Failure;
use crate::shutdown::{Stop, on_signals};
use crate::{runtime, telemetry};
use buyer::Buyer;
use door::Door;
use history::History;
use plan::Plan;
use remote::Remote;

#[derive(Debug, clap::Args)]
pub(crate) struct SimulateArgs {
    #[command(flatten)]
    plan: Plan,
    /// A server to send the crowd to, in place of this process: `http://host:port`
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Buyers who are served at once
    #[arg(long, value_name = "COUNT", default_value = "64", value_parser = value_parser!(u16).range(1..=10_000))]
    concurrency: u16,
    #[command(flatten)]
    stores: StoreArgs,
    #[command(flatten)]
    auth: AuthArgs,
    #[command(flatten)]
    gate: GateArgs,
    #[command(flatten)]
    workers: WorkerArgs,
    #[command(flatten)]
    log: LogArgs,
}

/// How long everything may take to come to rest after the crowd has gone.
const REST_PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(super) fn run(args: &SimulateArgs) -> Result<ExitCode, Failure> {
    telemetry::init(&args.log.check_with_default("warn")?);
    args.plan.check()?;
    runtime::run(async {
        let stop = Stop::default();
        tokio::select! {
            done = simulate(args, &stop) => done,
            deaf = on_signals(stop.clone()) => match deaf {
                Ok(never) => match never {},
                Err(error) => Err(error.into()),
            },
            () = stop.asked_for() => Err(anyhow::anyhow!("interrupted; no verdict").into()),
        }
    })?
}

async fn simulate(args: &SimulateArgs, stop: &Stop) -> Result<ExitCode, Failure> {
    if let Some(url) = &args.url {
        let in_memory = args.stores.urls.are_in_memory()?;
        let auth = Auth::check(&args.auth, in_memory)?;
        let secret = auth
            .secret()
            .context("SECKILL_AUTH_SECRET of the server is needed to issue tokens")?;
        let remote = Remote::new(url, secret, usize::from(args.concurrency))?;
        return crowd(args, Door::Remote(Box::new(remote))).await;
    }
    let config = EngineConfig::check(&args.stores, &args.gate, &args.workers)?;
    let engine = Engine::start(&config, stop).await?;
    let done = crowd(args, Door::Here(engine.system().clone())).await;
    engine.finish().await;
    done
}

async fn crowd(args: &SimulateArgs, door: Door) -> Result<ExitCode, Failure> {
    let plan = &args.plan;
    let door = Arc::new(door);
    let voucher = door.put_on_sale(plan).await?;
    let history = Arc::new(History::new(voucher));
    let buyers = plan.buyers(voucher);

    let bar = ProgressBar::new(buyers.len() as u64);
    let style = "{msg:>10} {bar:40} {pos}/{len} buyers, {per_sec}, {elapsed}";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    let begun = door.monotonic();
    let watching = history.watch(&door);
    let rush = each(&buyers, args, &bar, "buying", |buyer| {
        buyer.rush(&door, &history)
    });
    let rushed = tokio::select! {
        () = rush => door.monotonic().saturating_sub(begun),
        never = watching => match never {},
    };
    let watching = history.watch(&door);
    let rest = async {
        bar.reset();
        each(&buyers, args, &bar, "deciding", |buyer| {
            buyer.decide(&door, &history)
        })
        .await;
        bar.set_message("settling");
        settle(&door, plan, &buyers, &history).await
    };
    let settled = tokio::select! {
        settled = rest => settled,
        never = watching => match never {},
    };
    bar.finish_and_clear();
    let verdict = verdict::judge(&door, plan, &history, settled).await?;
    print(&report::table(plan, &history, rushed));
    print(&verdict.to_string());
    Ok(if verdict.holds() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Every buyer's turn, so many at a time.
async fn each<'b, F>(
    buyers: &'b [Buyer],
    args: &SimulateArgs,
    bar: &ProgressBar,
    what: &'static str,
    act: impl Fn(&'b Buyer) -> F,
) where
    F: Future<Output = ()>,
{
    bar.set_message(what);
    futures::stream::iter(buyers.iter().map(act))
        .for_each_concurrent(usize::from(args.concurrency), |turn| async {
            turn.await;
            bar.inc(1);
        })
        .await;
}

/// Waits until orders that are left unpaid have expired, buyers who wait have been served, and the
/// ledger has everything. Whether that came to pass.
async fn settle(door: &Door, plan: &Plan, buyers: &[Buyer], history: &History) -> bool {
    let deadline = door.monotonic() + plan.payment_window() * 2 + REST_PATIENCE;
    while door.monotonic() < deadline {
        let weighed = door.balance(history.voucher).await;
        let may_come_free = weighed.is_none_or(|weighed| {
            let tally = weighed.tally;
            tally.awaiting_payment + tally.in_flight > 0
        });
        let mut moving = 0;
        for buyer in buyers {
            moving += usize::from(buyer.look_again(door, history, may_come_free).await);
        }
        if moving == 0 && door.is_at_rest(history.voucher).await {
            return true;
        }
        door.sleep(LOOK_EVERY).await;
    }
    false
}

impl Plan {
    fn check(&self) -> anyhow::Result<()> {
        if self.pay + self.cancel > 1.0 {
            bail!("--pay and --cancel are shares of the same buyers: together at most 1");
        }
        Ok(())
    }
}
