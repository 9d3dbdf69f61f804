//! What can be read of orders, balances and whole sales.

use seckill_application::ports::{Holder, KeyUse, LOAD_CHUNK_MAX, LoadChunk, Page, SaleSnapshot};
use seckill_domain::{
    BuyerId, Claim, Decision, GateVersion, Held, IdempotencyKey, LeftReason, Order, OrderId,
    OrderStatus, PlaceAtFirst, Remembered, Seat, Stage, Ticket,
};

use super::desk::{Desk, claim, joining, keyed};
use super::stall::new_order;
use super::{LedgerHarness, promises};

promises! { ledger_reads over dyn LedgerHarness:
    an_unknown_order_is_not_there,
    stages_are_of_those_that_are_there,
    a_buyers_orders_come_newest_id_first_in_pages,
    orders_on_a_voucher_are_the_live_the_waiting_and_the_one_of_the_key,
    a_position_is_counted_by_turns,
    a_balance_says_where_every_unit_is,
    a_balance_counts_what_the_gate_has_not_followed,
    a_snapshot_has_everything_the_gate_needs,
    a_snapshot_of_an_empty_sale_is_empty,
    a_snapshot_remembers_keys_of_orders_that_ended,
    a_snapshot_says_who_was_promoted,
    a_snapshot_keeps_a_buyers_orders_in_order,
    a_large_snapshot_comes_in_chunks,
    a_snapshot_is_of_one_moment,
}

async fn an_unknown_order_is_not_there(harness: &dyn LedgerHarness) {
    let ledger = &harness.ledger().ledger;
    assert_eq!(ledger.order(new_order()).await.unwrap(), None);
    assert_eq!(ledger.waiting_position(new_order()).await.unwrap(), None);
    let nobody = ledger.orders_of(BuyerId::new(1), None, 10).await.unwrap();
    let empty = Page {
        items: Vec::<Order>::new(),
        next: None,
    };
    assert_eq!(nobody, empty);
}

async fn stages_are_of_those_that_are_there(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let held = desk.granted(&voucher, 1, 1).await;
    let waits = desk.joined(&voucher, 2, 2).await;
    let gone = desk.granted(&voucher, 3, 1).await;
    desk.cancel(&gone).await;
    let mut asked: Vec<OrderId> = (0..500).map(|_| new_order()).collect();
    asked.extend([held.order, waits.order, gone.order]);
    let mut stages = desk.ports.ledger.stages(&asked).await.unwrap();
    stages.sort_unstable();
    let mut expected = vec![
        (held.order, OrderStatus::PendingPayment),
        (waits.order, OrderStatus::Waiting),
        (gone.order, OrderStatus::Cancelled),
    ];
    expected.sort_unstable();
    assert_eq!(stages, expected);
    assert_eq!(desk.ports.ledger.stages(&[]).await.unwrap(), []);
}

async fn a_buyers_orders_come_newest_id_first_in_pages(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let [one, two] = [desk.voucher(9, 9).await, desk.voucher(9, 9).await];
    let mut orders = Vec::new();
    for voucher in [&one, &two, &one, &two, &one] {
        let claim = desk.granted(voucher, 42, 1).await;
        orders.push(desk.order(claim.order).await);
    }
    desk.granted(&one, 43, 1).await;
    orders.sort_by_key(|order| std::cmp::Reverse(order.id));
    let page = async |before, limit| {
        let buyer = BuyerId::new(42);
        desk.ports
            .ledger
            .orders_of(buyer, before, limit)
            .await
            .unwrap()
    };
    let part = |range: std::ops::Range<usize>, next: Option<usize>| Page {
        items: orders[range].to_vec(),
        next: next.map(|at| orders[at].id.get()),
    };
    assert_eq!(page(None, 2).await, part(0..2, Some(1)));
    assert_eq!(page(Some(orders[1].id), 2).await, part(2..4, Some(3)));
    assert_eq!(page(Some(orders[3].id), 2).await, part(4..5, None));
    assert_eq!(page(None, 100).await, part(0..5, None));
}

