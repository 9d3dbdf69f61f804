//! `Ledger::sale_snapshot`: everything the gate needs about a sale, read at one moment.

use std::cell::Cell;

use seckill_application::ports::{
    Holder, KeyUse, LOAD_CHUNK_MAX, LoadChunk, SaleSnapshot, Verdict,
};
use seckill_domain::{
    Claim, Decision, GateVersion, Held, LeftReason, OrderId, OrderStatus, PlaceAtFirst, Remembered,
    Seat, Stage, Ticket, Voucher,
};

use super::desk::{Desk, claim, joining, keyed, terms};
use super::parking::{SETTLED, discard, published_late, replay};
use super::{LedgerHarness, promises};

promises! { ledger_snapshots over dyn LedgerHarness:
    a_snapshot_has_everything_the_gate_needs,
    a_snapshot_of_an_empty_sale_is_empty,
    a_snapshot_remembers_keys_of_orders_that_ended,
    a_snapshot_says_who_was_promoted,
    a_parked_promotion_was_told_a_place_at_first,
    a_parked_place_waits_in_its_turn,
    of_a_parked_place_the_newest_message_decides,
    a_parked_place_is_none_once_its_order_has_come_to_something,
    a_snapshot_keeps_a_buyers_orders_in_order,
    a_large_snapshot_comes_in_chunks,
    a_snapshot_is_of_one_moment,
}

async fn a_snapshot_has_everything_the_gate_needs(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(20, 5).await;
    let held = keyed(&voucher, 1, 2, "held");
    let waits = keyed(&voucher, 2, 3, "waits");
    desk.apply(vec![Decision::Granted(held.clone()), joining(&waits, 7)])
        .await;
    let paid = desk.granted(&voucher, 3, 1).await;
    desk.pay(&paid).await;
    let released = desk.granted(&voucher, 4, 1).await;
    let version = desk.cancel(&released).await;
    let other = desk.voucher(20, 5).await;
    desk.granted(&other, 5, 1).await;

    let snapshot = desk.snapshot(voucher.id).await;
    let stored = desk.stored(voucher.id).await;
    assert_eq!(snapshot.sale.terms, stored.sale_terms());
    assert_eq!((snapshot.sale.free, snapshot.sale.version), (17, version));
    let partition = desk.partition_of(voucher.id);
    assert_eq!(snapshot.sale.applied, desk.head(partition).await.applied);
    let ends_at = desk.order(held.order).await.expires_at;
    let due = vec![(held.order, ends_at.expect("an unpaid order"))];
    assert_eq!(snapshot.due, due, "not of what is paid, over or waits");
    let mut holders = vec![holder(&held, false), holder(&paid, false)];
    holders.sort_by_key(|holder| holder.held.order);
    let seat = Seat {
        ticket: Ticket::new(7),
        order: waits.order,
        buyer: waits.buyer,
        quantity: 3,
        key: waits.key.clone(),
    };
    let mut keys = vec![
        key_use(&held, PlaceAtFirst::Granted),
        key_use(&waits, PlaceAtFirst::Waitlisted),
    ];
    keys.sort_by_key(|used| used.first.order);
    let seats = vec![seat];
    let expected = LoadChunk {
        holders,
        seats,
        keys,
    };
    assert_eq!(whole(&snapshot), expected);
}

async fn a_snapshot_of_an_empty_sale_is_empty(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(20, 5).await;
    let snapshot = desk.snapshot(voucher.id).await;
    assert_eq!(whole(&snapshot), LoadChunk::default());
    assert_eq!(snapshot.sale.free, 20);
    assert_eq!(
        snapshot.sale.applied.get(),
        0,
        "of a partition that was never written"
    );
}

async fn a_snapshot_remembers_keys_of_orders_that_ended(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(20, 5).await;
    let claims = [1, 2, 3].map(|buyer| keyed(&voucher, buyer, 1, "k"));
    let [cancelled, refunded, left] = &claims;
    let grants = claims[..2].iter().cloned().map(Decision::Granted);
    let mut decisions: Vec<Decision> = grants.collect();
    decisions.push(joining(left, 3));
    decisions.push(Decision::Left {
        claim: left.clone(),
        reason: LeftReason::Withdrawn,
    });
    desk.apply(decisions).await;
    desk.cancel(cancelled).await;
    desk.pay(refunded).await;
    let payment = "pay-1".parse().unwrap();
    desk.turn(refunded, Stage::Refunded { payment }).await;
    let all = whole(&desk.snapshot(voucher.id).await);
    assert_eq!((all.holders.len(), all.seats.len()), (0, 0));
    let mut expected = vec![
        key_use(cancelled, PlaceAtFirst::Granted),
        key_use(refunded, PlaceAtFirst::Granted),
        key_use(left, PlaceAtFirst::Waitlisted),
    ];
    expected.sort_by_key(|used| used.first.order);
    assert_eq!(all.keys, expected);
}

