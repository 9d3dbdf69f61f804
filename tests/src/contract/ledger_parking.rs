//! `AdmissionLedger::apply`: what cannot be applied is put aside, counted, and blocks nobody.

use seckill_application::ports::{
    AdmissionBatch, BatchItem, EntryId, ParkReason, ParkedReply, SaleSnapshot, Taken, Unreadable,
    Verdict,
};
use seckill_domain::{
    AdjustmentId, Claim, Decision, GateUpdate, OrderId, OrderStatus, RejectReason, Voucher,
    VoucherId,
};

use super::desk::{Desk, claim, joining, terms};
use super::stall::new_order;
use super::{LedgerHarness, promises};

promises! { ledger_parking over dyn LedgerHarness:
    an_unknown_voucher_is_parked,
    a_draft_is_parked,
    an_unreadable_entry_is_parked_and_the_rest_goes_on,
    several_unreadable_entries_are_parked_each,
    what_an_entry_of_the_gate_names_is_parked_with_its_units,
    what_names_an_order_that_has_its_units_takes_none,
    what_somebody_elses_entry_names_counts_for_nothing,
    an_order_is_queued_while_any_message_about_it_is_parked,
    another_order_under_a_known_id_is_parked_with_its_units,
    parked_units_are_taken_as_far_as_there_is_stock,
    a_withdrawal_nobody_asked_for_is_parked_with_its_units,
    decisions_that_take_no_units_park_none,
    an_order_without_units_is_parked,
    a_parked_order_counts_as_had,
    a_parked_decision_was_applied,
    parked_grants_are_held_in_a_snapshot,
}

const CONFIRMED: Verdict = Verdict::Confirmed;
const UNKNOWN: Verdict = Verdict::Parked(ParkReason::UnknownVoucher);
const BAD: Verdict = Verdict::Parked(ParkReason::BadValues);

fn of_voucher(id: VoucherId, voucher: &Voucher) -> Claim {
    Claim {
        voucher: id,
        ..claim(voucher, 1, 1)
    }
}

/// A voucher of the same partition that is not there.
fn unknown(voucher: &Voucher) -> VoucherId {
    VoucherId::new(voucher.id.get() + 1_000 * u64::from(super::PARTITIONS))
}

/// A claim to the order id of another one, by another buyer.
fn impostor(of: &Claim, quantity: u32) -> Claim {
    Claim {
        buyer: seckill_domain::BuyerId::new(of.buyer.get() + 500),
        quantity,
        ..of.clone()
    }
}

async fn an_unknown_voucher_is_parked(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let stray = of_voucher(unknown(&voucher), &voucher);
    let good = claim(&voucher, 2, 1);
    let decisions = vec![
        Decision::Granted(stray.clone()),
        Decision::Granted(good.clone()),
        joining(&stray, 3),
    ];
    assert_eq!(desk.apply(decisions).await, [UNKNOWN, CONFIRMED, UNKNOWN]);
    assert_eq!(desk.status(&good).await, OrderStatus::PendingPayment);
    assert_eq!(desk.ports.ledger.order(stray.order).await.unwrap(), None);
    assert_eq!(desk.stock(&voucher).await, 4);
    let tally = desk
        .ports
        .ledger
        .tally(stray.voucher, voucher.version)
        .await
        .unwrap();
    assert_eq!(tally, None);
}

async fn a_draft_is_parked(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let draft = desk.draft(5, terms(1)).await;
    let claim = claim(&draft, 1, 1);
    assert_eq!(desk.apply_one(Decision::Granted(claim)).await, UNKNOWN);
    desk.tally(draft.id).await;
}

fn unreadable(entry: EntryId) -> BatchItem {
    let body = Unreadable {
        raw: "{\"v\":9} \u{fffd} 'quoted' \\".to_owned(),
        reason: "version 9".to_owned(),
        named: None,
    };
    BatchItem::Unreadable {
        entry,
        body,
        taken: None,
    }
}

