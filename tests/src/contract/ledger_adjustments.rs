//! Changes of stock: units are added ledger first, and taken out gate first.

use futures::future::join_all;
use seckill_application::ports::{
    Adjustment, AdjustmentReply, AdjustmentState, NewAdjustment, Verdict,
};
use seckill_domain::{
    AdjustmentId, Decision, GateChange, GateUpdate, GateVersion, RejectReason, Voucher,
};

use super::desk::Desk;
use super::{LedgerHarness, promises};

promises! { ledger_adjustments over dyn LedgerHarness:
    an_adjustment_is_written_down_as_pending,
    an_adjustment_is_written_down_once_per_key,
    a_key_for_another_delta_is_refused,
    a_key_is_its_vouchers_own,
    without_a_key_each_adjustment_is_new,
    at_once_with_one_key_is_one_adjustment,
    added_units_are_stock_and_the_gate_is_told,
    units_are_added_once,
    a_refused_adjustment_says_so,
    withdrawn_units_leave_total_and_stock,
    a_withdrawal_is_applied_once,
    a_withdrawal_raises_no_version,
    a_withdrawal_that_was_given_up_follows_the_gate,
    a_withdrawal_of_units_that_are_not_there_is_rejected,
    an_adjustment_that_is_not_committed_never_was,
}

fn new(voucher: &Voucher, delta: i32, key: Option<&str>) -> NewAdjustment {
    NewAdjustment {
        voucher: voucher.id,
        delta,
        reason: "a second batch \u{1f381}".to_owned(),
        key: key.map(|key| key.parse().expect("a key")),
    }
}

async fn record(desk: &Desk<'_>, new: &NewAdjustment) -> AdjustmentReply {
    let mut unit = desk.begin().await;
    let reply = unit.record_adjustment(new).await.unwrap();
    unit.commit().await.unwrap();
    reply
}

async fn recorded(desk: &Desk<'_>, voucher: &Voucher, delta: i32) -> AdjustmentId {
    let reply = record(desk, &new(voucher, delta, None)).await;
    let AdjustmentReply::Recorded(adjustment) = reply else {
        panic!("{reply:?}");
    };
    adjustment.id
}

async fn stored(desk: &Desk<'_>, id: AdjustmentId) -> Adjustment {
    let mut unit = desk.begin().await;
    unit.adjustment(id).await.unwrap().expect("an adjustment")
}

async fn state(desk: &Desk<'_>, id: AdjustmentId) -> AdjustmentState {
    stored(desk, id).await.state
}

async fn an_adjustment_is_written_down_as_pending(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let id = recorded(&desk, &voucher, -3).await;
    let expected = Adjustment {
        id,
        delta: -3,
        state: AdjustmentState::Pending,
    };
    assert_eq!(stored(&desk, id).await, expected);
    assert_eq!(desk.stock(&voucher).await, 5, "nothing moved yet");
    let mut unit = desk.begin().await;
    let unknown = AdjustmentId::new(id.get() + 1_000);
    assert_eq!(unit.adjustment(unknown).await.unwrap(), None);
}

async fn an_adjustment_is_written_down_once_per_key(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let first = record(&desk, &new(&voucher, 3, Some("k"))).await;
    assert!(matches!(first, AdjustmentReply::Recorded(_)), "{first:?}");
    assert_eq!(record(&desk, &new(&voucher, 3, Some("k"))).await, first);
    let AdjustmentReply::Recorded(adjustment) = first else {
        panic!("recorded");
    };
    let mut unit = desk.begin().await;
    unit.add_units(voucher.id, adjustment.id, 3).await.unwrap();
    unit.commit().await.unwrap();
    let applied = Adjustment {
        state: AdjustmentState::Applied,
        ..adjustment
    };
    let again = record(&desk, &new(&voucher, 3, Some("k"))).await;
    assert_eq!(again, AdjustmentReply::Recorded(applied), "as it is now");
}

async fn a_key_for_another_delta_is_refused(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    record(&desk, &new(&voucher, 3, Some("k"))).await;
    for delta in [4, -3] {
        let reply = record(&desk, &new(&voucher, delta, Some("k"))).await;
        assert_eq!(reply, AdjustmentReply::KeyReused);
    }
}

async fn a_key_is_its_vouchers_own(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let [one, two] = [desk.voucher(5, 1).await, desk.voucher(5, 1).await];
    let first = record(&desk, &new(&one, 3, Some("k"))).await;
    let second = record(&desk, &new(&two, 3, Some("k"))).await;
    let other = record(&desk, &new(&one, 3, Some("K"))).await;
    assert_ne!(first, second);
    assert_ne!(first, other, "keys are compared as they are");
}

async fn without_a_key_each_adjustment_is_new(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let first = recorded(&desk, &voucher, 3).await;
    assert_ne!(recorded(&desk, &voucher, 3).await, first);
}

async fn at_once_with_one_key_is_one_adjustment(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let new = new(&voucher, 3, Some("k"));
    let replies = join_all((0..4).map(|_| record(&desk, &new))).await;
    assert!(
        replies.windows(2).all(|pair| pair[0] == pair[1]),
        "{replies:?}"
    );
}

async fn add(desk: &Desk<'_>, voucher: &Voucher, id: AdjustmentId, units: u32) -> GateVersion {
    let mut unit = desk.begin().await;
    let version = unit.add_units(voucher.id, id, units).await.unwrap();
    unit.commit().await.unwrap();
    version
}

