//! Guards of an order's end.

use std::sync::Arc;

use seckill_application::ports::LedgerPorts;
use seckill_application::{Effect, PayReply};
use seckill_domain::invariants::InvariantId::PaidXorExpired;
use seckill_domain::{BuyerId, OrderStatus};
use seckill_tests::controls::{
    Bench, Branch, Checkpoint, Control, Findings, Offer, Stores, TamperedLedger, ledger,
};

/// A sweep, an hour later, has read an unpaid order and is about to expire it. The payment that was
/// begun in time is committed just then.
async fn a_payment_under_the_sweep(bench: Bench) -> Findings {
    let mut findings = Findings::default();
    let branch = bench.branch().await;
    let voucher = branch
        .on_sale(Offer {
            units: 10,
            limit: 1,
            waitlist: 0,
        })
        .await;
    let order = branch.granted(&voucher, 7).await;
    branch.settle().await;

    let late = bench.stores_with(&[ledger::AN_HOUR_LATER]).await;
    let checkpoint = Checkpoint::default();
    let tampered = TamperedLedger {
        inner: late.ledger.ledger.clone(),
        after_snapshot: None,
        before_save: Some(checkpoint.clone()),
    };
    let ports = LedgerPorts {
        ledger: Arc::new(tampered),
        ..late.ledger.clone()
    };
    let sweeper = Branch::over(Stores {
        ledger: ports,
        ..late
    });
    let swept = tokio::spawn(async move { sweeper.expire.sweep().await });
    checkpoint.reached().await;
    let payment = "pay-1".parse().expect("a payment id");
    let paid = branch.pay.run(order, BuyerId::new(7), &payment).await;
    let told_paid = matches!(paid.unwrap(), PayReply::Paid(_));
    checkpoint.pass();
    let swept = swept.await.unwrap();

    let status = branch.status(order, 7).await.expect("an order");
    let seen = format!("told paid: {told_paid}, then {status:?}; sweep: {swept:?}");
    let truth = told_paid == (status == OrderStatus::Paid);
    assert!(told_paid, "it was paid in time");
    if let Err(fault) = &swept {
        assert_eq!(fault.effect(), Effect::None, "{}", fault.chain());
    }
    findings.check(PaidXorExpired, truth, seen);
    findings.check_units(&branch.tally(&voucher).await);
    findings
}

/// Takes away the **condition on the stage** of an order that is expired (`WHERE status = …`), its
/// row lock being gone. The sweep overwrites a payment in between: the buyer was told that he has
/// paid, and the order is expired, its unit for sale again, with no refund (I6).
#[tokio::test]
async fn an_order_expires_only_from_the_stage_in_which_it_was_read() {
    let control = Control::of(ledger::STATE_CONDITION).without(ledger::SWEEP_LOCKS);
    let Some(pair) = control.run(a_payment_under_the_sweep).await else {
        return;
    };
    pair.assert_guards_against([PaidXorExpired.into()]);
}