/// Hole 8 and fault F18: a poison message blocks what is behind it.
async fn an_unreadable_entry_is_parked_and_the_rest_goes_on(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let claims = [claim(&voucher, 1, 1), claim(&voucher, 2, 1)];
    let decisions = claims.iter().cloned().map(Decision::Granted).collect();
    let partition = desk.partition_of(voucher.id);
    let mut batch = desk.batch(partition, decisions).await;
    let entry = EntryId {
        counter: 700,
        ..batch.up_to
    };
    batch.items.insert(1, unreadable(entry));
    let parked = Verdict::Parked(ParkReason::Unreadable);
    assert_eq!(desk.commit(&batch).await, [CONFIRMED, parked, CONFIRMED]);
    assert_eq!(desk.status(&claims[1]).await, OrderStatus::PendingPayment);
    assert_eq!(desk.stock(&voucher).await, 3);
}

async fn several_unreadable_entries_are_parked_each(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let partition = seckill_domain::PartitionId::new(0);
    let head = desk.ports.admissions.take_over(partition).await.unwrap();
    let entry = |counter| EntryId {
        millis: 1_796_000_000_000,
        counter,
    };
    let batch = AdmissionBatch {
        partition,
        head,
        items: (1..=3).map(|counter| unreadable(entry(counter))).collect(),
        up_to: entry(3),
    };
    let parked = Verdict::Parked(ParkReason::Unreadable);
    assert_eq!(desk.commit(&batch).await, [parked; 3]);
    // The stream of the next life may have entries with the same numbers.
    let head = desk
        .ports
        .admissions
        .next_epoch(partition, head.epoch)
        .await
        .unwrap();
    let again = AdmissionBatch { head, ..batch };
    assert_eq!(desk.commit(&again).await, [parked; 3]);
}

fn naming(claim: &Claim, entry: EntryId, taken: Option<Taken>) -> BatchItem {
    let body = Unreadable {
        raw: "granted, more or less".to_owned(),
        reason: "not a decision".to_owned(),
        named: Some(Decision::Granted(claim.clone())),
    };
    BatchItem::Unreadable { entry, body, taken }
}

/// It takes as many numbers as the gate has decided by it.
async fn what_an_entry_of_the_gate_names_is_parked_with_its_units(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 2).await;
    let [named, after] = [claim(&voucher, 1, 2), claim(&voucher, 2, 1)];
    let mut batch = desk.batch(desk.partition_of(voucher.id), Vec::new()).await;
    let entry = |counter| EntryId {
        counter,
        ..batch.up_to
    };
    let first = batch.head.applied.next();
    let last = first.next().next();
    let granted = BatchItem::Decision {
        sequence: last.next(),
        entry: entry(702),
        decision: Decision::Granted(after.clone()),
    };
    let unread = naming(&named, entry(701), Some(Taken { first, last }));
    batch.items = vec![unread, granted];
    batch.up_to = entry(702);
    let parked = Verdict::Parked(ParkReason::Unreadable);
    assert_eq!(desk.commit(&batch).await, [parked, CONFIRMED]);
    let head = desk.ports.admissions.head(batch.partition).await.unwrap();
    assert_eq!((head.applied, head.entry), (last.next(), batch.up_to));
    let tally = desk.tally(voucher.id).await;
    assert_eq!((tally.stock, tally.parked), (2, 2));
    let waiting = desk.ports.parked.list(true, None, 1).await.unwrap();
    let message = &waiting.items[0];
    assert_eq!(message.reason, ParkReason::Unreadable);
    assert_eq!((message.voucher, message.units), (Some(voucher.id), 2));
    assert_eq!(message.claim.as_ref(), Some(&named));
    assert_eq!(message.raw, "granted, more or less");
    let stages = desk.ports.ledger.stages(&[named.order]).await.unwrap();
    assert_eq!(stages, [(named.order, OrderStatus::Queued)]);
    let reply = desk.ports.parked.replay(message.id).await.unwrap();
    assert_eq!(reply, ParkedReply::Settled);
    assert_eq!(desk.status(&named).await, OrderStatus::PendingPayment);
    assert_eq!(desk.tally(voucher.id).await.parked, 0);
}

