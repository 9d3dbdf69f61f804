//! Reconciliation: each kind of difference, planted from outside, is found and mended within two
//! rounds, and reported.

use seckill_application::ReconcileScope;
use seckill_application::ports::{DifferenceKind, Report, StreamReply, VoucherFinding};
use seckill_domain::{Held, OrderId, OrderStatus, VoucherId};

use seckill_memory::Piece;

use crate::world::{MINUTE, MS, Offer, PARTITION, World, buyer};

pub(crate) const EVERY_MINUTE: ReconcileScope = ReconcileScope {
    full: false,
    dry_run: false,
};
pub(crate) const DRY: ReconcileScope = ReconcileScope {
    full: false,
    dry_run: true,
};
pub(crate) const FULL: ReconcileScope = ReconcileScope {
    full: true,
    dry_run: false,
};

pub(crate) fn round(world: &World, scope: ReconcileScope) -> Report {
    let reconcile = world.reconcile("process-1");
    let report = world.run(reconcile.run(scope)).unwrap();
    report.expect("nobody else is at it")
}

/// What a round finds about the one sale.
pub(crate) fn finding(world: &World) -> VoucherFinding {
    let mut report = round(world, EVERY_MINUTE);
    assert_eq!(report.vouchers.len(), 1);
    report.vouchers.remove(0)
}

pub(crate) fn kinds(finding: &VoucherFinding) -> Vec<DifferenceKind> {
    finding.differences.iter().map(|it| it.kind).collect()
}

/// Two rounds mend everything; the third one finds nothing. Returns what the first found.
pub(crate) fn mended(world: &World, voucher: VoucherId) -> VoucherFinding {
    let first = finding(world);
    world.settle();
    let second = finding(world);
    assert!(kinds(&second).is_empty(), "{second:?}");
    world.settle();
    let third = finding(world);
    assert_eq!(
        (kinds(&third), third.free_drift, third.holds),
        (vec![], 0, true)
    );
    world.assert_sound(voucher);
    first
}

pub(crate) fn assert_one(
    finding: &VoucherFinding,
    kind: DifferenceKind,
    order: OrderId,
    repaired: bool,
) {
    let [difference] = &finding.differences[..] else {
        panic!("{finding:?}");
    };
    assert_eq!((difference.kind, difference.repaired), (kind, repaired));
    assert_eq!(difference.claim.order, order);
}

pub(crate) fn held(world: &World, voucher: VoucherId, number: u64) -> Vec<OrderId> {
    let found = world.alone(world.hot.gate.claimants(voucher, &[buyer(number)]));
    let found = found.unwrap().expect("loaded").remove(0);
    found.held.iter().map(|held| held.order).collect()
}

#[test]
fn a_healthy_sale_has_nothing_to_mend() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10).limit(3).waitlist(5));
    for number in 1..=4 {
        world.bought(voucher, number, 2);
    }
    let found = finding(&world);
    assert_eq!(
        (found.voucher, found.holds, found.free_drift),
        (voucher, true, 0)
    );
    assert_eq!(kinds(&found), []);
    assert_eq!((found.tally.free, found.tally.awaiting_payment), (2, 8));
}

/// The gate took a unit and its message hangs with a worker that is gone: it is delivered.
#[test]
fn a_message_that_hangs_is_delivered() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    world.bought(voucher, 1, 1);
    let order = world.alone(async {
        let request = crate::world::request(voucher, 2, 1);
        let seckill_application::Purchase::Granted { order, .. } =
            world.purchase.run(request).await.unwrap()
        else {
            panic!("not granted");
        };
        order
    });
    let epoch = world.epoch();
    let ghost = world.hot.stream.read_new(PARTITION, epoch, "ghost", 10, MS);
    let StreamReply::Entries(taken) = world.alone(ghost).unwrap() else {
        panic!("no stream");
    };
    assert_eq!(taken.len(), 1, "the ghost has it");
    // While nobody writes, it is found and left to be delivered.
    let reconcile = world.reconcile("process-1");
    let report = world.alone(reconcile.run(EVERY_MINUTE)).unwrap().unwrap();
    let found = &report.vouchers[0];
    assert_one(found, DifferenceKind::NotDelivered, order, false);
    assert_eq!(report.repairs(), 0);
    // The writer takes over what the ghost left.
    mended(&world, voucher);
    assert_eq!(world.status(order), OrderStatus::PendingPayment);
    assert_eq!(world.free(voucher), 8);
}

