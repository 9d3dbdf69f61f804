//! Entries come again until they are acknowledged, and readers wait.

use std::pin::pin;

use futures::FutureExt;
use seckill_application::ports::{Backlog, EntryId, StreamReply};
use seckill_domain::{Epoch, Sequence};
use seckill_memory::Piece;

use crate::fixture::{EPOCH, MS, PARTITION, SECOND, World, now};

fn ids(reply: StreamReply) -> Vec<EntryId> {
    match reply {
        StreamReply::Entries(entries) => entries.into_iter().map(|it| it.id).collect(),
        StreamReply::Missing => panic!("the stream is missing"),
    }
}

fn read_new(world: &World, consumer: &str) -> Vec<EntryId> {
    let stream = &world.gate.stream;
    let wait = std::time::Duration::ZERO;
    ids(now(stream.read_new(PARTITION, EPOCH, consumer, 10, wait)).unwrap())
}

fn backlog(world: &World) -> Backlog {
    now(world.gate.stream.backlog(PARTITION)).unwrap()
}

#[test]
fn what_a_dead_consumer_was_given_is_taken_over() {
    let world = World::on_sale(5);
    for buyer in 1..=3 {
        world.buy(buyer);
    }
    let stream = &world.gate.stream;
    let given = read_new(&world, "dead");
    assert_eq!(given.len(), 3);
    assert_eq!(read_new(&world, "heir"), [], "they are the other's");
    let taken = now(stream.take_over(PARTITION, EPOCH, "heir")).unwrap();
    assert_eq!(taken, 3);
    let again = now(stream.read_after(PARTITION, EPOCH, given[0], 10)).unwrap();
    assert_eq!(ids(again), given[1..]);
    now(stream.ack(PARTITION, EPOCH, &given, Sequence::new(3))).unwrap();
    let settled = Backlog {
        decisions: 0,
        pending: 0,
        length: 3,
    };
    assert_eq!(backlog(&world), settled);
}

#[test]
fn a_group_that_is_gone_starts_over_at_the_first_entry() {
    let world = World::on_sale(5);
    world.buy(1);
    world.buy(2);
    let given = read_new(&world, "w");
    assert!(world.hot.delete(Piece::Group(PARTITION)));
    assert_eq!(read_new(&world, "w"), given);
}

#[test]
fn an_answer_lost_on_the_way_leaves_the_entries_pending() {
    let world = World::on_sale(5);
    world.buy(1);
    let stream = &world.gate.stream;
    world.hot.chaos().fail_after("admission_stream.read_new", 1);
    assert!(now(stream.read_new(PARTITION, EPOCH, "w", 10, MS)).is_err());
    assert_eq!(backlog(&world).pending, 1);
    assert_eq!(read_new(&world, "w"), [], "delivered once");
    let again = stream.read_after(PARTITION, EPOCH, EntryId::START, 10);
    assert_eq!(ids(now(again).unwrap()).len(), 1, "and still there");
}

#[test]
fn a_reader_waits_for_the_first_entry_and_no_longer_than_it_said() {
    let world = World::on_sale(5);
    let stream = &world.gate.stream;
    let mut read = pin!(stream.read_new(PARTITION, EPOCH, "w", 10, SECOND));
    assert!(read.as_mut().now_or_never().is_none());
    world.buy(1);
    let woken = read.as_mut().now_or_never().expect("an entry came");
    assert_eq!(ids(woken.unwrap()).len(), 1);

    let mut read = pin!(stream.read_new(PARTITION, EPOCH, "w", 10, SECOND));
    assert!(read.as_mut().now_or_never().is_none());
    world.clock.advance(999 * MS);
    assert!(read.as_mut().now_or_never().is_none());
    world.clock.advance(MS);
    let over = read.as_mut().now_or_never().expect("time is over");
    assert_eq!(ids(over.unwrap()), []);
}

#[test]
fn a_waiting_reader_notices_that_its_stream_is_gone() {
    let world = World::on_sale(5);
    let stream = &world.gate.stream;
    let mut read = pin!(stream.read_new(PARTITION, EPOCH, "w", 10, SECOND));
    assert!(read.as_mut().now_or_never().is_none());
    world.hot.wipe();
    let woken = read.as_mut().now_or_never().expect("it is told");
    assert_eq!(woken.unwrap(), StreamReply::Missing);
}

#[test]
fn only_what_is_acknowledged_applied_and_old_is_trimmed() {
    let world = World::on_sale(5);
    for buyer in 1..=3 {
        world.buy(buyer);
    }
    let stream = &world.gate.stream;
    let given = read_new(&world, "w");
    let trim = || now(stream.trim(PARTITION, EPOCH, given[1], SECOND)).unwrap();
    now(stream.ack(PARTITION, EPOCH, &given, Sequence::new(3))).unwrap();
    assert_eq!(trim(), 0, "too young");
    world.clock.advance(2 * SECOND);
    assert_eq!(
        trim(),
        2,
        "the third is not in the ledger, as far as the caller knows"
    );
    assert_eq!(world.orders_in_stream(EPOCH), [3]);
    let find = |order| {
        now(world
            .gate
            .gate
            .find_order(seckill_domain::OrderId::new(order)))
    };
    assert_eq!(find(1).unwrap(), None, "forgotten with its entry");
    assert!(find(3).unwrap().is_some());
}

#[test]
fn another_epochs_reader_finds_nothing_and_changes_nothing() {
    let world = World::on_sale(5);
    world.buy(1);
    let stream = &world.gate.stream;
    let other = Epoch::new(2);
    let read = now(stream.read_new(PARTITION, other, "w", 10, SECOND)).unwrap();
    assert_eq!(read, StreamReply::Missing);
    now(stream.ack(PARTITION, other, &[], Sequence::new(9))).unwrap();
    assert_eq!(backlog(&world).decisions, 1);
}
