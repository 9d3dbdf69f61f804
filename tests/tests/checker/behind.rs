//! What Redis keeps and what the ledger's books say: each planted wrong is found, by its name.

use seckill_domain::OrderStatus;
use seckill_domain::invariants::InvariantId;
use seckill_tests::harness::{Asked, Facts, MoneyFacts, Told, Untold, payment_id};

use crate::run::{bought, broken_behind, buyer, event, gate, granted, held, order, stage, voucher};

#[test]
fn a_sound_run_is_sound_behind_the_gate() {
    assert_eq!(broken_behind(|_, _| {}), []);
    // It is over, and nothing of it is left at the gate.
    let retired = broken_behind(|_, facts| {
        voucher(facts).gate = None;
        held(facts).retired = true;
    });
    assert_eq!(retired, []);
    let gone = broken_behind(|_, facts| voucher(facts).gate = None);
    assert_eq!(gone, [InvariantId::Conservation]);
}

#[test]
fn units_that_the_gate_gives_otherwise_are_found() {
    let free = broken_behind(|_, facts| gate(facts).free = 1);
    assert_eq!(free, [InvariantId::Conservation]);
    let forgotten = broken_behind(|_, facts| {
        gate(facts).holders.remove(&buyer(3));
    });
    assert_eq!(forgotten, [InvariantId::Conservation]);
    let another_order = broken_behind(|_, facts| {
        gate(facts).holders.insert(buyer(3), [(order(9), 1)].into());
    });
    assert_eq!(another_order, [InvariantId::Conservation]);
    let swapped = broken_behind(|_, facts| {
        gate(facts).holders.insert(buyer(1), [(order(3), 1)].into());
        gate(facts).holders.insert(buyer(3), [(order(1), 1)].into());
    });
    assert_eq!(swapped, [InvariantId::Conservation]);
    let beyond = broken_behind(|_, facts| {
        let orders = [(order(3), 1), (order(9), 1)].into();
        gate(facts).holders.insert(buyer(3), orders);
    });
    assert_eq!(beyond, [InvariantId::Conservation, InvariantId::Limit]);
    // It is an administrator's to settle, and its buyer holds it until then.
    let parked = broken_behind(|_, facts| {
        gate(facts).holders.insert(buyer(9), [(order(9), 1)].into());
        held(facts).parked_orders.insert(order(9));
    });
    assert_eq!(parked, []);
}

#[test]
fn a_queue_jump_at_the_gate_is_found() {
    let jumped = broken_behind(|_, facts| gate(facts).waiters.reverse());
    assert_eq!(jumped, [InvariantId::FairWaitlist]);
    let lost = broken_behind(|_, facts| {
        gate(facts).waiters.pop();
    });
    assert_eq!(lost, [InvariantId::FairWaitlist]);
}

#[test]
fn a_key_that_the_gate_forgot_is_found() {
    let used = |at_the_gate: Option<u64>| {
        broken_behind(move |history, facts| {
            let mut keyed = bought(3, 3, granted(3));
            if let Asked::Purchase { key, .. } = &mut keyed.asked {
                *key = Some("once".to_owned());
            }
            history[2] = keyed;
            if let Some(number) = at_the_gate {
                let used = (buyer(3), "once".to_owned());
                gate(facts).uses.insert(used, order(number));
            }
        })
    };
    assert_eq!(used(Some(3)), []);
    assert_eq!(used(Some(4)), [InvariantId::Idempotent]);
    assert_eq!(used(None), [InvariantId::Idempotent]);
    // The answer was lost, and the ledger knows.
    let by_ledger = broken_behind(|_, facts| {
        let bought = facts.orders.get_mut(&order(3)).unwrap();
        bought.row.as_mut().unwrap().key = Some("once".to_owned());
    });
    assert_eq!(by_ledger, [InvariantId::Idempotent]);
}

#[test]
fn what_does_not_drain_is_found() {
    let pending =
        broken_behind(|_, facts| gate(facts).pending.push("granted 7 1 2 1 -".to_owned()));
    assert_eq!(pending, [InvariantId::Drains]);
    for untold in [
        Untold {
            updates: 1,
            ..Untold::default()
        },
        Untold {
            events: 1,
            ..Untold::default()
        },
        Untold {
            refunds: 1,
            ..Untold::default()
        },
    ] {
        let waiting = broken_behind(|_, facts| held(facts).untold = untold);
        assert_eq!(waiting, [InvariantId::Drains], "{untold:?}");
    }
}

fn money(facts: &mut Facts) -> &mut MoneyFacts {
    facts.money.as_mut().unwrap()
}

#[test]
fn money_that_goes_nowhere_is_found() {
    let promise = [InvariantId::PaidXorExpired];
    let (first, second) = (payment_id(order(1), "p"), payment_id(order(1), "q"));
    let silent = broken_behind(|_, facts| money(facts).payments.clear());
    assert_eq!(silent, promise);
    let unwritten = broken_behind(|history, _| {
        let payment = "unheard".to_owned();
        history.push(event(9, buyer(0), Asked::Notice { payment }, Told::Done));
    });
    assert_eq!(unwritten, promise);
    let paid_twice = broken_behind(|_, facts| {
        let paid = (order(1), "paid".to_owned());
        money(facts).payments.insert(second.clone(), paid);
    });
    assert_eq!(paid_twice, promise);
    for goes_back in [false, true] {
        let late = broken_behind(|_, facts| {
            let late = (order(1), "refunded_second".to_owned());
            money(facts).payments.insert(second.clone(), late);
            if goes_back {
                let back = (order(1), "second_payment".to_owned());
                money(facts).refunds.insert(second.clone(), back);
            }
        });
        let expected: &[InvariantId] = if goes_back { &[] } else { &promise };
        assert_eq!(late, expected);
    }
    // Paid, and the money goes back all the same; or refunded, and it does not.
    let both = broken_behind(|_, facts| {
        let back = (order(1), "requested".to_owned());
        money(facts).refunds.insert(first.clone(), back);
    });
    assert_eq!(both, promise);
    let neither = broken_behind(|_, facts| {
        *stage(facts, 1) = OrderStatus::Refunded;
        let voucher = voucher(facts);
        (voucher.tally.paid, voucher.tally.free) = (0, 1);
        held(facts).stock = 1;
        held(facts).units.remove(&buyer(1));
        gate(facts).free = 1;
        gate(facts).holders.remove(&buyer(1));
    });
    assert_eq!(neither, promise);
    // Paid by a payment that paid for nothing.
    let paid_by_nothing = broken_behind(|_, facts| {
        let paid = facts.orders.get_mut(&order(1)).unwrap();
        paid.row.as_mut().unwrap().payment = None;
    });
    assert_eq!(paid_by_nothing, promise);
}