async fn orders_on_a_voucher_are_the_live_the_waiting_and_the_one_of_the_key(
    harness: &dyn LedgerHarness,
) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 5).await;
    let other = desk.voucher(9, 5).await;
    let cancelled = keyed(&voucher, 1, 1, "k");
    desk.apply_one(Decision::Granted(cancelled.clone())).await;
    desk.cancel(&cancelled).await;
    let pending = desk.granted(&voucher, 1, 1).await;
    let paid = desk.granted(&voucher, 1, 1).await;
    desk.pay(&paid).await;
    let waits = desk.joined(&voucher, 1, 9).await;
    desk.granted(&voucher, 2, 1).await;
    desk.granted(&other, 1, 1).await;
    let on = async |key: Option<&str>| {
        let key: Option<IdempotencyKey> = key.map(|key| key.parse().unwrap());
        let buyer = BuyerId::new(1);
        let orders = desk
            .ports
            .ledger
            .orders_on(voucher.id, buyer, key.as_ref())
            .await;
        orders
            .unwrap()
            .iter()
            .map(|order| order.id)
            .collect::<Vec<_>>()
    };
    let ids = |claims: &[&Claim]| claims.iter().map(|claim| claim.order).collect::<Vec<_>>();
    let mut live = ids(&[&pending, &paid, &waits]);
    let mut found = on(None).await;
    live.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, live);
    let mut found = on(Some("k")).await;
    found.sort_unstable();
    let mut with_key = ids(&[&cancelled, &pending, &paid, &waits]);
    with_key.sort_unstable();
    assert_eq!(found, with_key);
    assert_eq!(on(Some("unused")).await.len(), 3);
}

async fn a_position_is_counted_by_turns(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let [voucher, other] = [desk.voucher(1, 1).await, desk.voucher(1, 1).await];
    let late = desk.joined(&voucher, 900, 30).await;
    let early = desk.joined(&voucher, 10, 4).await;
    let middle = desk.joined(&voucher, 200, 9).await;
    let elsewhere = desk.joined(&other, 1, 1).await;
    let position = async |claim: &Claim| {
        desk.ports
            .ledger
            .waiting_position(claim.order)
            .await
            .unwrap()
    };
    for (claim, expected) in [(&early, 1), (&middle, 2), (&late, 3), (&elsewhere, 1)] {
        assert_eq!(position(claim).await, Some(expected));
    }
    desk.apply_one(Decision::Promoted(early.clone())).await;
    assert_eq!(position(&early).await, None);
    assert_eq!(position(&late).await, Some(2));
}

async fn a_balance_says_where_every_unit_is(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(20, 5).await;
    desk.granted(&voucher, 1, 2).await;
    let paid = desk.granted(&voucher, 2, 3).await;
    desk.pay(&paid).await;
    let gone = desk.granted(&voucher, 3, 4).await;
    desk.cancel(&gone).await;
    desk.joined(&voucher, 4, 9).await;
    let tally = desk.tally(voucher.id).await;
    assert_eq!((tally.total, tally.stock), (20, 15));
    assert_eq!(
        (tally.awaiting_payment, tally.paid, tally.parked),
        (2, 3, 0)
    );
    let head = desk.head(desk.partition_of(voucher.id)).await;
    assert_eq!(tally.head, head);
}

async fn a_balance_counts_what_the_gate_has_not_followed(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(20, 5).await;
    let mut versions = vec![voucher.version];
    for quantity in [2, 3] {
        let claim = desk.granted(&voucher, 1, quantity).await;
        versions.push(desk.cancel(&claim).await);
    }
    let status = seckill_domain::SaleStatus::Paused;
    versions.push(desk.set_status(voucher.id, status, true).await.version);
    for (version, units) in versions.iter().zip([5, 3, 0, 0]) {
        let tally = desk
            .ports
            .ledger
            .tally(voucher.id, *version)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(tally.units_returned_after, units, "after {version}");
        assert_eq!(tally.version, versions[3]);
    }
    // What the gate has is forgotten, and counts no more whatever is asked.
    desk.ports
        .updates
        .forget(voucher.id, versions[1])
        .await
        .unwrap();
    let tally = desk
        .ports
        .ledger
        .tally(voucher.id, versions[1])
        .await
        .unwrap()
        .unwrap();
    assert_eq!(tally.units_returned_after, 3);
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
