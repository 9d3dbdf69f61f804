//! Guards of reconciliation: it judges at one position, and not by what is there just now.
//!
//! A crowd is at a healthy sale, and a process reconciles. The guard is off in that process alone.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use seckill_application::ports::{HotPath, VoucherFinding};
use seckill_application::{Loaded, ReconcileScope};
use seckill_domain::Voucher;
use seckill_tests::controls::{
    Bench, Branch, Failure, Findings, Interludes, Offer, Pair, Stores, Switch, TamperedGate,
    beside, drain, gate, ledger,
};

/// What a repair is about has to be wrong.
const NO_FALSE_REPAIR: Failure = Failure::Rule("nothing healthy is repaired");
/// To load a sale again shuts it for a while.
const NO_FALSE_LOAD: Failure = Failure::Rule("no healthy sale is loaded again");

/// How many come at once.
const CROWD: u64 = 12;
const ROUNDS: u64 = 3;
const OFFER: Offer = Offer {
    units: 1_000,
    limit: 1,
    waitlist: 0,
};
const SCOPE: ReconcileScope = ReconcileScope {
    full: false,
    dry_run: false,
};

/// A reconciler in a process of its own, in which this is off, and its pauses.
async fn one_round(bench: &Bench, off: &[&[Switch]], act: impl AsyncFnMut(u32)) -> VoucherFinding {
    let auditor = Branch::over(bench.stores_with(off).await);
    let (mut interludes, clock) = Interludes::new();
    let reconcile = auditor.reconcile("auditor", clock);
    let round = interludes.fill(reconcile.run(SCOPE), act).await;
    let mut report = round.unwrap().expect("nobody else is at it");
    assert_eq!(report.vouchers.len(), 1, "there is one sale");
    report.vouchers.remove(0)
}

fn check(findings: &mut Findings, found: &VoucherFinding) {
    let healthy = found.differences.iter().all(|it| !it.repaired);
    let kinds: Vec<_> = found.differences.iter().map(|it| it.kind).collect();
    findings.check(NO_FALSE_REPAIR, healthy, format!("{kinds:?}"));
    let loaded = found.asks_for_load();
    findings.check(NO_FALSE_LOAD, !loaded, format!("{} off", found.free_drift));
}

/// So many buy at once who have not bought before.
async fn a_crowd_buys(branch: &Branch, voucher: &Voucher, come: &mut u64) {
    let buyers = *come..*come + CROWD;
    *come += CROWD;
    join_all(buyers.map(|buyer| branch.granted(voucher, buyer))).await;
}

/// A crowd buys all the time, and the order writer is always as far behind: whenever it has caught
/// up with those who were there at the first look, as many others have come.
async fn a_crowd_that_buys(bench: Bench, off: &[&[Switch]]) -> Findings {
    let mut findings = Findings::default();
    let branch = bench.branch().await;
    let voucher = branch.on_sale(OFFER).await;
    let mut writer = branch.writer("writer").await;
    let mut come = 1;
    for _ in 0..ROUNDS {
        a_crowd_buys(&branch, &voucher, &mut come).await;
        let round = one_round(&bench, off, async |pause| {
            // The first is that between the looks, in which nothing reaches the ledger. In the next
            // ones reconciliation waits for it.
            if pause > 1 {
                drain(&mut writer).await;
                a_crowd_buys(&branch, &voucher, &mut come).await;
            }
        });
        check(&mut findings, &round.await);
        drain(&mut writer).await;
        // What was appended twice is no reason to begin anew, either.
        let is_open = branch.free_at_gate(&voucher).await.is_some();
        findings.check(NO_FALSE_LOAD, is_open, "the sale was shut");
        if !is_open {
            let load = branch.load.run(voucher.id, Duration::ZERO);
            let loaded = beside(&mut writer, load).await;
            assert_eq!(loaded.unwrap(), Loaded::Loaded);
        }
    }
    findings.check_units(&branch.tally(&voucher).await);
    findings
}

/// A crowd gives its orders up, and the gate has not heard of it.
async fn a_crowd_that_gives_up(bench: Bench, off: &[&[Switch]]) -> Findings {
    let mut findings = Findings::default();
    let stores = bench.stores().await;
    let deaf = TamperedGate {
        deaf: true,
        ..TamperedGate::before(stores.hot.gate.clone())
    };
    let hot = HotPath {
        gate: Arc::new(deaf),
        ..stores.hot.clone()
    };
    let unheard = Branch::over(Stores {
        hot,
        ..stores.clone()
    });
    let branch = Branch::over(stores);
    let voucher = branch.on_sale(OFFER).await;
    let bought = join_all((1..=CROWD).map(|buyer| branch.granted(&voucher, buyer))).await;
    branch.settle().await;
    let give_up = (1..).zip(bought);
    join_all(give_up.map(|(buyer, order)| unheard.give_up(order, buyer))).await;
    let round = one_round(&bench, off, async |_| {});
    check(&mut findings, &round.await);
    findings.check_units(&branch.tally(&voucher).await);
    findings
}

/// A scenario with everything on, and with this off. `None` if only memory was asked for.
async fn pair(
    scenario: impl AsyncFn(Bench, &[&[Switch]]) -> Findings,
    off: &[&[Switch]],
) -> Option<Pair> {
    let (first, second) = (Bench::intact().await?, Bench::intact().await?);
    Some(Pair {
        guarded: scenario(first, &[]).await,
        unguarded: scenario(second, off).await,
    })
}

/// Takes away **the position**, altogether: what gate and ledger have just now is compared, while
/// messages are on their way. Every order whose message stands is "mended".
#[tokio::test]
async fn two_live_counters_are_not_compared() {
    let off = [
        gate::UNITS_STANDING,
        ledger::UNITS_RETURNED,
        ledger::POSITION,
    ];
    let Some(pair) = pair(a_crowd_that_buys, &off).await else {
        return;
    };
    pair.assert_guards_against([NO_FALSE_REPAIR]);
}

/// Takes away the **wait for the ledger** before the second look. What stands in the stream is taken
/// for gone and appended again; and units that are counted as on their way are missing twice, so that
/// the sale is shut and loaded again.
#[tokio::test]
async fn the_second_look_waits_for_the_ledger() {
    let Some(pair) = pair(a_crowd_that_buys, &[ledger::POSITION]).await else {
        return;
    };
    pair.assert_guards_against([NO_FALSE_REPAIR, NO_FALSE_LOAD]);
}

/// Takes away what is **on its way to the ledger**. Under a steady load as much is missing at both
/// looks: a healthy sale is shut and loaded again.
#[tokio::test]
async fn units_that_stand_in_the_stream_are_counted() {
    let Some(pair) = pair(a_crowd_that_buys, &[gate::UNITS_STANDING]).await else {
        return;
    };
    pair.assert_guards_against([NO_FALSE_LOAD]);
}

/// Takes away what is **on its way to the gate**. Units that were given up are missing as long as the
/// gate has not heard of it: a healthy sale is shut and loaded again.
#[tokio::test]
async fn units_that_the_gate_has_not_heard_of_are_counted() {
    let Some(pair) = pair(a_crowd_that_gives_up, &[ledger::UNITS_RETURNED]).await else {
        return;
    };
    pair.assert_guards_against([NO_FALSE_LOAD]);
}