async fn a_snapshot_says_who_was_promoted(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(20, 5).await;
    let promoted = keyed(&voucher, 1, 1, "k");
    let decisions = vec![joining(&promoted, 1), Decision::Promoted(promoted.clone())];
    desk.apply(decisions).await;
    let all = whole(&desk.snapshot(voucher.id).await);
    assert_eq!(all.holders, [holder(&promoted, true)]);
    assert_eq!(all.keys, [key_use(&promoted, PlaceAtFirst::Waitlisted)]);
    assert_eq!(all.seats, []);
}

/// Or his key is answered with units that he was never told of.
async fn a_parked_promotion_was_told_a_place_at_first(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let draft = desk.draft(5, terms(2)).await;
    let [promoted, granted] = [keyed(&draft, 1, 2, "k"), keyed(&draft, 2, 1, "k")];
    let decisions = vec![
        Decision::Promoted(promoted.clone()),
        Decision::Granted(granted.clone()),
    ];
    let verdicts = desk.apply(decisions).await;
    assert!(verdicts.iter().all(|it| matches!(it, Verdict::Parked(_))));
    let snapshot = desk.snapshot(draft.id).await;
    assert_eq!(snapshot.sale.free, 2);
    let all = whole(&snapshot);
    let mut holders = [holder(&promoted, true), holder(&granted, false)];
    holders.sort_by_key(|holder| holder.held.order);
    assert_eq!(all.holders, holders);
    let mut keys = [
        key_use(&promoted, PlaceAtFirst::Waitlisted),
        key_use(&granted, PlaceAtFirst::Granted),
    ];
    keys.sort_by_key(|used| used.first.order);
    assert_eq!(all.keys, keys);
}

async fn a_parked_place_waits_in_its_turn(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let [late, early] = [(1, 6), (2, 4)];
    let places =
        |voucher: &Voucher| [late, early].map(|it| joining(&keyed(voucher, it.0, 2, "k"), it.1));
    let (voucher, _) = published_late(&desk, 9, 5, |voucher| places(voucher).into()).await;
    let waits = desk.joined(&voucher, 3, 5).await;
    // He was given another place, which the ledger does not give him twice.
    let rejoined = joining(&claim(&voucher, 1, 1), 8);
    assert_eq!(desk.apply_one(rejoined).await, Verdict::Confirmed);
    let all = whole(&desk.snapshot(voucher.id).await);
    let turns: Vec<_> = all
        .seats
        .iter()
        .map(|it| (it.buyer.get(), it.ticket.get()))
        .collect();
    assert_eq!(turns, [(2, 4), (waits.buyer.get(), 5), (1, 8)]);
    let of_parked = &all.seats[0];
    assert_eq!((of_parked.quantity, of_parked.key.is_some()), (2, true));
    let used: Vec<_> = all
        .keys
        .iter()
        .map(|it| (it.first.order, it.first.first))
        .collect();
    assert_eq!(used, [(of_parked.order, PlaceAtFirst::Waitlisted)]);
    assert_eq!(desk.snapshot(voucher.id).await.sale.free, 9);
}

async fn of_a_parked_place_the_newest_message_decides(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let decisions = |voucher: &Voucher| {
        let [promoted, left] = [1, 2].map(|buyer| keyed(voucher, buyer, 1, "k"));
        let again = [3, 4].map(|ticket| joining(&claim(voucher, 3, 1), ticket));
        let mut decisions = vec![joining(&promoted, 1), joining(&left, 2)];
        decisions.push(Decision::Promoted(promoted));
        let reason = LeftReason::Withdrawn;
        decisions.push(Decision::Left {
            claim: left,
            reason,
        });
        decisions.extend(again);
        decisions
    };
    let (voucher, messages) = published_late(&desk, 9, 5, decisions).await;
    let all = whole(&desk.snapshot(voucher.id).await);
    let promoted = messages[2].claim.clone().expect("a promotion");
    assert_eq!(all.holders, [holder(&promoted, true)]);
    let turns: Vec<_> = all
        .seats
        .iter()
        .map(|it| (it.buyer.get(), it.ticket.get()))
        .collect();
    assert_eq!(turns, [(3, 4)], "of two places the one that was given last");
    let told: Vec<_> = all
        .keys
        .iter()
        .map(|it| (it.buyer.get(), it.first.first))
        .collect();
    let waitlisted = PlaceAtFirst::Waitlisted;
    assert_eq!(told.len(), 2);
    assert!(told.contains(&(1, waitlisted)) && told.contains(&(2, waitlisted)));
}

