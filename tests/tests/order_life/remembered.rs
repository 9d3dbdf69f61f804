//! The answers that a process remembers: what it asks the ledger about them, and what nobody is told
//! is unknown while they are offered again.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use seckill_application::ports::LOAD_CHUNK_MAX;
use seckill_application::ports::PaymentOutcome;
use seckill_application::{
    HearReply, Meters, PaymentNotice, Purchase, RememberedAnswers, WantedSales,
};
use seckill_domain::{BuyerId, Claim, OrderId, OrderStatus, Partitions, Timestamp, VoucherId};
use seckill_memory::{HotPathOptions, MemoryHotPath, MemoryLedger, VirtualClock};
use seckill_tests::controls::{Cut, Fuse, Stores, interrupted};

use crate::world::{MS, Offer, PRICE_MINOR, World, buyer, money, payment, request};

/// Two, so that vouchers of even and of odd numbers are apart.
const PARTITIONS: Partitions = Partitions::new(NonZeroU16::new(2).expect("not zero"));
/// Old enough to be asked after, and not to be offered.
const A_MOMENT: Duration = Duration::from_millis(400);

/// A process that stops where the fuse says, with so many answers of each of these vouchers, which
/// the ledger does not have.
fn process(fuse: &Arc<Fuse>, answers: &[(u64, usize)]) -> RememberedAnswers {
    let clock = Arc::new(VirtualClock::new(Timestamp::from_millis(0)));
    let store = MemoryHotPath::new(HotPathOptions::new(PARTITIONS), clock.clone());
    let book = MemoryLedger::new(clock.clone(), PARTITIONS);
    let stores = Stores {
        hot: store.ports(),
        ledger: book.ports(),
        clock: clock.clone(),
    };
    let stores = interrupted(&stores, fuse);
    let remembered = RememberedAnswers::new(
        &stores.hot,
        &stores.ledger,
        clock.clone(),
        Arc::new(WantedSales::default()),
        Arc::new(Meters::default()),
        PARTITIONS,
    );
    let mut numbers = 1..;
    for (voucher, count) in answers {
        for number in numbers.by_ref().take(*count) {
            remembered.remember_grant(Claim {
                order: OrderId::new(number),
                voucher: VoucherId::new(*voucher),
                buyer: BuyerId::new(number),
                quantity: 1,
                key: None,
            });
        }
    }
    clock.advance(A_MOMENT);
    remembered
}

/// The call at which the process stopped, if it made so many.
fn settled(answers: &[(u64, usize)], calls: usize) -> Option<&'static str> {
    let fuse = Arc::new(Fuse::at(Cut::Before(calls)));
    let remembered = process(&fuse, answers);
    let done = block_on(fuse.run(remembered.settle()));
    assert_eq!(done.is_some(), fuse.stopped_at().is_none());
    fuse.stopped_at()
}

#[test]
fn a_ledger_that_is_behind_is_asked_once_of_a_partition() {
    let answers = [(2, 5 * LOAD_CHUNK_MAX)];
    assert_eq!(settled(&answers, 0), Some("ledger.stages"), "it is asked");
    assert_eq!(settled(&answers, 1), None, "and no second time");
}

#[test]
fn one_partition_that_is_behind_hides_no_other() {
    let answers = [(2, 3 * LOAD_CHUNK_MAX), (3, 3 * LOAD_CHUNK_MAX)];
    assert_eq!(settled(&answers, 1), Some("ledger.stages"), "each of both");
    assert_eq!(settled(&answers, 2), None, "once");
}

fn notice(order: OrderId) -> PaymentNotice {
    PaymentNotice {
        payment: payment("p-1"),
        order,
        amount: money(PRICE_MINOR),
    }
}

/// Whether the order cannot be spoken of just now, neither to its buyer nor to the provider.
fn is_put_off(world: &World, order: OrderId) -> bool {
    let seen = world.alone(world.orders.find(order, buyer(1)));
    let heard = world.alone(world.hear.run(&notice(order))).unwrap();
    assert_eq!(seen.is_err(), heard == HearReply::OrderQueued, "{seen:?}");
    seen.is_err_and(|fault| fault.is_retryable())
}

/// Or the money of whoever paid at once would go back, and his order would be there a moment later.
#[test]
fn an_order_that_the_gate_has_lost_is_not_unknown() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    world.alone(world.remembered.offer()).unwrap();
    let asked = world.alone(world.purchase.run(request(voucher, 1, 1)));
    let Purchase::Granted { order, .. } = asked.unwrap() else {
        panic!("not granted");
    };
    let nobodys = OrderId::new(4_711);
    let seen = world.alone(world.orders.find(nobodys, buyer(1)));
    assert_eq!(seen.unwrap(), None, "nothing is lost yet");
    world.store.wipe();
    assert!(is_put_off(&world, order) && is_put_off(&world, nobodys));
    world.settle();
    assert!(
        is_put_off(&world, order),
        "the sale is there, and not yet he"
    );
    world.alone(world.remembered.offer()).unwrap();
    let seen = world.alone(world.orders.find(order, buyer(1))).unwrap();
    assert_eq!(
        seen.map(|view| view.order.status()),
        Some(OrderStatus::Queued)
    );
    assert!(
        is_put_off(&world, nobodys),
        "another process may be offering it"
    );
    world.pass(Duration::from_secs(5));
    let paid = world.run(world.hear.run(&notice(order))).unwrap();
    assert_eq!(paid, HearReply::Settled(PaymentOutcome::Paid));
    assert_eq!(
        world.alone(world.orders.find(nobodys, buyer(1))).unwrap(),
        None
    );
    world.pass(MS);
    world.assert_sound(voucher);
}

#[test]
fn where_nothing_was_lost_an_unknown_order_is_unknown() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    world.bought(voucher, 1, 1);
    world.alone(world.remembered.offer()).unwrap();
    let nobodys = OrderId::new(4_711);
    assert_eq!(
        world.alone(world.orders.find(nobodys, buyer(1))).unwrap(),
        None
    );
    let heard = world.run(world.hear.run(&notice(nobodys))).unwrap();
    assert_eq!(
        heard,
        HearReply::Settled(PaymentOutcome::RefundedUnknownOrder)
    );
}
