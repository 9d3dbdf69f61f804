//! `Reconciliations`: repairs.

use futures::join;
use seckill_application::ports::DifferenceKind;
use seckill_domain::{
    Claim, GateChange, GateUpdate, GateVersion, Order, OrderStatus, Stage, Voucher, VoucherId,
};

use super::desk::{Desk, claim};
use super::reconciliations::{being_released, parked};
use super::{LedgerHarness, promises};

promises! { reconciliation_repairs over dyn LedgerHarness:
    a_message_that_is_gone_is_appended_again,
    a_holder_that_is_gone_is_restored,
    what_was_not_released_is_released_again,
    a_repair_of_what_has_moved_changes_nothing,
    a_repair_waits_for_whoever_has_the_order,
    a_parked_order_is_not_missing,
    what_no_update_mends_is_refused,
}

async fn repair(
    desk: &Desk<'_>,
    kind: DifferenceKind,
    claim: &Claim,
    seen: Option<OrderStatus>,
) -> bool {
    let books = &desk.ports.reconciliations;
    books.repair(kind, claim, seen).await.unwrap()
}

/// The one update that a repair has left.
async fn repaired(desk: &Desk<'_>, voucher: &Voucher, after: GateVersion) -> GateChange {
    let updates = desk.ports.updates.after(voucher.id, after, 10).await;
    let mut updates = updates.unwrap();
    assert_eq!(updates.len(), 1, "{updates:?}");
    let GateUpdate {
        version,
        mut changes,
        ..
    } = updates.remove(0);
    assert_eq!(version, after.next());
    assert_eq!(desk.stored(voucher.id).await.version, version);
    assert_eq!(changes.len(), 1, "{changes:?}");
    changes.remove(0)
}

async fn a_message_that_is_gone_is_appended_again(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 2).await;
    let gone = claim(&voucher, 1, 2);
    let kind = DifferenceKind::MessageGone;
    assert!(repair(&desk, kind, &gone, None).await);
    let change = repaired(&desk, &voucher, voucher.version).await;
    assert_eq!(change, GateChange::AppendAgain(gone.clone()));
    assert_eq!(desk.ports.ledger.order(gone.order).await.unwrap(), None);
    let waits = desk.joined(&voucher, 2, 1).await;
    let seen = Some(OrderStatus::Waiting);
    assert!(repair(&desk, kind, &waits, seen).await);
    let change = repaired(&desk, &voucher, voucher.version.next()).await;
    assert_eq!(change, GateChange::AppendAgain(waits));
    assert_eq!(desk.stock(&voucher).await, 9);
}

async fn a_holder_that_is_gone_is_restored(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 2).await;
    let held = desk.granted(&voucher, 1, 2).await;
    let seen = Some(OrderStatus::PendingPayment);
    let kind = DifferenceKind::HolderGone;
    assert!(repair(&desk, kind, &held, seen).await);
    let change = repaired(&desk, &voucher, voucher.version).await;
    assert_eq!(change, GateChange::RestoreHolder(held));
    assert_eq!(desk.stock(&voucher).await, 7);
}

async fn what_was_not_released_is_released_again(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 2).await;
    let held = desk.granted(&voucher, 1, 2).await;
    let version = desk.cancel(&held).await;
    desk.ports
        .updates
        .forget(voucher.id, version)
        .await
        .unwrap();
    let seen = Some(OrderStatus::Cancelled);
    let kind = DifferenceKind::NotReleased;
    assert!(repair(&desk, kind, &held, seen).await);
    let expected = GateChange::Release {
        order: held.order,
        buyer: held.buyer,
        quantity: 2,
    };
    assert_eq!(repaired(&desk, &voucher, version).await, expected);
    assert_eq!(desk.stock(&voucher).await, 9, "the ledger had them back");
    let released = being_released(&desk, &voucher, &[held.order]).await;
    assert_eq!(released, [held.order]);
}

async fn a_repair_of_what_has_moved_changes_nothing(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 2).await;
    let paid = desk.granted(&voucher, 1, 2).await;
    desk.pay(&paid).await;
    let stranger = Claim {
        voucher: VoucherId::new(voucher.id.get() + 1_000),
        ..claim(&voucher, 2, 1)
    };
    let tries = [
        (DifferenceKind::MessageGone, &paid, None),
        (
            DifferenceKind::HolderGone,
            &paid,
            Some(OrderStatus::PendingPayment),
        ),
        (
            DifferenceKind::NotReleased,
            &paid,
            Some(OrderStatus::Cancelled),
        ),
        (DifferenceKind::MessageGone, &stranger, None),
    ];
    for (kind, claim, seen) in tries {
        assert!(!repair(&desk, kind, claim, seen).await, "{kind:?}");
    }
    let unknown = claim(&voucher, 3, 1);
    let seen = Some(OrderStatus::Waiting);
    assert!(!repair(&desk, DifferenceKind::MessageGone, &unknown, seen).await);
    assert_eq!(desk.stored(voucher.id).await.version, voucher.version);
    let start = GateVersion::default();
    let updates = desk.ports.updates.after(voucher.id, start, 10).await;
    assert_eq!(updates.unwrap(), []);
}

/// Or an order that is cancelled at this moment is restored for ever.
async fn a_repair_waits_for_whoever_has_the_order(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 2).await;
    let held = desk.granted(&voucher, 1, 2).await;
    let mut first = desk.begin().await;
    let order = first.lock_order(held.order).await.unwrap().unwrap();
    let cancelled = Order {
        stage: Stage::Cancelled,
        ..order
    };
    let cancel = async {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        let from = OrderStatus::PendingPayment;
        assert_eq!(first.save_orders(from, &[cancelled]).await.unwrap(), 1);
        let releases = [super::desk::release(&held)];
        first.release(voucher.id, &releases).await.unwrap();
        first.commit().await.unwrap();
    };
    let seen = Some(OrderStatus::PendingPayment);
    let repair = repair(&desk, DifferenceKind::HolderGone, &held, seen);
    let (repaired, ()) = join!(repair, cancel);
    assert!(!repaired);
    let start = GateVersion::default();
    let updates = desk.ports.updates.after(voucher.id, start, 10).await;
    assert_eq!(updates.unwrap().len(), 1, "the release alone");
}

async fn a_parked_order_is_not_missing(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let parked = parked(&desk).await;
    assert!(!repair(&desk, DifferenceKind::MessageGone, &parked, None).await);
}

async fn what_no_update_mends_is_refused(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 2).await;
    let books = &desk.ports.reconciliations;
    let kinds = [
        DifferenceKind::NotDelivered,
        DifferenceKind::WaiterGone,
        DifferenceKind::WaiterUnknown,
        DifferenceKind::PlaceDiffers,
    ];
    for kind in kinds {
        let repaired = books.repair(kind, &claim(&voucher, 1, 1), None).await;
        assert!(!repaired.unwrap_err().is_retryable());
    }
    assert_eq!(desk.stored(voucher.id).await.version, voucher.version);
}