/// A process that remembers a grant offers it while the ledger writes it down, and what comes of that
/// cannot be read.
async fn what_names_an_order_that_has_its_units_takes_none(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 2).await;
    let live = desk.granted(&voucher, 1, 2).await;
    let mut batch = desk.batch(desk.partition_of(voucher.id), Vec::new()).await;
    let first = batch.head.applied.next();
    let last = first;
    batch.up_to.counter = 701;
    batch.items = vec![naming(&live, batch.up_to, Some(Taken { first, last }))];
    let parked = Verdict::Parked(ParkReason::Unreadable);
    assert_eq!(desk.commit(&batch).await, [parked]);
    let tally = desk.tally(voucher.id).await;
    assert_eq!((tally.stock, tally.parked), (3, 0));
    let held = |snapshot: &SaleSnapshot| -> Vec<OrderId> {
        let holders = snapshot.chunks.iter().flat_map(|chunk| &chunk.holders);
        holders.map(|holder| holder.held.order).collect()
    };
    assert_eq!(held(&desk.snapshot(voucher.id).await), [live.order]);
    let version = desk.cancel(&live).await;
    let snapshot = desk.snapshot(voucher.id).await;
    assert_eq!((held(&snapshot), snapshot.sale.free), (vec![], 5));
    let waiting = desk.ports.parked.list(true, None, 1).await.unwrap();
    let reply = desk.ports.parked.discard(waiting.items[0].id, "seen").await;
    assert_eq!(reply.unwrap(), ParkedReply::Settled);
    assert_eq!(desk.stock(&voucher).await, 5);
    assert_eq!(desk.snapshot(voucher.id).await.sale.free, 5);
    let updates = desk
        .ports
        .updates
        .after(voucher.id, version, 10)
        .await
        .unwrap();
    let units: u32 = updates.iter().map(GateUpdate::units_returned).sum();
    assert_eq!(units, 0, "they came back once");
}

async fn what_somebody_elses_entry_names_counts_for_nothing(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 2).await;
    let named = claim(&voucher, 1, 2);
    let mut batch = desk.batch(desk.partition_of(voucher.id), Vec::new()).await;
    batch.up_to.counter += 1;
    batch.items = vec![naming(&named, batch.up_to, None)];
    desk.commit(&batch).await;
    let tally = desk.tally(voucher.id).await;
    assert_eq!((tally.stock, tally.parked), (5, 0));
    let list = desk.ports.parked.list(true, None, 1).await.unwrap();
    let message = &list.items[0];
    let seen = (message.voucher, message.claim.as_ref(), message.units);
    assert_eq!(seen, (None, None, 0));
    assert_eq!(desk.ports.ledger.stages(&[named.order]).await.unwrap(), []);
    let unfit = ParkedReply::StillUnfit(ParkReason::Unreadable);
    assert_eq!(desk.ports.parked.replay(message.id).await.unwrap(), unfit);
}

async fn an_order_is_queued_while_any_message_about_it_is_parked(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let stray = of_voucher(unknown(&voucher), &voucher);
    for _ in 0..2 {
        let verdict = desk.apply_one(Decision::Granted(stray.clone())).await;
        assert_eq!(verdict, UNKNOWN);
    }
    let list = desk.ports.parked.list(true, None, 10).await.unwrap();
    let stages = async || desk.ports.ledger.stages(&[stray.order]).await.unwrap();
    for message in &list.items {
        assert_eq!(stages().await, [(stray.order, OrderStatus::Queued)]);
        desk.ports.parked.discard(message.id, "seen").await.unwrap();
    }
    assert_eq!(stages().await, []);
}