/// The gate took a unit and its message is gone: it is appended again from the holder.
#[test]
fn a_message_that_is_gone_is_appended_again() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10).limit(2));
    world.bought(voucher, 1, 1);
    let order = granted_in_silence(&world, voucher, 2);
    assert!(world.store.remove_message(voucher, order));
    world.pass(MINUTE);
    assert_eq!(world.alone(world.ledger.ledger.order(order)).unwrap(), None);
    let found = mended(&world, voucher);
    assert_one(&found, DifferenceKind::MessageGone, order, true);
    assert_eq!(world.status(order), OrderStatus::PendingPayment);
    assert_eq!(world.free(voucher), 7);
}

/// So does whatever else is lost from the middle of the stream, without any help.
#[test]
fn a_message_that_is_gone_from_the_middle_shows_by_what_follows() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10).limit(2));
    world.bought(voucher, 1, 1);
    let order = granted_in_silence(&world, voucher, 2);
    let later = granted_in_silence(&world, voucher, 3);
    assert!(world.store.remove_message(voucher, order));
    mended(&world, voucher);
    assert!(
        world
            .statuses(&[order, later])
            .iter()
            .all(|it| it.is_live())
    );
    assert_eq!(world.free(voucher), 5);
}

/// Two units for a buyer, and the writer does not see it yet.
fn granted_in_silence(world: &World, voucher: VoucherId, number: u64) -> OrderId {
    let request = crate::world::request(voucher, number, 2);
    match world.alone(world.purchase.run(request)).unwrap() {
        seckill_application::Purchase::Granted { order, .. } => order,
        other => panic!("{other:?}"),
    }
}

/// The ledger has an order and the gate does not hold it: the holder is restored.
#[test]
fn a_holder_that_is_gone_is_restored() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10).limit(2));
    let order = world.bought(voucher, 1, 2);
    world.bought(voucher, 2, 1);
    assert!(world.store.drop_holder(voucher, order));
    assert!(held(&world, voucher, 1).is_empty());
    let found = mended(&world, voucher);
    assert_one(&found, DifferenceKind::HolderGone, order, true);
    assert_eq!(held(&world, voucher, 1), [order]);
    assert_eq!(world.free(voucher), 7);
    world.run(world.cancel.run(order, buyer(1))).unwrap();
    world.settle();
    assert_eq!(world.free(voucher), 9);
}

/// The ledger has given units back and the gate does not know: they are released again, and the
/// next in line gets them.
#[test]
fn units_that_were_not_released_are_released_again() {
    let world = World::new();
    let voucher = world.sale(Offer::of(2).limit(2).waitlist(5));
    let order = world.bought(voucher, 1, 2);
    world.run(world.cancel.run(order, buyer(1))).unwrap();
    world.settle();
    // The gate forgets that it has followed.
    let back = Held {
        order,
        quantity: 2,
        promoted: false,
    };
    assert!(world.store.plant_holder(voucher, buyer(1), back));
    assert!(world.store.shift_free(voucher, -2));
    let waits = world.waiting(voucher, 2, 1);
    let found = mended(&world, voucher);
    assert_one(&found, DifferenceKind::NotReleased, order, true);
    assert_eq!(held(&world, voucher, 1), []);
    assert_eq!(world.status(waits), OrderStatus::PendingPayment);
    assert_eq!(world.free(voucher), 1);
}

/// The same, with the update itself lost: the gate is behind by a version, and is loaded again.
#[test]
fn an_update_that_was_lost_shows_as_units_that_were_not_released() {
    let world = World::new();
    let voucher = world.sale(Offer::of(2));
    let order = world.bought(voucher, 1, 1);
    world.store.chaos().fail_before("purchase_gate.follow", 1);
    world.alone(world.cancel.run(order, buyer(1))).unwrap();
    let version = world.alone(world.ledger.ledger.voucher(voucher)).unwrap();
    let version = version.unwrap().version;
    world
        .alone(world.ledger.updates.forget(voucher, version))
        .unwrap();
    assert_eq!(held(&world, voucher, 1), [order]);
    let found = mended(&world, voucher);
    assert_one(&found, DifferenceKind::NotReleased, order, true);
    assert_eq!(held(&world, voucher, 1), []);
    assert_eq!(world.free(voucher), 2);
}