async fn added_units_are_stock_and_the_gate_is_told(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    desk.granted(&voucher, 1, 1).await;
    let id = recorded(&desk, &voucher, 3).await;
    let version = add(&desk, &voucher, id, 3).await;
    assert_eq!(version, voucher.version.next());
    let tally = desk.tally(voucher.id).await;
    assert_eq!((tally.total, tally.stock, tally.version), (8, 7, version));
    assert_eq!(state(&desk, id).await, AdjustmentState::Applied);
    let update = GateUpdate {
        voucher: voucher.id,
        version,
        changes: vec![GateChange::AddUnits { units: 3 }],
    };
    let updates = desk
        .ports
        .updates
        .after(voucher.id, voucher.version, 10)
        .await
        .unwrap();
    assert_eq!(updates, [update]);
}

/// Two administrators, or one request sent twice, after both have read "pending".
async fn units_are_added_once(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let id = recorded(&desk, &voucher, 3).await;
    add(&desk, &voucher, id, 3).await;
    let mut unit = desk.begin().await;
    assert!(unit.add_units(voucher.id, id, 3).await.is_err());
    drop(unit);
    assert_eq!(desk.stock(&voucher).await, 8);
    let updates = desk
        .ports
        .updates
        .after(voucher.id, voucher.version, 10)
        .await
        .unwrap();
    assert_eq!(updates.len(), 1);
}

async fn a_refused_adjustment_says_so(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let id = recorded(&desk, &voucher, -3).await;
    for _ in 0..2 {
        let mut unit = desk.begin().await;
        unit.refuse_adjustment(id).await.unwrap();
        unit.commit().await.unwrap();
        assert_eq!(state(&desk, id).await, AdjustmentState::Refused);
    }
    assert_eq!(desk.stock(&voucher).await, 5);
}

fn withdrawn(voucher: &Voucher, units: u32, adjustment: AdjustmentId) -> Decision {
    Decision::Withdrawn {
        voucher: voucher.id,
        units,
        adjustment,
    }
}

async fn withdrawn_units_leave_total_and_stock(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    desk.granted(&voucher, 1, 1).await;
    let id = recorded(&desk, &voucher, -3).await;
    let verdict = desk.apply_one(withdrawn(&voucher, 3, id)).await;
    assert_eq!(verdict, Verdict::Confirmed);
    let tally = desk.tally(voucher.id).await;
    assert_eq!((tally.total, tally.stock, tally.parked), (2, 1, 0));
    assert_eq!(state(&desk, id).await, AdjustmentState::Applied);
}

async fn a_withdrawal_is_applied_once(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let id = recorded(&desk, &voucher, -2).await;
    let twice = vec![withdrawn(&voucher, 2, id), withdrawn(&voucher, 2, id)];
    let verdicts = desk.apply(twice).await;
    assert_eq!(verdicts, [Verdict::Confirmed, Verdict::AlreadyThere]);
    let again = desk.apply_one(withdrawn(&voucher, 2, id)).await;
    assert_eq!(again, Verdict::AlreadyThere);
    let tally = desk.tally(voucher.id).await;
    assert_eq!((tally.total, tally.stock), (3, 3));
}

/// The gate took the units first: there is nothing for it to follow.
async fn a_withdrawal_raises_no_version(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let id = recorded(&desk, &voucher, -2).await;
    desk.apply_one(withdrawn(&voucher, 2, id)).await;
    assert_eq!(desk.tally(voucher.id).await.version, voucher.version);
}

/// The answer of the gate was lost, the adjustment was given up, and then the withdrawal comes by
/// the stream after all. The gate has taken the units; the ledger follows.
async fn a_withdrawal_that_was_given_up_follows_the_gate(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let id = recorded(&desk, &voucher, -2).await;
    let mut unit = desk.begin().await;
    unit.refuse_adjustment(id).await.unwrap();
    unit.commit().await.unwrap();
    let verdict = desk.apply_one(withdrawn(&voucher, 2, id)).await;
    assert_eq!(verdict, Verdict::Confirmed);
    let tally = desk.tally(voucher.id).await;
    assert_eq!((tally.total, tally.stock), (3, 3));
    assert_eq!(state(&desk, id).await, AdjustmentState::Applied);
}

async fn a_withdrawal_of_units_that_are_not_there_is_rejected(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(3, 1).await;
    desk.granted(&voucher, 1, 1).await;
    desk.granted(&voucher, 2, 1).await;
    let id = recorded(&desk, &voucher, -2).await;
    let verdict = desk.apply_one(withdrawn(&voucher, 2, id)).await;
    assert_eq!(verdict, Verdict::Rejected(RejectReason::NoStock));
    let tally = desk.tally(voucher.id).await;
    assert_eq!((tally.total, tally.stock), (3, 1));
    assert_eq!(state(&desk, id).await, AdjustmentState::Refused);
}

async fn an_adjustment_that_is_not_committed_never_was(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let new = new(&voucher, 3, Some("k"));
    let mut unit = desk.begin().await;
    let AdjustmentReply::Recorded(adjustment) = unit.record_adjustment(&new).await.unwrap() else {
        panic!("recorded");
    };
    unit.add_units(voucher.id, adjustment.id, 3).await.unwrap();
    drop(unit);
    assert_eq!(desk.stock(&voucher).await, 5);
    let mut unit = desk.begin().await;
    assert_eq!(unit.adjustment(adjustment.id).await.unwrap(), None);
    drop(unit);
    let other = NewAdjustment { delta: 9, ..new };
    let reply = record(&desk, &other).await;
    assert!(matches!(reply, AdjustmentReply::Recorded(_)), "{reply:?}");
}
