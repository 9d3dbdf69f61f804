//! Isolation, rollback, locks.

use std::pin::pin;

use futures::FutureExt;
use seckill_application::Effect;
use seckill_application::ports::{Applied, NewAdjustment, UnitOfWork, Verdict};
use seckill_domain::{
    Decision, GateVersion, Order, OrderId, OrderStatus, SaleStatus, Timestamp, VoucherId,
};

use crate::fixture::{SECOND, VOUCHER, World, claim, now};

fn begin(world: &World) -> Box<dyn UnitOfWork> {
    now(world.book.ledger.begin()).unwrap()
}

fn overdue(unit: &mut dyn UnitOfWork) -> Vec<u64> {
    let orders = now(unit.lock_overdue_orders(10)).unwrap();
    orders.iter().map(|order| order.id.get()).collect()
}

fn order(world: &World, id: u64) -> Order {
    let found = now(world.book.ledger.order(OrderId::new(id))).unwrap();
    found.expect("the ledger has it")
}

/// A ledger with a voucher and two overdue orders.
fn with_overdue_orders() -> World {
    let world = World::new();
    world.publish(10);
    world.apply(vec![
        Decision::Granted(claim(1)),
        Decision::Granted(claim(2)),
    ]);
    world.clock.advance(901 * SECOND);
    world
}

#[test]
fn nobody_sees_a_change_before_it_is_committed() {
    let world = World::new();
    world.publish(10);
    let mut unit = begin(&world);
    let mut voucher = now(unit.lock_voucher(VOUCHER)).unwrap().unwrap();
    voucher.pause().unwrap();
    let version = now(unit.save_voucher(&voucher, true)).unwrap();
    assert_eq!(version, GateVersion::new(2));
    let inside = now(unit.lock_voucher(VOUCHER)).unwrap().unwrap();
    assert_eq!(inside.status, SaleStatus::Paused, "it sees its own");
    assert_eq!(world.voucher().status, SaleStatus::Published);
    now(unit.commit()).unwrap();
    assert_eq!(world.voucher().status, SaleStatus::Paused);
    assert_eq!(world.voucher().version, version);
}

#[test]
fn a_transaction_that_is_dropped_never_was() {
    let world = with_overdue_orders();
    let before = world.voucher();
    let mut unit = begin(&world);
    let mut orders = now(unit.lock_overdue_orders(10)).unwrap();
    let end = now(unit.now()).unwrap();
    for order in &mut orders {
        order.expire(end).unwrap();
    }
    now(unit.save_orders(OrderStatus::PendingPayment, &orders)).unwrap();
    let releases = [1, 2].map(|id| seckill_application::ports::Release::of(&order(&world, id)));
    now(unit.release(VOUCHER, &releases)).unwrap();
    drop(unit);
    assert_eq!(world.voucher(), before);
    assert_eq!(order(&world, 1).status(), OrderStatus::PendingPayment);
    let updates = world.book.updates.after(VOUCHER, before.version, 10);
    assert_eq!(now(updates).unwrap(), []);
    let mut unit = begin(&world);
    assert_eq!(overdue(&mut *unit), [1, 2], "and its locks are gone");
}

#[test]
fn a_lost_answer_to_a_commit_leaves_it_committed() {
    let world = World::new();
    world.publish(10);
    for (after, status) in [(false, SaleStatus::Published), (true, SaleStatus::Paused)] {
        let mut unit = begin(&world);
        let mut voucher = now(unit.lock_voucher(VOUCHER)).unwrap().unwrap();
        voucher.pause().unwrap();
        now(unit.save_voucher(&voucher, true)).unwrap();
        let chaos = world.ledger.chaos();
        if after {
            chaos.fail_after("unit_of_work.commit", 1);
        } else {
            chaos.fail_before("unit_of_work.commit", 1);
        }
        let fault = now(unit.commit()).unwrap_err();
        assert_eq!(fault.effect() == Effect::Unknown, after);
        assert_eq!(world.voucher().status, status);
    }
}

#[test]
fn a_transaction_whose_statement_failed_cannot_commit() {
    let world = World::new();
    world.publish(10);
    let mut unit = begin(&world);
    let mut voucher = now(unit.lock_voucher(VOUCHER)).unwrap().unwrap();
    voucher.pause().unwrap();
    now(unit.save_voucher(&voucher, true)).unwrap();
    world.ledger.chaos().fail_after("unit_of_work.now", 1);
    assert_eq!(now(unit.now()).unwrap_err().effect(), Effect::None);
    assert!(now(unit.commit()).is_err());
    assert_eq!(world.voucher().status, SaleStatus::Published);
}

