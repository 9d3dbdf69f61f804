//! `seckill reconcile`: compares gate and ledger once, now.

use std::process::ExitCode;
use std::sync::Arc;

use seckill_application::ReconcileScope;
use seckill_application::ports::{Clock, Report};

use crate::adapters::Adapters;
use crate::cli::print;
use crate::clock::SystemClock;
use crate::config::{BadSetting, EngineConfig, GateArgs, LogArgs, StoreArgs, WorkerArgs};
use crate::engine::process_name;
use crate::failure::Failure;
use crate::shutdown::{Stop, on_signals};
use crate::wiring::System;
use crate::{runtime, telemetry};

#[derive(Debug, clap::Args)]
pub(crate) struct ReconcileArgs {
    /// Report only; repair nothing
    #[arg(long)]
    dry_run: bool,
    /// Look at closed vouchers too, as long as they are not retired
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    stores: StoreArgs,
    #[command(flatten)]
    gate: GateArgs,
    #[command(flatten)]
    workers: WorkerArgs,
    #[command(flatten)]
    log: LogArgs,
}

pub(super) fn run(args: &ReconcileArgs) -> Result<ExitCode, Failure> {
    telemetry::init(&args.log.check_with_default("warn")?);
    let config = EngineConfig::check(&args.stores, &args.gate, &args.workers)?;
    if config.stores.are_in_memory() {
        return Err(Failure::Setting(BadSetting {
            setting: "SECKILL_GATE",
            problem: "names the gate to compare with the ledger: \
                      redis://[[user:]password@]host[:port][/database]"
                .to_owned(),
        }));
    }
    let scope = ReconcileScope {
        full: args.full,
        dry_run: args.dry_run,
    };
    let ran: Result<ExitCode, Failure> = runtime::run(async {
        let stop = Stop::default();
        tokio::select! {
            done = reconcile(&config, scope, &stop) => done,
            deaf = on_signals(stop.clone()) => match deaf {
                Ok(never) => match never {},
                Err(error) => Err(error.into()),
            },
        }
    })?;
    ran.map_err(Failure::of_comparison)
}

async fn reconcile(
    config: &EngineConfig,
    scope: ReconcileScope,
    stop: &Stop,
) -> Result<ExitCode, Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let connected = Adapters::connect(&config.stores, config.partitions, false, &clock, stop).await;
    let adapters = connected.map_err(|failure| match failure {
        Failure::Stopped => interrupted(),
        other => other,
    })?;
    let system = System::wire(
        &adapters,
        config.partitions,
        config.gate,
        clock,
        &process_name(),
    );
    // Whoever comes next need not wait for the lease to run out.
    let report = system.reconcile.run_until(scope, stop.asked_for()).await;
    adapters.close().await;
    let report = report.map_err(|fault| Failure::neighbour("SECKILL_LEDGER", &fault))?;
    let Some(report) = report else {
        if stop.is_asked_for() {
            return Err(interrupted());
        }
        return Err(Failure::Busy("another process is reconciling; try again"));
    };
    print(&in_words(&report));
    Ok(if report.leaves_nothing() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn interrupted() -> Failure {
    anyhow::anyhow!("interrupted; nothing is reported").into()
}

/// One line per voucher, and one per difference.
fn in_words(report: &Report) -> String {
    let mut lines = Vec::new();
    for found in &report.vouchers {
        let tally = found.tally;
        lines.push(format!(
            "voucher {}: total {} = free {} + in flight {} + parked {} + awaiting payment {} + \
             paid {}: {}",
            found.voucher,
            tally.total,
            tally.free,
            tally.in_flight,
            tally.parked,
            tally.awaiting_payment,
            tally.paid,
            if found.holds {
                "holds"
            } else {
                "does not hold"
            },
        ));
        if found.free_drift != 0 {
            lines.push(format!(
                "  free stock at the gate is off by {}{}",
                found.free_drift,
                if found.asks_for_load() {
                    ": the sale is loaded again"
                } else {
                    ""
                }
            ));
        }
        if found.stock_drift != 0 {
            lines.push(format!(
                "  the ledger's stock is off by {} from its own total and orders: \
                 not repaired, see \"When the ledger contradicts itself\" in the README",
                found.stock_drift
            ));
        }
        if found.terms_differ {
            lines.push("  the gate goes by other terms: the sale is loaded again".to_owned());
        }
        if !found.at_gate {
            lines.push("  not at the gate: it is loaded".to_owned());
        }
        if found.reloads != 0 {
            lines.push(format!(
                "  loaded into the gate again since the last report: {} times",
                found.reloads
            ));
        }
        for difference in &found.differences {
            let repaired = if difference.repaired {
                "repaired"
            } else {
                "not repaired"
            };
            let order = difference.claim.order;
            lines.push(format!(
                "  order {order}: {:?}, {repaired}",
                difference.kind
            ));
        }
    }
    lines.push(format!(
        "report {}: {} vouchers, {} findings, {} repairs{}",
        report.id,
        report.vouchers.len(),
        report.findings(),
        report.repairs(),
        if report.dry_run { " (dry run)" } else { "" },
    ));
    lines.join("\n")
}
