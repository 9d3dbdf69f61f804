//! Row constraints of the ledger against a buyer who gets more than he may, when the gate is wrong.

use seckill_application::Purchase;
use seckill_domain::invariants::InvariantId::{Idempotent, Limit};
use seckill_domain::{OrderId, Voucher};
use seckill_tests::controls::{Bench, Branch, Control, Findings, Offer, gate, ledger};

const fn offer(limit: u32) -> Offer {
    Offer {
        units: 10,
        limit,
        waitlist: 0,
    }
}

/// The gate grants a buyer a second order, and the ledger gets it in a batch of its own.
async fn the_gate_grants_twice(bench: Bench) -> Findings {
    let mut findings = Findings::default();
    let branch = bench.branch().await;
    let voucher = branch.on_sale(offer(1)).await;
    let first = branch.granted(&voucher, 7).await;
    branch.settle().await;
    let second = branch.granted(&voucher, 7).await;
    branch.settle().await;
    findings.check_limit(branch.live_units(7, &[first, second]).await, 1);
    findings.check_units(&branch.tally(&voucher).await);
    findings
}

/// Takes away the **`CHECK` on a buyer's holding**, the holder check of the gate being gone. The
/// buyer has two live orders where one is allowed (I3).
#[tokio::test]
async fn the_check_on_holdings_keeps_the_limit_when_the_gate_does_not() {
    let control = Control::of(ledger::HOLDING_WITHIN_LIMIT).without(gate::HOLDER_CHECK);
    let Some(pair) = control.run(the_gate_grants_twice).await else {
        return;
    };
    pair.assert_guards_against([Limit.into()]);
}

/// Takes away the **unique guard of the ledger**: one row of units per buyer and voucher, the holder
/// check of the gate being gone. Each order brings a row of its own, each within the limit, and the
/// buyer has two live orders where one is allowed (I3).
#[tokio::test]
async fn the_unique_guard_keeps_the_limit_when_the_gate_does_not() {
    let control = Control::of(ledger::ONE_HOLDING).without(gate::HOLDER_CHECK);
    let Some(pair) = control.run(the_gate_grants_twice).await else {
        return;
    };
    pair.assert_guards_against([Limit.into()]);
}

async fn granted_with_key(branch: &Branch, voucher: &Voucher) -> OrderId {
    match branch.buy_with_key(voucher, 7, "a1").await {
        Purchase::Granted { order, .. } => order,
        answer => panic!("not granted: {answer:?}"),
    }
}

/// The gate grants a second order for a key it has forgotten.
async fn the_gate_forgets_a_key(bench: Bench) -> Findings {
    let mut findings = Findings::default();
    let branch = bench.branch().await;
    let voucher = branch.on_sale(offer(2)).await;
    let first = granted_with_key(&branch, &voucher).await;
    branch.settle().await;
    let second = granted_with_key(&branch, &voucher).await;
    branch.settle().await;
    let live = branch.live_units(7, &[first, second]).await;
    findings.check(Idempotent, live == 1, format!("{live} orders of one key"));
    findings.check_units(&branch.tally(&voucher).await);
    findings
}

/// Takes away the **unique key on buyer and `Idempotency-Key`**, the key check of the gate being
/// gone. One purchase becomes two live orders (I9).
#[tokio::test]
async fn the_unique_key_makes_one_order_of_one_purchase_when_the_gate_does_not() {
    let control = Control::of(ledger::ORDER_ONCE_PER_KEY).without(gate::KEY_CHECK);
    let Some(pair) = control.run(the_gate_forgets_a_key).await else {
        return;
    };
    pair.assert_guards_against([Idempotent.into()]);
}