#[test]
fn a_ledger_that_is_down_refuses_commits_too() {
    let world = World::new();
    world.publish(10);
    let mut unit = begin(&world);
    let mut voucher = now(unit.lock_voucher(VOUCHER)).unwrap().unwrap();
    voucher.pause().unwrap();
    now(unit.save_voucher(&voucher, true)).unwrap();
    world.ledger.down(true);
    assert!(now(unit.commit()).is_err());
    assert!(now(world.book.ledger.ping()).is_err());
    assert!(now(world.book.ledger.begin()).is_err());
    world.ledger.down(false);
    assert_eq!(world.voucher().status, SaleStatus::Published);
}

#[test]
fn a_row_is_waited_for_until_its_transaction_ends() {
    let world = World::new();
    world.publish(10);
    let mut first = begin(&world);
    now(first.lock_voucher(VOUCHER)).unwrap();
    let mut second = begin(&world);
    {
        let mut wait = pin!(second.lock_voucher(VOUCHER));
        assert!(wait.as_mut().now_or_never().is_none());
        drop(first);
        let got = wait.as_mut().now_or_never().expect("it is free");
        assert!(got.unwrap().is_some());
    }
    let mut third = begin(&world);
    let mut wait = pin!(third.lock_voucher(VOUCHER));
    assert!(wait.as_mut().now_or_never().is_none());
    world.clock.advance(60 * SECOND);
    let fault = wait.now_or_never().expect("waited too long").unwrap_err();
    assert_eq!((fault.effect(), fault.is_retryable()), (Effect::None, true));
}

#[test]
fn two_that_wait_for_each_other_do_not_wait_for_ever() {
    let world = World::new();
    let [a, b] = [world.publish(1).id, world.publish(1).id];
    let [mut first, mut second] = [begin(&world), begin(&world)];
    now(first.lock_voucher(a)).unwrap();
    now(second.lock_voucher(b)).unwrap();
    let mut wait = pin!(first.lock_voucher(b));
    assert!(wait.as_mut().now_or_never().is_none());
    let fault = now(second.lock_voucher(a)).unwrap_err();
    assert_eq!((fault.effect(), fault.is_retryable()), (Effect::None, true));
    assert!(
        wait.now_or_never().is_some(),
        "the one that was refused has let go of everything"
    );
}

#[test]
fn overdue_orders_that_are_locked_are_passed_over() {
    let world = with_overdue_orders();
    let mut payment = begin(&world);
    now(payment.lock_order(OrderId::new(1))).unwrap();
    let mut sweep = begin(&world);
    assert_eq!(overdue(&mut *sweep), [2]);
    let mut other = begin(&world);
    assert_eq!(overdue(&mut *other), [] as [u64; 0]);
}

#[test]
fn a_batch_waits_for_a_row_that_it_needs() {
    let world = World::new();
    world.publish(10);
    let mut unit = begin(&world);
    now(unit.lock_voucher(VOUCHER)).unwrap();
    let batch = world.batch(vec![Decision::Granted(claim(1))]);
    let mut apply = pin!(world.book.admissions.apply(&batch));
    assert!(apply.as_mut().now_or_never().is_none());
    drop(unit);
    let applied = apply.now_or_never().expect("the row is free").unwrap();
    assert!(matches!(applied, Applied::Committed { verdicts, .. }
        if verdicts == [Verdict::Confirmed]));
}

#[test]
fn an_adjustment_is_recorded_once_per_key_even_by_two_at_once() {
    let world = World::new();
    world.publish(10);
    let wish = NewAdjustment {
        voucher: VOUCHER,
        delta: 5,
        reason: "more arrived".to_owned(),
        key: Some("k1".parse().unwrap()),
    };
    let [mut first, mut second] = [begin(&world), begin(&world)];
    let recorded = now(first.record_adjustment(&wish)).unwrap();
    let again = {
        let mut wait = pin!(second.record_adjustment(&wish));
        assert!(wait.as_mut().now_or_never().is_none());
        now(first.commit()).unwrap();
        wait.now_or_never().expect("the key is free").unwrap()
    };
    assert_eq!(again, recorded);
}

#[test]
fn the_clock_of_the_ledger_is_the_one_it_was_given() {
    let world = World::new();
    let before = world.publish(1).created_at;
    world.clock.step_wall(1);
    let mut unit = begin(&world);
    let later = now(unit.now()).unwrap();
    assert_eq!(later, Timestamp::from_millis(before.as_millis() + 1));
    assert!(
        now(unit.lock_voucher(VoucherId::new(99)))
            .unwrap()
            .is_none()
    );
}
