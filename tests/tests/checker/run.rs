//! A sound run, and what is planted in it.

use std::time::Duration;

use seckill_domain::invariants::{InvariantId, Tally};
use seckill_domain::{BuyerId, OrderId, OrderStatus, VoucherId};
use seckill_tests::harness::{
    Asked, Event, Facts, GateFacts, HeldFacts, MoneyFacts, OrderFacts, Purchase, RowFacts, Rule,
    Told, Violation, VoucherFacts, judge, payment_id,
};

pub(crate) const VOUCHER: VoucherId = VoucherId::new(7);
/// When payment windows end.
pub(crate) const DUE_MS: i64 = 1_900_000_000_000;

pub(crate) fn order(number: u64) -> OrderId {
    OrderId::new(1_000 + number)
}

pub(crate) fn buyer(number: u64) -> BuyerId {
    BuyerId::new(number)
}

pub(crate) fn event(at: u64, buyer: BuyerId, asked: Asked, told: Told) -> Event {
    Event {
        begun: Duration::from_millis(at * 10),
        ended: Duration::from_millis(at * 10 + 5),
        buyer,
        asked,
        told,
    }
}

pub(crate) fn bought(at: u64, number: u64, answer: Purchase) -> Event {
    let asked = Asked::Purchase {
        voucher: VOUCHER,
        quantity: 1,
        key: None,
    };
    event(at, buyer(number), asked, Told::Purchase(answer))
}

pub(crate) fn granted(number: u64) -> Purchase {
    Purchase::Granted {
        order: order(number),
        status: OrderStatus::Queued,
    }
}

pub(crate) fn waitlisted(number: u64, position: u64) -> Purchase {
    Purchase::Waitlisted {
        order: order(number),
        position,
        joined: true,
    }
}

pub(crate) fn stored(number: u64, status: OrderStatus) -> OrderFacts {
    OrderFacts {
        voucher: VOUCHER,
        buyer: buyer(number),
        quantity: 1,
        status,
        reason: None,
        shown: true,
        ticket: None,
        served_at: None,
        row: Some(RowFacts {
            due_ms: Some(DUE_MS),
            moved_ms: DUE_MS - 1_000,
            ..RowFacts::default()
        }),
    }
}

/// Three units, three holders of whom one has paid, and two who wait; one waited and was served.
pub(crate) fn sound() -> (Vec<Event>, Facts) {
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
    let paid = facts.orders.get_mut(&order(1)).unwrap();
    paid.row.as_mut().unwrap().payment = Some(payment_id(order(1), "p"));
    let payment = (order(1), "paid".to_owned());
    facts.money = Some(MoneyFacts {
        payments: [(payment_id(order(1), "p"), payment)].into(),
        ..MoneyFacts::default()
    });
    facts.gate_asked = true;
    let holders = [1, 3, 4].map(|number| (buyer(number), [(order(number), 1)].into()));
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
            ..HeldFacts::default()
        }),
        gate: Some(GateFacts {
            holders: holders.into(),
            waiters: [5, 6].map(|number| (buyer(number), order(number))).into(),
            ..GateFacts::default()
        }),
    };
    facts.vouchers.insert(VOUCHER, voucher);
    (history, facts)
}

/// The promises that the checker finds broken after this was done to a sound run.
pub(crate) fn broken_behind(plant: impl FnOnce(&mut Vec<Event>, &mut Facts)) -> Vec<InvariantId> {
    let (mut history, mut facts) = sound();
    plant(&mut history, &mut facts);
    let verdict = judge(&history, &facts);
    let promise = |found: &Violation| match found.broken {
        Rule::Promise(promise) => promise,
        Rule::Contract => panic!("{found}"),
    };
    let mut broken: Vec<InvariantId> = verdict.violations.iter().map(promise).collect();
    broken.dedup();
    broken
}

/// The same without a look behind the gate, and at the money: what is planted in orders alone shows
/// there as well.
pub(crate) fn broken_by(plant: impl FnOnce(&mut Vec<Event>, &mut Facts)) -> Vec<InvariantId> {
    broken_behind(|history, facts| {
        (facts.gate_asked, facts.money) = (false, None);
        voucher(facts).gate = None;
        plant(history, facts);
    })
}

pub(crate) fn voucher(facts: &mut Facts) -> &mut VoucherFacts {
    facts.vouchers.get_mut(&VOUCHER).unwrap()
}

pub(crate) fn stage(facts: &mut Facts, number: u64) -> &mut OrderStatus {
    &mut facts.orders.get_mut(&order(number)).unwrap().status
}

pub(crate) fn held(facts: &mut Facts) -> &mut HeldFacts {
    voucher(facts).held.as_mut().unwrap()
}

pub(crate) fn gate(facts: &mut Facts) -> &mut GateFacts {
    voucher(facts).gate.as_mut().unwrap()
}
