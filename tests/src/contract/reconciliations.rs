//! `Reconciliations`: sets of orders to compare.

use seckill_application::ports::{LedgerOrder, Verdict};
use seckill_domain::{
    Claim, Decision, GateChange, GateVersion, LeftReason, OrderId, OrderStatus, Seat, Stage,
    Ticket, Voucher,
};

use super::desk::{Desk, claim};
use super::stall::new_order;
use super::{LedgerHarness, promises};

promises! { reconciliations over dyn LedgerHarness:
    open_orders_come_by_rising_id_page_by_page,
    only_orders_that_have_units_or_wait_are_open,
    a_waiting_order_is_told_with_its_turn,
    orders_are_told_whatever_their_stage,
    a_parked_order_is_told_as_queued,
    a_parked_claim_to_anothers_order_is_told_with_it,
    a_release_is_under_way_until_the_gate_has_it,
    releases_are_told_from_other_changes,
}

/// Without keys, which nobody compares, and without turns.
fn bare(orders: Vec<LedgerOrder>) -> Vec<LedgerOrder> {
    let bare = orders.into_iter().map(|mut order| {
        order.claim.key = None;
        order.ticket = None;
        order
    });
    bare.collect()
}

async fn open(desk: &Desk<'_>, voucher: &Voucher, after: OrderId, max: usize) -> Vec<LedgerOrder> {
    let books = &desk.ports.reconciliations;
    let open = books.open_orders(voucher.id, after, max).await.unwrap();
    bare(open)
}

async fn orders(desk: &Desk<'_>, ids: &[OrderId]) -> Vec<LedgerOrder> {
    let orders = desk.ports.reconciliations.orders(ids).await.unwrap();
    let mut orders = bare(orders);
    orders.sort_by_key(|order| order.claim.order);
    orders
}

fn seen(claim: &Claim, status: OrderStatus) -> LedgerOrder {
    LedgerOrder {
        claim: claim.clone(),
        status,
        ticket: None,
        contested: None,
    }
}

const START: OrderId = OrderId::new(0);

/// A grant that is parked, because the order belongs to a draft.
pub(super) async fn parked(desk: &Desk<'_>) -> Claim {
    let draft = desk.draft(5, super::desk::terms(2)).await;
    let claim = claim(&draft, 1, 2);
    let verdict = desk.apply_one(Decision::Granted(claim.clone())).await;
    assert!(matches!(verdict, Verdict::Parked(_)));
    claim
}

pub(super) async fn being_released(
    desk: &Desk<'_>,
    voucher: &Voucher,
    ids: &[OrderId],
) -> Vec<OrderId> {
    let books = &desk.ports.reconciliations;
    let released = books.being_released(voucher.id, ids).await;
    let mut released = released.unwrap();
    released.sort();
    released
}

async fn open_orders_come_by_rising_id_page_by_page(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let [voucher, other] = [desk.voucher(9, 3).await, desk.voucher(9, 3).await];
    let mut expected = Vec::new();
    for buyer in 1..=5 {
        let claim = desk.granted(&voucher, buyer, 1).await;
        expected.push(seen(&claim, OrderStatus::PendingPayment));
        desk.granted(&other, buyer, 1).await;
    }
    expected.sort_by_key(|order| order.claim.order);
    assert_eq!(open(&desk, &voucher, START, 1_000).await, expected);
    assert_eq!(open(&desk, &voucher, START, 2).await, expected[..2]);
    let after = expected[1].claim.order;
    assert_eq!(open(&desk, &voucher, after, 2).await, expected[2..4]);
    let after = expected[4].claim.order;
    assert_eq!(open(&desk, &voucher, after, 2).await, []);
}

async fn only_orders_that_have_units_or_wait_are_open(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 3).await;
    let mut claims = Vec::new();
    for buyer in 1..=4 {
        claims.push(desk.granted(&voucher, buyer, 1).await);
    }
    let waits = desk.joined(&voucher, 5, 1).await;
    let claim_of_left = desk.joined(&voucher, 7, 2).await;
    let left = Decision::Left {
        claim: claim_of_left,
        reason: LeftReason::Withdrawn,
    };
    assert_eq!(desk.apply_one(left).await, Verdict::Confirmed);
    desk.apply_one(Decision::Lost(claim(&voucher, 6, 1))).await;
    desk.pay(&claims[0]).await;
    desk.cancel(&claims[1]).await;
    desk.turn(&claims[2], Stage::Expired).await;
    let mut expected = [
        seen(&claims[0], OrderStatus::Paid),
        seen(&claims[3], OrderStatus::PendingPayment),
        seen(&waits, OrderStatus::Waiting),
    ];
    expected.sort_by_key(|order| order.claim.order);
    assert_eq!(open(&desk, &voucher, START, 100).await, expected);
}

async fn a_waiting_order_is_told_with_its_turn(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 2).await;
    let books = &desk.ports.reconciliations;
    let granted = desk.granted(&voucher, 1, 1).await;
    let one = desk.joined(&voucher, 2, 70).await;
    let other = desk.joined(&voucher, 3, 71).await;
    let mut found = books.open_orders(voucher.id, START, 10).await.unwrap();
    let ids = [granted.order, one.order, other.order];
    let mut again = books.orders(&ids).await.unwrap();
    for list in [&mut found, &mut again] {
        list.sort_by_key(|it| ids.iter().position(|id| *id == it.claim.order));
    }
    assert_eq!(found, again);
    let tickets = found.iter().map(|it| it.ticket.map(Ticket::get));
    assert_eq!(tickets.collect::<Vec<_>>(), [None, Some(70), Some(71)]);
    let seat = Seat {
        ticket: Ticket::new(70),
        order: one.order,
        buyer: one.buyer,
        quantity: 1,
        key: None,
    };
    assert!(found[1].waits_as(&seat));
    let ticket = Ticket::new(71);
    let others = [
        Seat {
            ticket,
            ..seat.clone()
        },
        Seat {
            quantity: 2,
            ..seat.clone()
        },
        Seat {
            buyer: other.buyer,
            ..seat
        },
    ];
    assert!(others.iter().all(|seat| !found[1].waits_as(seat)));
}

