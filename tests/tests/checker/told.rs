//! What was told against what there is: each planted wrong is found, by its name.

use seckill_domain::OrderStatus;
use seckill_domain::invariants::InvariantId;
use seckill_tests::harness::{Asked, Event, Purchase, Rule, Told, judge};

use crate::run::{
    DUE_MS, VOUCHER, bought, broken_by, buyer, event, granted, order, sound, stage, stored, voucher,
};

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
        late.row.as_mut().unwrap().moved_ms = DUE_MS;
    });
    assert_eq!(wrong_order, [InvariantId::FairWaitlist]);
    // Somebody new is served while others wait.
    let pushed_in = broken_by(|history, facts| {
        history.push(bought(9, 8, granted(8)));
        history.push(gives_up(8, 8));
        facts
            .orders
            .insert(order(8), stored(8, OrderStatus::Cancelled));
    });
    assert_eq!(pushed_in, [InvariantId::FairWaitlist]);
    // All are served in the end, and one who came later at once.
    let served_later = broken_by(|history, facts| {
        history.insert(5, bought(9, 8, granted(8)));
        history.push(gives_up(8, 8));
        let mut late = stored(8, OrderStatus::Cancelled);
        late.served_at = Some(19);
        facts.orders.insert(order(8), late);
        for number in [5, 6] {
            *stage(facts, number) = OrderStatus::ClosedOut;
        }
    });
    assert_eq!(served_later, [InvariantId::FairWaitlist]);
    // He had asked before they came, and the answer was lost.
    let asked_before = broken_by(|history, facts| {
        let mut lost = bought(0, 8, granted(8));
        lost.told = Told::Nothing;
        history.insert(0, lost);
        history.push(bought(9, 8, granted(8)));
        history.push(gives_up(8, 8));
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
        history.extend([
            gives_up(8, 8),
            gives_up(8, 9),
            gives_up(5, 5),
            gives_up(6, 6),
        ]);
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

#[test]
fn an_order_that_ended_by_nobodys_wish_is_found() {
    let cancelled = |asked: bool| {
        broken_by(move |history, facts| {
            *stage(facts, 3) = OrderStatus::Cancelled;
            let voucher = voucher(facts);
            (voucher.tally.awaiting_payment, voucher.tally.free) = (1, 1);
            let held = voucher.held.as_mut().unwrap();
            held.stock = 1;
            held.units.remove(&buyer(3));
            if asked {
                // Nobody knows whether it was heard.
                history.push(gives_up(3, 3));
            }
        })
    };
    assert_eq!(cancelled(false), [InvariantId::PaidXorExpired]);
    assert_eq!(cancelled(true), []);
    let withdrawn = broken_by(|_, facts| *stage(facts, 6) = OrderStatus::Withdrawn);
    assert_eq!(withdrawn, [InvariantId::PaidXorExpired]);
    let revived = broken_by(|history, _| {
        let asked = Asked::Pay {
            order: order(3),
            payment: "p".to_owned(),
        };
        let told = refused(409, "order_cancelled");
        history.push(event(9, buyer(3), asked, told));
    });
    assert_eq!(revived, [InvariantId::PaidXorExpired]);
}

#[test]
fn an_end_before_its_time_is_found() {
    let expired = |moved_ms: i64| {
        broken_by(move |_, facts| {
            let early = facts.orders.get_mut(&order(3)).unwrap();
            early.status = OrderStatus::Expired;
            early.row.as_mut().unwrap().moved_ms = moved_ms;
            let voucher = voucher(facts);
            (voucher.tally.awaiting_payment, voucher.tally.free) = (1, 1);
            let held = voucher.held.as_mut().unwrap();
            held.stock = 1;
            held.units.remove(&buyer(3));
        })
    };
    assert_eq!(expired(DUE_MS - 1), [InvariantId::PaidXorExpired]);
    assert_eq!(expired(DUE_MS), []);
}

#[test]
fn a_place_that_was_given_up_and_is_served_is_found() {
    let left = |at: u64, status: OrderStatus| {
        broken_by(move |history, facts| {
            let asked = Asked::Leave { voucher: VOUCHER };
            history.push(event(at, buyer(6), asked, Told::Done));
            *stage(facts, 6) = status;
        })
    };
    assert_eq!(left(9, OrderStatus::Withdrawn), []);
    assert_eq!(left(9, OrderStatus::Waiting), [InvariantId::FairWaitlist]);
    let served = left(9, OrderStatus::PendingPayment);
    assert!(served.contains(&InvariantId::FairWaitlist), "{served:?}");
    // He left before he came.
    assert_eq!(left(1, OrderStatus::Waiting), []);
}

#[test]
fn a_key_that_is_forgotten_is_found() {
    let then = |second: Purchase| {
        broken_by(move |history, facts| {
            let keyed = |at, answer| {
                let mut event = bought(at, 3, answer);
                if let Asked::Purchase { key, .. } = &mut event.asked {
                    *key = Some("once".to_owned());
                }
                event
            };
            history[2] = keyed(3, granted(3));
            history.push(keyed(9, second));
            let mut older = stored(3, OrderStatus::Withdrawn);
            older.buyer = buyer(3);
            facts.orders.insert(order(8), older);
            history.push(gives_up(3, 8));
        })
    };
    assert_eq!(then(granted(3)), []);
    let held = |number: u64| Purchase::AlreadyHeld {
        order: order(number),
        orders: vec![order(number)],
    };
    assert_eq!(then(held(3)), []);
    let forgotten = then(held(8));
    assert!(
        forgotten.contains(&InvariantId::Idempotent),
        "{forgotten:?}"
    );
}

/// Whatever is broken, nobody is told what the contract does not know.
#[test]
fn an_answer_without_a_contract_is_found() {
    let rules = |asked: Asked, told: Told| -> Vec<Rule> {
        let (mut history, facts) = sound();
        history.push(event(9, buyer(3), asked, told));
        let verdict = judge(&history, &facts);
        verdict
            .violations
            .iter()
            .map(|found| found.broken)
            .collect()
    };
    let look = || Asked::Look { order: order(3) };
    for (status, code) in [(500, "internal"), (502, ""), (409, "sold_out"), (503, "")] {
        let found = rules(look(), refused(status, code));
        assert_eq!(found, [Rule::Contract], "{status} {code}");
    }
    assert_eq!(rules(look(), refused(503, "unavailable")), []);
    assert_eq!(rules(look(), refused(404, "order_not_found")), []);
    let buy = || bought(9, 3, granted(3)).asked;
    let purchase = |status, code: &str| {
        Told::Purchase(Purchase::Refused {
            status,
            code: code.to_owned(),
        })
    };
    assert_eq!(rules(buy(), purchase(500, "internal")), [Rule::Contract]);
    assert_eq!(rules(buy(), purchase(410, "closed")), []);
}

/// A buyer wants an order no more.
fn gives_up(who: u64, number: u64) -> Event {
    let asked = Asked::Cancel {
        order: order(number),
    };
    event(11, buyer(who), asked, Told::Nothing)
}

fn refused(status: u16, code: &str) -> Told {
    Told::Refused {
        status,
        code: code.to_owned(),
    }
}
