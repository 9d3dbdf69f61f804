//! A writer with more before it than fits into one transaction.

use seckill_application::{OrderWriter, Step};
use seckill_domain::VoucherId;

use crate::world::{Offer, PARTITION, SECOND, World, request};

const BATCH: usize = 2;

/// A world with a sale, and a writer of small batches that has caught up.
fn with_a_writer() -> (World, VoucherId, OrderWriter) {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    world.settle();
    let mut writer = world.small_writer("small", BATCH);
    assert_eq!(world.alone(writer.step()).unwrap(), Step::Idle);
    (world, voucher, writer)
}

fn grant(world: &World, voucher: VoucherId, buyers: std::ops::Range<u64>) {
    for buyer in buyers {
        world
            .alone(world.purchase.run(request(voucher, buyer, 1)))
            .expect("the gate answers");
    }
}

/// Entries that were delivered and not acknowledged, and orders whose windows are noted.
fn left(world: &World) -> (u64, u64) {
    world.alone(async {
        let backlog = world.hot.stream.backlog(PARTITION).await.unwrap();
        let scheduled = world.hot.delays.scheduled().await.unwrap();
        (backlog.pending, scheduled)
    })
}

/// What a transaction has written is acknowledged beside the next one, whatever becomes of that; and
/// what the next one writes is not, before it is committed.
#[test]
fn a_batch_is_acknowledged_beside_the_next_and_never_before_its_own_commit() {
    let (world, voucher, mut writer) = with_a_writer();
    grant(&world, voucher, 1..7);
    assert_eq!(world.alone(writer.step()).unwrap(), Step::Applied(BATCH));
    assert_eq!(left(&world), (6, 0));
    world.book.chaos().fail_before("admission_ledger.apply", 1);
    world.alone(writer.step()).unwrap_err();
    assert_eq!(left(&world), (4, 2));
    assert_eq!(world.alone(writer.step()).unwrap(), Step::Applied(BATCH));
    assert_eq!(left(&world), (4, 2));
    assert_eq!(world.alone(writer.step()).unwrap(), Step::Applied(BATCH));
    assert_eq!(left(&world), (0, 6));
    world.assert_sound(voucher);
}

/// A commit whose answer is lost has settled its entries.
#[test]
fn what_was_committed_unheard_is_acknowledged() {
    let (world, voucher, mut writer) = with_a_writer();
    grant(&world, voucher, 1..5);
    world.book.chaos().fail_after("admission_ledger.apply", 1);
    world.alone(writer.step()).unwrap_err();
    assert_eq!(left(&world).0, 4);
    assert_eq!(world.alone(writer.step()).unwrap(), Step::Applied(BATCH));
    assert_eq!(left(&world).0, 0);
    world.assert_sound(voucher);
}

/// An acknowledgement that fails holds up no transaction, and is repeated.
#[test]
fn a_transaction_goes_on_without_the_acknowledgement_of_the_last_one() {
    let (world, voucher, mut writer) = with_a_writer();
    grant(&world, voucher, 1..7);
    assert_eq!(world.alone(writer.step()).unwrap(), Step::Applied(BATCH));
    world.store.chaos().fail_before("admission_stream.ack", 1);
    world.alone(writer.step()).unwrap_err();
    assert_eq!(left(&world), (6, 2));
    let head = world.alone(world.ledger.admissions.head(PARTITION));
    assert_eq!(head.unwrap().applied.get(), 4);
    assert_eq!(world.alone(writer.step()).unwrap(), Step::Applied(BATCH));
    assert_eq!(left(&world), (0, 6));
    world.assert_sound(voucher);
}

/// A writer that stops between two transactions leaves nothing to its successor.
#[test]
fn a_writer_that_stops_acknowledges_what_it_has_applied() {
    let (world, voucher, mut writer) = with_a_writer();
    grant(&world, voucher, 1..5);
    assert_eq!(world.alone(writer.step()).unwrap(), Step::Applied(BATCH));
    world.alone(writer.follow_up()).unwrap();
    assert_eq!(left(&world), (2, 2));
    drop(writer);
    world.replace_writer("successor");
    world.pass(SECOND);
    assert_eq!(left(&world), (0, 4));
    world.assert_sound(voucher);
}
