//! Guards of the ledger against selling what there is not, when the gate is wrong.

use seckill_domain::invariants::InvariantId::{Conservation, NeverOversold};
use seckill_tests::controls::{Bench, Control, Findings, Offer, ledger};

/// Somebody plants a unit at the gate, which then grants two orders of a single unit.
async fn the_gate_lies(bench: Bench) -> Findings {
    const STOCK: &str =
        "SELECT CAST(stock_units AS SIGNED) FROM voucher_stock WHERE voucher_id = ?";
    let mut findings = Findings::default();
    let branch = bench.branch().await;
    let voucher = branch.on_sale(Offer {
        units: 1,
        limit: 1,
        waitlist: 0,
    });
    let voucher = voucher.await;
    bench.plant_units(&voucher, 1).await;
    branch.granted(&voucher, 7).await;
    branch.granted(&voucher, 8).await;
    branch.settle().await;
    // After a rejection the gate is shut until it is loaded again.
    let free = branch.free_at_gate(&voucher).await.unwrap_or(0);
    findings.check_units(&bench.tally_by_rows(&voucher, free).await);
    let stock = bench.number(STOCK, voucher.id.get()).await;
    findings.check(NeverOversold, stock >= 0, format!("stock {stock}"));
    findings
}

/// Takes away the **condition of the stock update** (`stock_units >= n`), the check constraint being
/// gone. Two orders of a single unit are confirmed, and the stock is negative (I2, I1).
#[tokio::test]
async fn the_conditional_update_of_the_stock_prevents_oversell() {
    let control = Control::of(ledger::STOCK_CONDITION).without(ledger::STOCK_IN_RANGE);
    let Some(pair) = control.run(the_gate_lies).await else {
        return;
    };
    pair.assert_guards_against([Conservation.into(), NeverOversold.into()]);
}

/// Takes away the **`CHECK` on the stock**, the condition of the update being gone: the same
/// oversell. Either of the two is enough.
#[tokio::test]
async fn the_check_on_the_stock_prevents_oversell() {
    let control = Control::of(ledger::STOCK_IN_RANGE).without(ledger::STOCK_CONDITION);
    let Some(pair) = control.run(the_gate_lies).await else {
        return;
    };
    pair.assert_guards_against([Conservation.into(), NeverOversold.into()]);
}