async fn a_parked_place_is_none_once_its_order_has_come_to_something(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let claims = Cell::new(None);
    let places = |voucher: &Voucher| {
        let all = [1, 2, 3, 4].map(|buyer| claim(voucher, buyer, 1));
        claims.set(Some(all.clone()));
        (1..)
            .zip(&all)
            .map(|(turn, it)| joining(it, turn))
            .collect()
    };
    let (voucher, messages) = published_late(&desk, 9, 5, places).await;
    let [left, promoted, discarded, waits] = claims.take().expect("claims");
    let reason = LeftReason::Withdrawn;
    let left = Decision::Left {
        claim: left,
        reason,
    };
    for decision in [left, Decision::Promoted(promoted.clone())] {
        assert_eq!(desk.apply_one(decision).await, Verdict::Confirmed);
    }
    assert_eq!(discard(&desk, &messages[2]).await, SETTLED);
    assert_eq!(desk.status(&discarded).await, OrderStatus::Rejected);
    let all = whole(&desk.snapshot(voucher.id).await);
    let held: Vec<_> = all.holders.iter().map(|it| it.held.order).collect();
    assert_eq!(held, [promoted.order]);
    let seated = |all: &LoadChunk| all.seats.iter().map(|it| it.order).collect::<Vec<_>>();
    assert_eq!(seated(&all), [waits.order]);
    assert_eq!(replay(&desk, &messages[3]).await, SETTLED);
    let all_now = whole(&desk.snapshot(voucher.id).await);
    assert_eq!(
        all_now.seats, all.seats,
        "the same place, of an order by now"
    );
}

/// The first one first: what a buyer at his limit is answered with.
async fn a_snapshot_keeps_a_buyers_orders_in_order(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(20, 5).await;
    let mut orders = Vec::new();
    for _ in 0..4 {
        // Ids as the generators issue them: they rise.
        let id = OrderId::new(1_000 + orders.len() as u64);
        let claim = Claim {
            order: id,
            ..claim(&voucher, 1, 1)
        };
        desk.apply_one(Decision::Granted(claim)).await;
        orders.push(id);
    }
    let snapshot = desk.snapshot(voucher.id).await;
    let holders = snapshot.chunks.iter().flat_map(|chunk| &chunk.holders);
    let found: Vec<OrderId> = holders.map(|holder| holder.held.order).collect();
    assert_eq!(found, orders);
}

async fn a_large_snapshot_comes_in_chunks(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let many = LOAD_CHUNK_MAX + 300;
    let voucher = desk.voucher(u32::try_from(many).unwrap(), 1).await;
    let claims: Vec<Claim> = (0..many as u64)
        .map(|buyer| claim(&voucher, 1 + buyer, 1))
        .collect();
    for part in claims.chunks(650) {
        let grants = part.iter().cloned().map(Decision::Granted);
        desk.apply(grants.collect()).await;
    }
    let snapshot = desk.snapshot(voucher.id).await;
    for chunk in &snapshot.chunks {
        let largest = chunk
            .holders
            .len()
            .max(chunk.seats.len())
            .max(chunk.keys.len());
        assert!(largest <= LOAD_CHUNK_MAX, "{largest} at once");
    }
    let mut expected: Vec<Holder> = claims.iter().map(|claim| holder(claim, false)).collect();
    expected.sort_by_key(|holder| holder.held.order);
    assert_eq!(whole(&snapshot).holders, expected);
    assert_eq!(snapshot.sale.free, 0);
}

/// Free units, holders and position must fit together while others write.
async fn a_snapshot_is_of_one_moment(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(40, 1).await;
    let write = async {
        for buyer in 1..=40 {
            desk.granted(&voucher, buyer, 1).await;
        }
    };
    let read = async {
        for _ in 0..25 {
            let snapshot = desk.snapshot(voucher.id).await;
            let held = whole(&snapshot).holders.len() as u64;
            assert_eq!(u64::from(snapshot.sale.free) + held, 40);
            assert_eq!(snapshot.sale.applied.get(), held);
            let version = GateVersion::default();
            let tally = desk
                .ports
                .ledger
                .tally(voucher.id, version)
                .await
                .unwrap()
                .unwrap();
            assert_eq!(tally.stock + tally.awaiting_payment, 40);
            assert_eq!(tally.head.applied.get(), u64::from(tally.awaiting_payment));
            tokio::task::yield_now().await;
        }
    };
    futures::join!(write, read);
}

/// All chunks of a snapshot together.
fn whole(snapshot: &SaleSnapshot) -> LoadChunk {
    let mut all = LoadChunk::default();
    for chunk in &snapshot.chunks {
        all.holders.extend_from_slice(&chunk.holders);
        all.seats.extend_from_slice(&chunk.seats);
        all.keys.extend_from_slice(&chunk.keys);
    }
    all.holders.sort_by_key(|holder| holder.held.order);
    all.seats.sort_by_key(|seat| seat.ticket);
    all.keys.sort_by_key(|used| used.first.order);
    all
}

fn holder(claim: &Claim, promoted: bool) -> Holder {
    let held = Held {
        order: claim.order,
        quantity: claim.quantity,
        promoted,
    };
    let buyer = claim.buyer;
    Holder { buyer, held }
}

fn key_use(claim: &Claim, first: PlaceAtFirst) -> KeyUse {
    KeyUse {
        buyer: claim.buyer,
        key: claim.key.clone().expect("a key"),
        first: Remembered {
            order: claim.order,
            quantity: claim.quantity,
            first,
        },
    }
}