#[test]
fn free_units_that_are_off_have_the_sale_loaded_again() {
    for shift in [3, -3] {
        let world = World::new();
        let voucher = world.sale(Offer::of(10));
        world.bought(voucher, 1, 1);
        assert!(world.store.shift_free(voucher, shift));
        let found = finding(&world);
        assert_eq!((found.free_drift, found.holds), (i64::from(shift), false));
        assert_eq!(kinds(&found), []);
        world.settle();
        assert_eq!(world.free(voucher), 9);
        assert_eq!(finding(&world).free_drift, 0);
        world.assert_sound(voucher);
    }
}

/// A holder out of nowhere is taken at its word, for somebody may have been told so; the units are
/// the ledger's to refuse.
#[test]
fn a_holder_out_of_nowhere_becomes_an_order_and_its_units_are_found_missing() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = OrderId::new(4_711);
    let phantom = Held {
        order,
        quantity: 1,
        promoted: false,
    };
    assert!(world.store.plant_holder(voucher, buyer(9), phantom));
    let found = finding(&world);
    assert_one(&found, DifferenceKind::MessageGone, order, true);
    assert_eq!(found.free_drift, 1, "its unit was taken from nobody");
    world.settle();
    assert_eq!(world.status(order), OrderStatus::PendingPayment);
    assert_eq!(world.free(voucher), 9);
    assert_eq!(finding(&world).free_drift, 0);
    world.assert_sound(voucher);
}

/// As after a release that was never asked for. Until the count is mended too, the gate gives the
/// unit to somebody whom the ledger has to refuse.
#[test]
fn a_holder_that_is_gone_and_his_free_unit_are_mended_in_one_round() {
    let world = World::new();
    let voucher = world.sale(Offer::of(2));
    let order = world.bought(voucher, 1, 1);
    world.bought(voucher, 2, 1);
    assert!(world.store.drop_holder(voucher, order));
    assert!(world.store.shift_free(voucher, 1));
    let dry = round(&world, DRY).vouchers.remove(0);
    assert_one(&dry, DifferenceKind::HolderGone, order, false);
    assert_eq!(dry.free_drift, 1);
    let found = finding(&world);
    assert_one(&found, DifferenceKind::HolderGone, order, true);
    assert_eq!(found.free_drift, 1);
    assert_eq!(
        world.ask(voucher, 3, 1),
        seckill_application::Purchase::SoldOut
    );
    world.settle();
    assert_eq!(held(&world, voucher, 1), [order]);
    assert_eq!(world.free(voucher), 0);
    let second = finding(&world);
    assert_eq!((kinds(&second), second.free_drift), (vec![], 0));
    world.assert_sound(voucher);
}

#[test]
fn many_sales_share_the_pause_between_the_looks() {
    let world = World::new();
    let vouchers: Vec<VoucherId> = (0..120).map(|_| world.sale(Offer::of(3))).collect();
    let orders: Vec<OrderId> = vouchers
        .iter()
        .map(|voucher| world.bought(*voucher, 1, 1))
        .collect();
    for (voucher, order) in vouchers.iter().zip(&orders) {
        assert!(world.store.drop_holder(*voucher, *order));
    }
    let report = round(&world, EVERY_MINUTE);
    assert_eq!((report.differences(), report.repairs()), (120, 120));
    let took_ms = report.finished_at.as_millis() - report.started_at.as_millis();
    assert_eq!(took_ms, 1_000, "a pause for each hundred, and no more");
    world.settle();
    assert_eq!(round(&world, EVERY_MINUTE).findings(), 0);
}

