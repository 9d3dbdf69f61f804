//! Guards of the waitlist's order.

use std::sync::Arc;

use seckill_application::Purchase;
use seckill_application::ports::HotPath;
use seckill_domain::invariants::{self, InvariantId};
use seckill_domain::{OrderId, Ticket, Voucher};
use seckill_tests::controls::{
    Bench, Branch, Checkpoint, Control, Findings, Offer, Stores, TamperedGate, gate,
};

/// I7. Buyers are numbered in the order in which they came.
async fn check_turns(findings: &mut Findings, bench: &Bench, voucher: &Voucher, expected: usize) {
    let served = bench.served(voucher).await;
    assert_eq!(served.len(), expected, "everybody had his turn: {served:?}");
    let turns: Vec<Ticket> = served
        .iter()
        .map(|buyer| Ticket::new((*buyer).try_into().unwrap()))
        .collect();
    let fair = invariants::served_in_order(&turns);
    let seen = format!("served {served:?}");
    findings.check(InvariantId::FairWaitlist, fair, seen);
}

/// A buyer who gets a unit or a place, as it may be.
async fn clicks(branch: &Branch, voucher: &Voucher, buyer: u64) -> OrderId {
    match branch.buy(voucher, buyer, 1).await {
        Purchase::Granted { order, .. } | Purchase::Waitlisted { order, .. } => order,
        answer => panic!("neither a unit nor a place: {answer:?}"),
    }
}

/// A process that stops once the gate has an update.
fn stopping(stores: &Stores) -> (Branch, Checkpoint) {
    let checkpoint = Checkpoint::default();
    let tampered = TamperedGate {
        after_follow: Some(checkpoint.clone()),
        ..TamperedGate::before(stores.hot.gate.clone())
    };
    let hot = HotPath {
        gate: Arc::new(tampered),
        ..stores.hot.clone()
    };
    let stores = Stores {
        hot,
        ..stores.clone()
    };
    (Branch::over(stores), checkpoint)
}

/// Buyer 1 has the only unit and 2 waits. 1 gives it up, and just when the gate has heard of it, 3
/// clicks. Then whoever has the unit gives it up, until everybody had it.
async fn a_click_between_release_and_promotion(bench: Bench) -> Findings {
    let mut findings = Findings::default();
    let stores = bench.stores().await;
    let (slow, checkpoint) = stopping(&stores);
    let branch = Branch::over(stores);
    let voucher = branch
        .on_sale(Offer {
            units: 1,
            limit: 1,
            waitlist: 10,
        })
        .await;
    let first = branch.granted(&voucher, 1).await;
    let second = branch.waits(&voucher, 2, 1).await;
    branch.settle().await;

    let given_up = tokio::spawn(async move { slow.give_up(first, 1).await });
    checkpoint.reached().await;
    let third = clicks(&branch, &voucher, 3).await;
    checkpoint.pass();
    given_up.await.unwrap();
    branch.settle().await;

    let third_has_it = branch.live_units(3, &[third]).await == 1;
    let (holder, order) = if third_has_it {
        (3, third)
    } else {
        (2, second)
    };
    branch.give_up(order, holder).await;
    branch.settle().await;
    check_turns(&mut findings, &bench, &voucher, 3).await;
    findings.check_units(&branch.tally(&voucher).await);
    findings
}

/// Takes **promotion out of the script that releases**, into a call of its own, the rule that
/// newcomers wait being gone. Between the two calls the unit is anybody's: a click takes it from the
/// head of the waitlist (I7).
#[tokio::test]
async fn a_freed_unit_is_the_heads_in_the_script_that_frees_it() {
    let control = Control::of(gate::PROMOTION_IN_RELEASE).without(gate::NEWCOMERS_WAIT);
    let Some(pair) = control.run(a_click_between_release_and_promotion).await else {
        return;
    };
    pair.assert_guards_against([InvariantId::FairWaitlist.into()]);
}

/// Buyers 1 and 2 have a unit each, and 3 waits for two. 1 gives his up, 4 clicks; then the others
/// give theirs up, until everybody had his turn.
async fn a_click_while_units_add_up(bench: Bench) -> Findings {
    let mut findings = Findings::default();
    let branch = bench.branch().await;
    let voucher = branch
        .on_sale(Offer {
            units: 2,
            limit: 2,
            waitlist: 10,
        })
        .await;
    let first = branch.granted(&voucher, 1).await;
    let second = branch.granted(&voucher, 2).await;
    let third = branch.waits(&voucher, 3, 2).await;
    branch.settle().await;
    branch.give_up(first, 1).await;
    let fourth = clicks(&branch, &voucher, 4).await;
    branch.settle().await;
    branch.give_up(second, 2).await;
    branch.settle().await;
    let fourth_has_it = branch.live_units(4, &[fourth]).await == 1;
    let (holder, order) = if fourth_has_it {
        (4, fourth)
    } else {
        (3, third)
    };
    branch.give_up(order, holder).await;
    branch.settle().await;
    check_turns(&mut findings, &bench, &voucher, 4).await;
    findings.check_units(&branch.tally(&voucher).await);
    findings
}

/// Takes away the rule that **new buyers wait while anyone waits**. A buyer who wants one unit takes
/// it from the head, who wants two and for whom it was put aside (I7).
#[tokio::test]
async fn newcomers_wait_while_anyone_waits() {
    let control = Control::of(gate::NEWCOMERS_WAIT);
    let Some(pair) = control.run(a_click_while_units_add_up).await else {
        return;
    };
    pair.assert_guards_against([InvariantId::FairWaitlist.into()]);
}
