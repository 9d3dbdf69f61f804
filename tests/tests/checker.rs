//! The checker, tested: a sound history is sound, and each planted wrong is found, by its name.

use std::time::Duration;

use seckill_domain::invariants::{InvariantId, Tally};
use seckill_domain::{BuyerId, OrderId, OrderStatus, VoucherId};
use seckill_tests::harness::{
    Asked, Event, Facts, HeldFacts, OrderFacts, Purchase, Told, VoucherFacts, judge,
};

const VOUCHER: VoucherId = VoucherId::new(7);

fn order(number: u64) -> OrderId {
    OrderId::new(1_000 + number)
}

fn buyer(number: u64) -> BuyerId {
    BuyerId::new(number)
}

fn event(at: u64, buyer: BuyerId, asked: Asked, told: Told) -> Event {
    Event {
        begun: Duration::from_millis(at * 10),
        ended: Duration::from_millis(at * 10 + 5),
        buyer,
        asked,
        told,
    }
}

fn bought(at: u64, number: u64, answer: Purchase) -> Event {
    let asked = Asked::Purchase {
        voucher: VOUCHER,
        quantity: 1,
        key: None,
    };
    event(at, buyer(number), asked, Told::Purchase(answer))
}

fn granted(number: u64) -> Purchase {
    Purchase::Granted {
        order: order(number),
        status: OrderStatus::Queued,
    }
}

fn waitlisted(number: u64, position: u64) -> Purchase {
    Purchase::Waitlisted {
        order: order(number),
        position,
        joined: true,
    }
}

fn stored(number: u64, status: OrderStatus) -> OrderFacts {
    OrderFacts {
        voucher: VOUCHER,
        buyer: buyer(number),
        quantity: 1,
        status,
        reason: None,
        shown: true,
        ticket: None,
        served_at: None,
    }
}

/// Three units, three holders of whom one has paid, and two who wait; one waited and was served.
fn sound() -> (Vec<Event>, Facts) {
    let history = vec![
        bought(1, 1, granted(1)),
        bought(2, 2, granted(2)),
        bought(3, 3, granted(3)),
        bought(4, 4, waitlisted(4, 1)),
        bought(5, 5, waitlisted(5, 2)),
        bought(6, 6, waitlisted(6, 3)),
        event(
            7,
            buyer(1),
            Asked::Pay {
                order: order(1),
                payment: "p".to_owned(),
            },
            Told::Order(OrderStatus::Paid),
        ),
        event(
            8,
            buyer(2),
            Asked::Cancel { order: order(2) },
            Told::Order(OrderStatus::Cancelled),
        ),
    ];
    let mut facts = Facts::default();
    let stages = [
        (1, OrderStatus::Paid),
        (2, OrderStatus::Cancelled),
        (3, OrderStatus::PendingPayment),
        (4, OrderStatus::PendingPayment),
        (5, OrderStatus::Waiting),
        (6, OrderStatus::Waiting),
    ];
    for (number, status) in stages {
        facts.orders.insert(order(number), stored(number, status));
    }
    for (number, served_at) in [(4, Some(20)), (5, None), (6, None)] {
        let seat = facts.orders.get_mut(&order(number)).unwrap();
        (seat.ticket, seat.served_at) = (Some(number), served_at);
    }
    let voucher = VoucherFacts {
        limit: 1,
        tally: Tally {
            total: 3,
            awaiting_payment: 2,
            paid: 1,
            ..Tally::default()
        },
        holds: true,
        held: Some(HeldFacts {
            total: 3,
            stock: 0,
            parked: 0,
            units: [1, 3, 4].map(|number| (buyer(number), 1)).into(),
        }),
    };
    facts.vouchers.insert(VOUCHER, voucher);
    (history, facts)
}

/// The promises that the checker finds broken after this was done to a sound run.
fn broken_by(plant: impl FnOnce(&mut Vec<Event>, &mut Facts)) -> Vec<InvariantId> {
    let (mut history, mut facts) = sound();
    plant(&mut history, &mut facts);
    let verdict = judge(&history, &facts);
    let mut broken: Vec<InvariantId> = verdict.violations.iter().map(|v| v.promise).collect();
    broken.dedup();
    broken
}

