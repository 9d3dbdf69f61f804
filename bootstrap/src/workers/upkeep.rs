//! The loops that keep the rest going. Each repairs what somebody else may have lost, so each may
//! run in every process at once.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use seckill_application::{Fault, Loaded};

use super::Context;
use super::backoff::Backoff;
use crate::gate_identity::CONFIRM_EVERY;

/// How long processes get to offer what they remember before a sale is opened again.
const RELOAD_GRACE: Duration = Duration::from_millis(300);
/// Whoever publishes a sale also asks for it to be loaded, and does so himself at once, without the
/// grace. He is left to it.
const HEAD_START: Duration = Duration::from_millis(25);
const SETTLE_EVERY: Duration = Duration::from_millis(150);
const RELAY_EVERY: Duration = Duration::from_millis(250);
const UPKEEP_EVERY: Duration = Duration::from_secs(1);
const LEARN_EVERY: Duration = Duration::from_secs(1);

/// Does something again and again until a stop is asked for.
pub(super) async fn every<F>(
    context: &Context,
    what: &'static str,
    period: Duration,
    mut act: impl FnMut() -> F,
) where
    F: Future<Output = Result<(), Fault>>,
{
    let mut backoff = Backoff::default();
    let mut pause = Duration::ZERO;
    while context.rest(pause).await {
        pause = match act().await {
            Ok(()) => {
                backoff.works(what);
                period
            }
            Err(fault) => backoff.fault(&fault, what).max(period),
        };
    }
}

/// Keeps order ids at hand.
pub(super) async fn keep_ids(context: Arc<Context>) {
    let period = context.adapters.keep_every();
    every(&context, "keeping order ids", period, || {
        context.adapters.keep()
    })
    .await;
}

/// Sees that gate and ledger belong together for as long as the process runs.
pub(super) async fn confirm_gate(context: Arc<Context>) {
    every(&context, "confirming the gate", CONFIRM_EVERY, || {
        context.adapters.confirm()
    })
    .await;
}

/// Loads what was found missing at the gate.
pub(super) async fn load_wanted(context: Arc<Context>) {
    let system = &context.system;
    let mut backoff = Backoff::default();
    loop {
        let voucher = tokio::select! {
            voucher = system.wanted.next() => voucher,
            () = context.stop.asked_for() => return,
        };
        if !context.rest(HEAD_START).await {
            return;
        }
        let loaded = tokio::select! {
            loaded = system.load.run(voucher, RELOAD_GRACE) => loaded,
            // What it began expires, and another process goes on.
            () = context.stop.asked_for() => return,
        };
        match loaded {
            Ok(Loaded::Loaded | Loaded::NotOnSale | Loaded::Busy) => {
                backoff.works("loading a sale");
            }
            // Whoever wants it asks again.
            Err(fault) => {
                let pause = backoff.fault(&fault, "loading a sale");
                context.rest(pause).await;
            }
        }
    }
}

/// Forgets answers that the ledger has, and offers the others to a gate that has lost them.
pub(super) async fn settle_answers(context: Arc<Context>) {
    let remembered = &context.system.remembered;
    let offers = every(&context, "offering answers", SETTLE_EVERY, || {
        remembered.offer()
    });
    let settles = every(&context, "settling answers", SETTLE_EVERY, || {
        remembered.settle()
    });
    // Apart, so that a database that is away does not keep the gate from being offered anything.
    tokio::join!(offers, settles);
}

/// Learns what sales cost while the database can be asked.
pub(super) async fn learn_prices(context: Arc<Context>) {
    let orders = &context.system.orders;
    every(&context, "learning prices", LEARN_EVERY, || {
        orders.learn_prices()
    })
    .await;
}

/// Looks for sales that are missing at the gate, waitlists that are not served, and sales that are
/// over.
pub(super) async fn keep_gate_complete(context: Arc<Context>) {
    let upkeep = &context.system.upkeep;
    every(&context, "keeping the gate complete", UPKEEP_EVERY, || {
        upkeep.run()
    })
    .await;
}

/// Hands over updates that nobody else handed over.
pub(super) async fn relay(context: Arc<Context>) {
    let relay = &context.system.relay;
    every(&context, "relaying updates", RELAY_EVERY, || async {
        relay.sweep().await.map(|_| ())
    })
    .await;
}
