//! A store that loses, lies and fails.

use seckill_application::Effect;
use seckill_application::ports::{Admitted, LeaseOwner, NotLoaded, PartitionState, StreamReply};
use seckill_domain::{Admission, Decision, OrderId, Sequence};
use seckill_memory::Piece;

use crate::fixture::{EPOCH, MS, PARTITION, SECOND, VOUCHER, World, attempt, claim, now};

fn granted(order: u64) -> Admission {
    Admission::Granted {
        order: OrderId::new(order),
    }
}

fn state(world: &World) -> PartitionState {
    now(world.gate.loader.partition(PARTITION)).unwrap()
}

#[test]
fn a_new_store_has_no_partitions_and_a_wiped_one_is_new() {
    let world = World::new();
    assert_eq!(state(&world), PartitionState::Missing);
    let world = World::on_sale(10);
    assert_eq!(world.buy(1), granted(1));
    world.hot.wipe();
    assert_eq!(state(&world), PartitionState::Missing);
    assert_eq!(
        world.attempt(2),
        Admitted::NotLoaded(NotLoaded::Partition),
        "missing is never sold out"
    );
}

#[test]
fn losing_the_latest_writes_takes_back_all_that_they_did() {
    let world = World::on_sale(10);
    for buyer in 1..=5 {
        assert_eq!(world.buy(buyer), granted(buyer));
    }
    assert_eq!(world.hot.lose_last(2), 2);
    assert_eq!(world.free(), 7);
    assert_eq!(world.orders_in_stream(EPOCH), [1, 2, 3]);
    let PartitionState::Open { sequence, .. } = state(&world) else {
        panic!("the partition is there");
    };
    assert_eq!(sequence, Sequence::new(3), "numbers are used again");
    assert_eq!(
        now(world.gate.gate.find_order(OrderId::new(4))).unwrap(),
        None
    );
    assert_eq!(world.buy(4), granted(4), "his order id is new again");
}

#[test]
fn a_call_that_changes_nothing_is_no_write() {
    let world = World::on_sale(1);
    assert_eq!(world.buy(1), granted(1));
    assert_eq!(world.buy(1), granted(1), "a repeat");
    assert_eq!(world.free(), 0);
    assert_eq!(world.hot.lose_last(1), 1);
    assert_eq!(world.free(), 1, "the grant was the latest write");
}

#[test]
fn a_lease_is_lost_with_the_writes_that_took_it() {
    let world = World::on_sale(1);
    let leases = &world.gate.leases;
    let [a, b] = ["a", "b"].map(|name| LeaseOwner(name.to_owned()));
    assert!(now(leases.acquire("p0", &a, SECOND)).unwrap().is_some());
    assert!(now(leases.acquire("p0", &b, SECOND)).unwrap().is_none());
    assert_eq!(world.hot.lose_last(1), 1);
    assert!(now(leases.acquire("p0", &b, SECOND)).unwrap().is_some());
}

#[test]
fn a_lease_runs_out_by_the_clock_and_stays_lost() {
    let world = World::new();
    let leases = &world.gate.leases;
    let [a, b] = ["a", "b"].map(|name| LeaseOwner(name.to_owned()));
    let lease = now(leases.acquire("p0", &a, SECOND)).unwrap().unwrap();
    world.clock.advance(999 * MS);
    assert!(now(leases.renew(&lease, SECOND)).unwrap());
    world.clock.advance(SECOND);
    assert!(
        !now(leases.renew(&lease, SECOND)).unwrap(),
        "a second is over"
    );
    assert!(now(leases.acquire("p0", &b, SECOND)).unwrap().is_some());
    assert!(!now(leases.release(&lease)).unwrap(), "it is another's now");
    assert!(now(leases.acquire("p0", &a, SECOND)).unwrap().is_none());
}

#[test]
fn a_deleted_piece_closes_the_gate() {
    let pieces = [
        (Piece::Sale(VOUCHER), NotLoaded::Voucher),
        (Piece::Holders(VOUCHER), NotLoaded::Voucher),
        (Piece::Waiters(VOUCHER), NotLoaded::Voucher),
        (Piece::Meta(PARTITION), NotLoaded::Partition),
        (Piece::Stream(PARTITION), NotLoaded::Partition),
        (Piece::Decided(PARTITION), NotLoaded::Partition),
    ];
    for (piece, missing) in pieces {
        let world = World::on_sale(1);
        assert_eq!(world.buy(1), granted(1));
        assert!(matches!(world.buy(2), Admission::Waitlisted { .. }));
        assert!(world.hot.delete(piece), "{piece:?}");
        assert_eq!(world.attempt(3), Admitted::NotLoaded(missing), "{piece:?}");
        assert_eq!(world.attempt(1), Admitted::NotLoaded(missing), "{piece:?}");
    }
}