async fn orders_are_told_whatever_their_stage(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let [voucher, other] = [desk.voucher(9, 3).await, desk.voucher(9, 3).await];
    let [paid, cancelled] = [
        desk.granted(&voucher, 1, 2).await,
        desk.granted(&other, 2, 1).await,
    ];
    let waiting = desk.joined(&voucher, 3, 1).await;
    let lost = claim(&voucher, 4, 1);
    desk.apply_one(Decision::Lost(lost.clone())).await;
    desk.pay(&paid).await;
    desk.cancel(&cancelled).await;
    let mut expected = [
        seen(&paid, OrderStatus::Paid),
        seen(&cancelled, OrderStatus::Cancelled),
        seen(&waiting, OrderStatus::Waiting),
        seen(&lost, OrderStatus::Rejected),
    ];
    expected.sort_by_key(|order| order.claim.order);
    let mut ids: Vec<OrderId> = expected.iter().map(|it| it.claim.order).collect();
    ids.push(new_order());
    assert_eq!(orders(&desk, &ids).await, expected);
    assert_eq!(orders(&desk, &[]).await, []);
}

async fn a_parked_order_is_told_as_queued(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let claim = parked(&desk).await;
    let queued = seen(&claim, OrderStatus::Queued);
    assert_eq!(orders(&desk, &[claim.order]).await, [queued]);
    let ledger = &desk.ports.ledger;
    let order = ledger.parked_order(claim.order).await.unwrap();
    assert_eq!(order.expect("it is parked").claim, claim);
    assert_eq!(ledger.parked_order(new_order()).await.unwrap(), None);
    let list = desk.ports.parked.list(true, None, 1).await.unwrap();
    let id = list.items[0].id;
    desk.ports.parked.discard(id, "seen").await.unwrap();
    assert_eq!(ledger.parked_order(claim.order).await.unwrap(), None);
    let found = orders(&desk, &[claim.order]).await;
    assert!(found.iter().all(|it| it.status == OrderStatus::Rejected));
}

async fn a_parked_claim_to_anothers_order_is_told_with_it(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 3).await;
    let mine = desk.granted(&voucher, 1, 1).await;
    let anothers = Claim {
        order: mine.order,
        ..claim(&voucher, 2, 2)
    };
    let sound = seen(&mine, OrderStatus::PendingPayment);
    assert_eq!(
        orders(&desk, &[mine.order]).await,
        std::slice::from_ref(&sound)
    );
    let verdict = desk.apply_one(Decision::Granted(anothers.clone())).await;
    assert!(matches!(verdict, Verdict::Parked(_)), "{verdict:?}");
    let contested = sound.contested_by(Some(anothers.clone()));
    assert_eq!(
        orders(&desk, &[mine.order]).await,
        std::slice::from_ref(&contested)
    );
    assert!(contested.is_contested_by(&anothers) && !contested.is_of(&anothers));
    assert!(contested.is_of(&mine) && !contested.is_contested_by(&mine));
}

async fn a_release_is_under_way_until_the_gate_has_it(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 1).await;
    let mut claims = Vec::new();
    for buyer in 1..=3 {
        claims.push(desk.granted(&voucher, buyer, 1).await);
    }
    let mut ids: Vec<OrderId> = claims.iter().map(|claim| claim.order).collect();
    let first = desk.cancel(&claims[0]).await;
    desk.cancel(&claims[1]).await;
    let mut cancelled = ids[..2].to_vec();
    cancelled.sort();
    ids.push(new_order());
    assert_eq!(being_released(&desk, &voucher, &ids).await, cancelled);
    assert_eq!(being_released(&desk, &voucher, &ids[1..]).await, [ids[1]]);
    desk.ports.updates.forget(voucher.id, first).await.unwrap();
    assert_eq!(being_released(&desk, &voucher, &ids).await, [ids[1]]);
}

async fn releases_are_told_from_other_changes(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let [voucher, other] = [desk.voucher(9, 1).await, desk.voucher(9, 1).await];
    let [held, gone, passed] = [1, 2, 3].map(|buyer| claim(&voucher, buyer, 1));
    let release = GateChange::Release {
        order: gone.order,
        buyer: gone.buyer,
        quantity: 1,
    };
    let changes = [
        GateChange::RestoreHolder(held.clone()),
        GateChange::AppendAgain(held.clone()),
        GateChange::AddUnits { units: 3 },
        GateChange::SetTerms(voucher.sale_terms()),
        release,
        GateChange::DropPlace {
            order: passed.order,
            buyer: passed.buyer,
        },
    ];
    let mut unit = desk.begin().await;
    unit.push_update(voucher.id, &changes).await.unwrap();
    unit.commit().await.unwrap();
    let ids = [held.order, gone.order, passed.order];
    let mut ended = vec![gone.order, passed.order];
    ended.sort();
    assert_eq!(being_released(&desk, &voucher, &ids).await, ended);
    for order in ended {
        assert_eq!(being_released(&desk, &voucher, &[order]).await, [order]);
    }
    assert_eq!(being_released(&desk, &other, &ids).await, []);
    let start = GateVersion::default();
    let updates = desk.ports.updates.after(voucher.id, start, 10).await;
    assert_eq!(updates.unwrap()[0].changes, changes, "kept as they are");
}
