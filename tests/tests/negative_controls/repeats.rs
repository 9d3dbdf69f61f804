//! Guards of the gate against taking a unit twice for one purchase.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use seckill_application::Purchase;
use seckill_application::ports::{EntryId, HotPath, StreamReply};
use seckill_domain::invariants::InvariantId::{Conservation, Idempotent, Limit, Once};
use seckill_domain::{Decision, OrderId, PartitionId};
use seckill_tests::controls::{
    Bench, Branch, Control, Findings, Offer, Stores, TamperedGate, gate,
};

/// A voucher of which a buyer may have so many.
const fn offer(limit: u32) -> Offer {
    Offer {
        units: 10,
        limit,
        waitlist: 0,
    }
}

/// The order that an answer names.
fn order_of(answer: &Purchase) -> OrderId {
    match answer {
        Purchase::Granted { order, .. } | Purchase::Waitlisted { order, .. } => *order,
        Purchase::AlreadyHeld { orders } => orders[0],
        answer => panic!("no order: {answer:?}"),
    }
}

/// One buyer clicks twice.
async fn two_clicks(bench: Bench) -> Findings {
    let mut findings = Findings::default();
    let branch = bench.branch().await;
    let voucher = branch.on_sale(offer(1)).await;
    let first = order_of(&branch.buy(&voucher, 7, 1).await);
    let second = order_of(&branch.buy(&voucher, 7, 1).await);
    let told = format!("told {first}, then {second}");
    findings.check(Idempotent, first == second, told);
    let live = branch.live_units(7, &[first, second]).await;
    findings.check_limit(live, 1);
    branch.settle().await;
    let live = branch.live_units(7, &[first, second]).await;
    assert_eq!(
        live, 1,
        "the row constraint of the ledger, which stands behind"
    );
    findings.check_units(&branch.tally(&voucher).await);
    findings
}

/// Takes away the **holder check** of the gate. A buyer who clicks twice is granted two orders and
/// is told so (I9, I3), until the ledger rejects the second: its row constraint stands behind.
#[tokio::test]
async fn the_holder_check_answers_a_second_click_with_the_first_order() {
    let Some(pair) = Control::of(gate::HOLDER_CHECK).run(two_clicks).await else {
        return;
    };
    pair.assert_guards_against([Idempotent.into(), Limit.into()]);
}

/// A client whose connection broke sends his purchase again, with its key.
async fn the_same_key_twice(bench: Bench) -> Findings {
    let mut findings = Findings::default();
    let branch = bench.branch().await;
    let voucher = branch.on_sale(offer(2)).await;
    let first = order_of(&branch.buy_with_key(&voucher, 7, "a1").await);
    let second = order_of(&branch.buy_with_key(&voucher, 7, "a1").await);
    let told = format!("told {first}, then {second}");
    findings.check(Idempotent, first == second, told);
    branch.settle().await;
    let live = branch.live_units(7, &[first, second]).await;
    assert_eq!(live, 1, "the unique key of the ledger, which stands behind");
    findings.check_units(&branch.tally(&voucher).await);
    findings
}

/// Takes away the **key check** of the gate. The same `Idempotency-Key` is granted a second order
/// (I9), which the unique key of the ledger rejects.
#[tokio::test]
async fn the_key_check_answers_a_repeat_with_its_first_order() {
    let Some(pair) = Control::of(gate::KEY_CHECK).run(the_same_key_twice).await else {
        return;
    };
    pair.assert_guards_against([Idempotent.into()]);
}

/// How often the stream says that an order was granted.
async fn times_granted(stores: &Stores, order: OrderId) -> u32 {
    let partition = PartitionId::new(0);
    let head = stores.ledger.admissions.head(partition).await.unwrap();
    let read = stores
        .hot
        .stream
        .read_after(partition, head.epoch, EntryId::START, 512)
        .await;
    let StreamReply::Entries(read) = read.unwrap() else {
        panic!("the stream is gone");
    };
    let entries = read.into_iter().map(|delivery| delivery.body.unwrap());
    let granted = entries
        .flat_map(|entry| entry.decisions)
        .filter(|decision| matches!(decision, Decision::Granted(claim) if claim.order == order));
    u32::try_from(granted.count()).unwrap()
}

/// The answer to an attempt gets lost, and the process asks again with the same attempt.
async fn a_lost_answer(bench: Bench) -> Findings {
    let mut findings = Findings::default();
    let stores = bench.stores().await;
    let tampered = Arc::new(TamperedGate::before(stores.hot.gate.clone()));
    let hot = HotPath {
        gate: tampered.clone(),
        ..stores.hot.clone()
    };
    let branch = Branch::over(Stores { hot, ..stores });
    let voucher = branch.on_sale(offer(2)).await;
    tampered.answers_lost.store(1, Ordering::SeqCst);
    let order = branch.granted(&voucher, 7).await;
    assert_eq!(tampered.answers_lost.load(Ordering::SeqCst), 0, "it struck");
    let granted = times_granted(&branch.stores, order).await;
    findings.check_once(granted, 0);
    branch.settle().await;
    findings.check_units(&branch.tally(&voucher).await);
    findings
}

/// Takes away the question that comes first at the gate: the **index of decided orders**. A retry
/// whose first answer was lost takes a second unit for the same order (I5). The ledger knows the order
/// and takes one: the other is in no order (I1).
#[tokio::test]
async fn the_decided_index_settles_a_lost_answer() {
    let Some(pair) = Control::of(gate::DECIDED_BEFORE).run(a_lost_answer).await else {
        return;
    };
    pair.assert_guards_against([Conservation.into(), Once.into()]);
}