fn voucher(facts: &mut Facts) -> &mut VoucherFacts {
    facts.vouchers.get_mut(&VOUCHER).unwrap()
}

fn stage(facts: &mut Facts, number: u64) -> &mut OrderStatus {
    &mut facts.orders.get_mut(&order(number)).unwrap().status
}

#[test]
fn a_sound_run_is_sound() {
    assert_eq!(broken_by(|_, _| {}), []);
    // Also without a ledger to look into.
    let without = broken_by(|_, facts| voucher(facts).held = None);
    assert_eq!(without, []);
}

#[test]
fn a_lost_order_is_found() {
    let broken = broken_by(|_, facts| {
        facts.orders.remove(&order(3));
    });
    assert!(broken.contains(&InvariantId::NoSilentLoss), "{broken:?}");
    let hidden = broken_by(|_, facts| facts.orders.get_mut(&order(3)).unwrap().shown = false);
    assert_eq!(hidden, [InvariantId::NoSilentLoss]);
    let stuck = broken_by(|_, facts| *stage(facts, 3) = OrderStatus::Queued);
    assert_eq!(stuck, [InvariantId::NoSilentLoss]);
}

#[test]
fn a_rejection_must_say_why() {
    let refuse = |reason: Option<&str>| {
        let reason = reason.map(ToOwned::to_owned);
        broken_by(move |_, facts| {
            *stage(facts, 3) = OrderStatus::Rejected;
            facts.orders.get_mut(&order(3)).unwrap().reason = reason;
            let voucher = voucher(facts);
            voucher.tally.awaiting_payment = 1;
            voucher.tally.free = 1;
            let held = voucher.held.as_mut().unwrap();
            held.stock = 1;
            held.units.remove(&buyer(3));
        })
    };
    assert_eq!(refuse(Some("no_stock")), []);
    assert_eq!(refuse(None), [InvariantId::NoSilentLoss]);
}

#[test]
fn a_doubled_order_is_found() {
    // Twice in the ledger, under two numbers.
    let broken = broken_by(|_, facts| {
        facts
            .orders
            .insert(order(9), stored(3, OrderStatus::PendingPayment));
    });
    assert!(broken.contains(&InvariantId::Limit), "{broken:?}");
    assert!(broken.contains(&InvariantId::NeverOversold), "{broken:?}");
    // Told to two buyers.
    let broken = broken_by(|history, _| history.push(bought(9, 8, granted(3))));
    assert!(broken.contains(&InvariantId::Once), "{broken:?}");
}

#[test]
fn a_swapped_order_is_found() {
    let broken = broken_by(|_, facts| {
        facts.orders.get_mut(&order(1)).unwrap().buyer = buyer(3);
        facts.orders.get_mut(&order(3)).unwrap().buyer = buyer(1);
    });
    assert_eq!(broken, [InvariantId::NoSilentLoss]);
}

#[test]
fn units_out_of_nowhere_are_found() {
    let phantom = broken_by(|_, facts| voucher(facts).tally.free = 1);
    assert_eq!(phantom, [InvariantId::Conservation]);
    let black_hole = broken_by(|_, facts| voucher(facts).tally.awaiting_payment = 1);
    assert_eq!(black_hole, [InvariantId::Conservation]);
    let flying = broken_by(|_, facts| {
        let tally = &mut voucher(facts).tally;
        (tally.total, tally.in_flight) = (4, 1);
        voucher(facts).held.as_mut().unwrap().total = 4;
        voucher(facts).held.as_mut().unwrap().stock = 1;
    });
    assert_eq!(flying, [InvariantId::Drains]);
    let oversold = broken_by(|_, facts| {
        let tally = &mut voucher(facts).tally;
        (tally.total, tally.free) = (2, -1);
    });
    assert!(
        oversold.contains(&InvariantId::NeverOversold),
        "{oversold:?}"
    );
}