#[test]
fn an_empty_collection_is_no_key_that_could_be_deleted() {
    let world = World::on_sale(2);
    for piece in [
        Piece::Holders(VOUCHER),
        Piece::Waiters(VOUCHER),
        Piece::Keys(VOUCHER),
    ] {
        assert!(!world.hot.delete(piece), "{piece:?}");
    }
    assert_eq!(world.buy(1), granted(1));
}

#[test]
fn holders_survive_the_loss_of_the_facts_and_not_their_own() {
    let world = World::on_sale(1);
    assert_eq!(world.buy(1), granted(1));
    assert!(matches!(world.buy(2), Admission::Waitlisted { .. }));
    world.hot.delete(Piece::Sale(VOUCHER));
    let left = now(world.gate.loader.survivors(VOUCHER, 0)).unwrap();
    assert_eq!(left.holders, [claim(1)]);
    assert_eq!(left.seats.len(), 1);
    world.hot.delete(Piece::Holders(VOUCHER));
    let left = now(world.gate.loader.survivors(VOUCHER, 0)).unwrap();
    assert_eq!((left.holders.len(), left.seats.len()), (0, 1));
}

#[test]
fn a_gate_that_lies_sells_what_is_not_there() {
    let world = World::on_sale(1);
    assert_eq!(world.buy(1), granted(1));
    assert!(world.hot.plant_units(VOUCHER, 2));
    assert_eq!(world.free(), 2);
    assert_eq!(world.buy(2), granted(2));
}

#[test]
fn a_foreign_entry_is_delivered_as_unreadable_among_the_others() {
    let world = World::on_sale(9);
    world.buy(1);
    let foreign = world.hot.plant_entry(PARTITION, "not ours").unwrap();
    world.buy(2);
    let stream = &world.gate.stream;
    let read = now(stream.read_new(PARTITION, EPOCH, "w", 10, MS)).unwrap();
    let StreamReply::Entries(entries) = read else {
        panic!("{read:?}");
    };
    let readable: Vec<bool> = entries.iter().map(|it| it.body.is_ok()).collect();
    assert_eq!(readable, [true, false, true]);
    assert_eq!(entries[1].id, foreign);
    assert_eq!(entries[1].body.as_ref().unwrap_err().raw, "not ours");
    let PartitionState::Open { sequence, .. } = state(&world) else {
        panic!("the partition is there");
    };
    assert_eq!(sequence, Sequence::new(2), "it has no number");
}

#[test]
fn decisions_can_be_planted_that_no_sale_made() {
    let world = World::on_sale(3);
    assert!(
        world
            .hot
            .plant_decisions(PARTITION, vec![Decision::Granted(claim(7))])
    );
    assert_eq!(world.orders_in_stream(EPOCH), [7]);
    assert_eq!(world.free(), 3);
}

#[test]
fn an_answer_that_is_lost_is_found_by_asking_again() {
    let world = World::on_sale(5);
    world.hot.chaos().fail_after("purchase_gate.admit", 1);
    let fault = now(world.gate.gate.admit(VOUCHER, &[attempt(1)])).unwrap_err();
    assert_eq!(fault.effect(), Effect::Unknown);
    assert_eq!(world.free(), 4, "it was done");
    assert_eq!(world.buy(1), granted(1));
    assert_eq!(world.free(), 4, "once");
    world.hot.chaos().fail_before("purchase_gate", 1);
    let fault = now(world.gate.gate.admit(VOUCHER, &[attempt(2)])).unwrap_err();
    assert_eq!(fault.effect(), Effect::None);
    assert_eq!(world.free(), 4);
    assert_eq!(world.hot.chaos().struck(), 2);
}

#[test]
fn order_ids_do_not_repeat_when_the_store_is_wiped_or_the_clock_steps_back() {
    let world = World::new();
    let next = || now(world.gate.order_ids.next()).unwrap();
    let before = next();
    world.hot.wipe();
    world.clock.step_wall(-5_000);
    assert!(next() > before);
    world.clock.step_wall(-3_600_000);
    let fault = now(world.gate.order_ids.next()).unwrap_err();
    assert!(fault.is_retryable(), "refused rather than repeated");
}