/// What the gate notices by itself is loaded again before any round comes; that it happened is told.
#[test]
fn a_sale_that_was_loaded_again_is_in_the_next_report_and_in_no_other() {
    let world = World::new();
    let [voucher, other] = [world.sale(Offer::of(10)), world.sale(Offer::of(10))];
    world.bought(voucher, 1, 1);
    for _ in 0..2 {
        assert!(world.store.delete(Piece::Holders(voucher)));
        world.settle();
    }
    let reloads = |report: &Report, voucher| {
        let found = report.vouchers.iter().find(|it| it.voucher == voucher);
        let found = found.expect("it is on sale");
        assert!(found.at_gate && found.holds, "{found:?}");
        found.reloads
    };
    for scope in [DRY, EVERY_MINUTE] {
        let report = round(&world, scope);
        assert_eq!((reloads(&report, voucher), reloads(&report, other)), (2, 0));
        assert_eq!((report.findings(), report.reloads()), (0, 2));
    }
    assert_eq!(round(&world, EVERY_MINUTE).reloads(), 0);
}

#[test]
fn a_sale_that_the_gate_does_not_have_is_in_the_report_with_its_terms() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    world.bought(voucher, 1, 1);
    assert!(world.store.delete(Piece::Sale(voucher)));
    let reconcile = world.reconcile("process-1");
    let report = world.alone(reconcile.run(EVERY_MINUTE)).unwrap().unwrap();
    let found = &report.vouchers[0];
    assert_eq!((found.at_gate, found.reloads), (false, 0));
    assert_eq!((found.tally.total, found.tally.free), (10, 9));
    assert_eq!((report.findings(), report.repairs()), (1, 0));
    world.settle();
    let report = round(&world, EVERY_MINUTE);
    let found = &report.vouchers[0];
    assert_eq!((found.at_gate, found.reloads), (true, 1));
    assert_eq!(report.findings(), 0);
}

#[test]
fn reports_are_kept_for_a_month() {
    let world = World::new();
    let old = round(&world, EVERY_MINUTE);
    world.skip(MINUTE * 60 * 24 * 29);
    let young = round(&world, EVERY_MINUTE);
    world.skip(MINUTE * 60 * 24 * 2);
    let last = round(&world, EVERY_MINUTE);
    let kept = world.alone(world.reconcile("process-1").reports(None, 10));
    assert_eq!(kept.unwrap().items, [last, young]);
    assert_eq!(old.id, 1);
}

#[test]
fn several_differences_at_once_are_mended_together() {
    let world = World::new();
    let voucher = world.sale(Offer::of(20).limit(2));
    let orders: Vec<OrderId> = (1..=6).map(|it| world.bought(voucher, it, 2)).collect();
    world.run(world.cancel.run(orders[5], buyer(6))).unwrap();
    world.settle();
    let back = Held {
        order: orders[5],
        quantity: 2,
        promoted: false,
    };
    for order in &orders[..3] {
        assert!(world.store.drop_holder(voucher, *order));
    }
    assert!(world.store.plant_holder(voucher, buyer(6), back));
    assert!(world.store.shift_free(voucher, -2));
    let gone = granted_in_silence(&world, voucher, 7);
    assert!(world.store.remove_message(voucher, gone));
    let found = mended(&world, voucher);
    let mut kinds = kinds(&found);
    kinds.sort_by_key(|kind| format!("{kind:?}"));
    let [gone, message, kept] = [
        DifferenceKind::HolderGone,
        DifferenceKind::MessageGone,
        DifferenceKind::NotReleased,
    ];
    let expected = [gone, gone, gone, message, kept];
    assert_eq!(kinds, expected);
    assert_eq!(world.free(voucher), 8);
}

#[test]
fn a_dry_run_reports_and_mends_nothing() {
    let world = World::new();
    let [voucher, other] = [world.sale(Offer::of(10)), world.sale(Offer::of(10))];
    let order = world.bought(voucher, 1, 1);
    assert!(world.store.drop_holder(voucher, order));
    assert!(world.store.shift_free(other, 2));
    for _ in 0..2 {
        let report = round(&world, DRY);
        assert!(report.dry_run);
        assert_eq!((report.differences(), report.repairs()), (1, 0));
        let drift = report.vouchers.iter().find(|it| it.voucher == other);
        assert_eq!(drift.unwrap().free_drift, 2);
        world.settle();
    }
    assert_eq!(held(&world, voucher, 1), []);
    assert_eq!(world.free(other), 12);
    let report = round(&world, EVERY_MINUTE);
    assert_eq!((report.differences(), report.repairs()), (1, 2));
    world.settle();
    world.assert_sound(voucher);
    world.assert_sound(other);
}