#[test]
fn units_returned_twice_are_found() {
    let twice = broken_by(|_, facts| voucher(facts).held.as_mut().unwrap().stock = 1);
    assert_eq!(twice, [InvariantId::Once]);
    let still_counted = broken_by(|_, facts| {
        voucher(facts)
            .held
            .as_mut()
            .unwrap()
            .units
            .insert(buyer(2), 1);
    });
    assert_eq!(still_counted, [InvariantId::Once]);
}

#[test]
fn an_end_that_did_not_stay_is_found() {
    let unpaid = broken_by(|_, facts| *stage(facts, 1) = OrderStatus::Expired);
    assert!(unpaid.contains(&InvariantId::PaidXorExpired), "{unpaid:?}");
    let revived = broken_by(|_, facts| *stage(facts, 2) = OrderStatus::Paid);
    assert!(
        revived.contains(&InvariantId::PaidXorExpired),
        "{revived:?}"
    );
    let refunded = broken_by(|history, facts| {
        history.push(event(
            9,
            buyer(1),
            Asked::Look { order: order(1) },
            Told::Order(OrderStatus::Refunded),
        ));
        *stage(facts, 1) = OrderStatus::Refunded;
        let voucher = voucher(facts);
        (voucher.tally.paid, voucher.tally.free) = (0, 1);
        let held = voucher.held.as_mut().unwrap();
        held.stock = 1;
        held.units.remove(&buyer(1));
    });
    assert_eq!(refunded, []);
}

#[test]
fn a_queue_jump_is_found() {
    // The second was served, the first waits on: by what they were told, and by their tickets.
    let overtaken = broken_by(|_, facts| {
        *stage(facts, 4) = OrderStatus::Waiting;
        *stage(facts, 5) = OrderStatus::PendingPayment;
        let held = voucher(facts).held.as_mut().unwrap();
        held.units.remove(&buyer(4));
        held.units.insert(buyer(5), 1);
    });
    assert_eq!(overtaken, [InvariantId::FairWaitlist]);
    let wrong_order = broken_by(|_, facts| {
        let late = facts.orders.get_mut(&order(5)).unwrap();
        (late.status, late.served_at) = (OrderStatus::Expired, Some(10));
    });
    assert_eq!(wrong_order, [InvariantId::FairWaitlist]);
    // Somebody new is served while others wait.
    let pushed_in = broken_by(|history, facts| {
        history.push(bought(9, 8, granted(8)));
        facts
            .orders
            .insert(order(8), stored(8, OrderStatus::Cancelled));
    });
    assert_eq!(pushed_in, [InvariantId::FairWaitlist]);
    // He had asked before they came, and the answer was lost.
    let asked_before = broken_by(|history, facts| {
        let mut lost = bought(0, 8, granted(8));
        lost.told = Told::Nothing;
        history.insert(0, lost);
        history.push(bought(9, 8, granted(8)));
        facts
            .orders
            .insert(order(8), stored(8, OrderStatus::Cancelled));
    });
    assert_eq!(asked_before, []);
}

#[test]
fn two_orders_for_one_request_are_found() {
    let keyed = |at, number, answer| {
        let mut event = bought(at, number, answer);
        if let Asked::Purchase { key, .. } = &mut event.asked {
            *key = Some("once".to_owned());
        }
        event
    };
    let by_key = broken_by(|history, facts| {
        history.push(keyed(9, 8, granted(8)));
        history.push(keyed(10, 8, granted(9)));
        for number in [8, 9] {
            let mut order_facts = stored(8, OrderStatus::Cancelled);
            order_facts.buyer = buyer(8);
            facts.orders.insert(order(number), order_facts);
        }
        // Nobody waits, so that this is all there is to find.
        *stage(facts, 5) = OrderStatus::Withdrawn;
        *stage(facts, 6) = OrderStatus::Withdrawn;
    });
    assert_eq!(by_key, [InvariantId::Idempotent]);
    let at_limit = broken_by(|history, facts| {
        history.push(bought(9, 3, granted(8)));
        facts
            .orders
            .insert(order(8), stored(3, OrderStatus::PendingPayment));
    });
    assert!(at_limit.contains(&InvariantId::Idempotent), "{at_limit:?}");
}