async fn another_order_under_a_known_id_is_parked_with_its_units(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 5).await;
    let first = desk.granted(&voucher, 1, 1).await;
    let stranger = impostor(&first, 2);
    let good = claim(&voucher, 3, 1);
    let decisions = vec![Decision::Granted(stranger), Decision::Granted(good.clone())];
    assert_eq!(desk.apply(decisions).await, [BAD, CONFIRMED]);
    let tally = desk.tally(voucher.id).await;
    assert_eq!(
        (tally.stock, tally.parked, tally.awaiting_payment),
        (5, 2, 2)
    );
    assert_eq!(desk.order(first.order).await.buyer, first.buyer);
}

async fn parked_units_are_taken_as_far_as_there_is_stock(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(3, 5).await;
    let first = desk.granted(&voucher, 1, 1).await;
    let decisions = [2, 2, 2].map(|units| Decision::Granted(impostor(&first, units)));
    assert_eq!(desk.apply(decisions.to_vec()).await, [BAD; 3]);
    let tally = desk.tally(voucher.id).await;
    assert_eq!((tally.stock, tally.parked), (0, 2));
    let late = claim(&voucher, 7, 1);
    let verdict = desk.apply_one(Decision::Granted(late)).await;
    assert_eq!(verdict, Verdict::Rejected(RejectReason::NoStock));
}

async fn a_withdrawal_nobody_asked_for_is_parked_with_its_units(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let withdrawn = Decision::Withdrawn {
        voucher: voucher.id,
        units: 3,
        adjustment: AdjustmentId::new(4_711),
    };
    assert_eq!(desk.apply_one(withdrawn).await, BAD);
    let tally = desk.tally(voucher.id).await;
    assert_eq!((tally.total, tally.stock, tally.parked), (5, 2, 3));
}

async fn decisions_that_take_no_units_park_none(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 5).await;
    let first = desk.granted(&voucher, 1, 1).await;
    let stranger = impostor(&first, 2);
    let decisions = vec![joining(&stranger, 9), Decision::Lost(stranger)];
    assert_eq!(desk.apply(decisions).await, [BAD; 2]);
    assert_eq!(desk.tally(voucher.id).await.parked, 0);
}

async fn an_order_without_units_is_parked(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 5).await;
    let nothing = claim(&voucher, 1, 0);
    let good = claim(&voucher, 2, 1);
    let decisions = vec![Decision::Granted(nothing), Decision::Granted(good)];
    assert_eq!(desk.apply(decisions).await, [BAD, CONFIRMED]);
    assert_eq!(desk.stock(&voucher).await, 4);
}

/// Or a rebuild of the gate appends it again, and again.
async fn a_parked_order_counts_as_had(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let stray = of_voucher(unknown(&voucher), &voucher);
    desk.apply_one(Decision::Granted(stray.clone())).await;
    let asked = [stray.order, new_order()];
    let stages = desk.ports.ledger.stages(&asked).await.unwrap();
    assert_eq!(stages, [(stray.order, OrderStatus::Queued)]);
}

async fn a_parked_decision_was_applied(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let stray = of_voucher(unknown(&voucher), &voucher);
    let decisions = vec![
        Decision::Granted(stray),
        Decision::Granted(claim(&voucher, 2, 1)),
    ];
    let batch = desk.batch(desk.partition_of(voucher.id), decisions).await;
    desk.commit(&batch).await;
    let admissions = &desk.ports.admissions;
    assert!(
        admissions
            .has_applied(batch.partition, &batch.items)
            .await
            .unwrap()
    );
}

async fn parked_grants_are_held_in_a_snapshot(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 5).await;
    let first = desk.granted(&voucher, 1, 1).await;
    let stranger = impostor(&first, 2);
    desk.apply_one(Decision::Granted(stranger.clone())).await;
    let snapshot = desk.snapshot(voucher.id).await;
    assert_eq!(snapshot.sale.free, 6);
    let holders = snapshot.chunks.iter().flat_map(|chunk| &chunk.holders);
    let of_stranger = holders.filter(|holder| holder.buyer == stranger.buyer);
    let units: Vec<u32> = of_stranger.map(|holder| holder.held.quantity).collect();
    assert_eq!(units, [2]);
}
